"""`thoughtline init`: writes a settings file with every setting explained and commented out."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from thoughtline.settings import FILE_NAME, home_folder, own_files
from thoughtline.settings.example import commented_settings
from thoughtline.terminal import program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help=f"default: ~/.config/thoughtline/{FILE_NAME}"
    )
    parser.add_argument("--print", action="store_true", help="print the settings instead of writing a file")


def run(chosen: argparse.Namespace) -> int:
    text = commented_settings()
    if chosen.print:
        sys.stdout.write(text)
        return 0
    file: Path = chosen.file or own_files(os.environ, home_folder())[0]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            file.chmod(0o600)  # it will contain keys of providers
            opened.write(text)
    except OSError as error:
        why = (
            "already exists, and was not changed"
            if isinstance(error, FileExistsError)
            else f"can't be written: {error.strerror}"
        )
        sys.stderr.write(f"thoughtline init: {file} {why}. Name another: thoughtline init FILE\n")
        return 2
    named = "" if chosen.file is None else f" --config {file}"
    sys.stdout.write(f"{file} is written, everything in it commented out. Change it, then: {program()} serve{named}\n")
    return 0
