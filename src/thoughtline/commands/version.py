"""`thoughtline version`."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version


def package_version() -> str:
    return version("thoughtline")


def version_line() -> str:
    return f"thoughtline {package_version()} on Python {'.'.join(map(str, sys.version_info[:3]))}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has none."""


def run(options: argparse.Namespace) -> int:
    sys.stdout.write(f"{version_line()}\n")
    return 0
