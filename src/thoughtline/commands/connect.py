"""`thoughtline connect`: show how to set up a client, write it to the client's own file, or undo that."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from thoughtline import clients
from thoughtline.clients import Client
from thoughtline.clients.launching import shell_lines
from thoughtline.commands.chosen_client import ChosenClient, Key, add_client_options, chosen_client, key_for
from thoughtline.commands.client_files import Change, ClientRecord, changes_for
from thoughtline.commands.run import answers
from thoughtline.settings import data_directory, home_folder
from thoughtline.terminal import program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", nargs="?", metavar="CLIENT", help="which client (default: list them all)")
    add_client_options(parser)
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--write", action="store_true", help="edit the client's own file, and show the change")
    doing.add_argument("--undo", action="store_true", help="restore the file as it was before --write")
    parser.add_argument("--file", type=Path, help="with --write: the client's file, if it is not in the usual place")


def run(options: argparse.Namespace) -> int:
    if options.client is None:
        width = max(len(each.name) for each in clients.CLIENTS)
        for each in clients.CLIENTS:
            _print(f"{each.name:{width}}  {each.title}: {', '.join(each.formats)}")
        return 0
    chosen = chosen_client(options)
    record = ClientRecord(data_directory(os.environ, home_folder()), chosen.client)
    if options.undo:
        for path in record.undo():
            _print(f"{path} is as it was before")
    elif options.write:
        _write(chosen, record, options.file)
    else:
        _print(clients.instructions(chosen.client, chosen.address))
    if not options.undo and not asyncio.run(answers(chosen.gateway)):
        start = f"Start one: {program()} serve; at every login: {program()} service install"
        sys.stderr.write(f"thoughtline connect: no gateway answers at {chosen.gateway}. {start}\n")
    return 0


def _write(chosen: ChosenClient, record: ClientRecord, file: Path | None) -> None:
    key = key_for(chosen.address, os.environ)
    changes = changes_for(chosen.client, chosen.address, key.value, file, home_folder())
    for change in changes:
        sys.stdout.writelines(_difference(change, key))
    record.write(changes)
    if not changes:
        _print(f"{chosen.client.title} is set already.")
        return
    for choice in clients.choices_of(chosen.client, chosen.address):
        _print(f"\n{choice}")
    _print(f"\nWritten. To put it back: {program()} connect {chosen.client.name} --undo   (kept in {record.path})")
    if not key.variable and any(clients.KEY.encode() in change.after for change in changes):
        names = " or ".join(clients.key_variables(chosen.address))
        _print(f"{clients.KEY} is a placeholder: replace it by your key, or set {names} and run this again.")
    for line in _left(chosen.client, chosen):
        _print(f"Then, in the shell that starts it: {line}")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _difference(change: Change, key: Key) -> Iterator[str]:
    """As `diff -u` shows it, without the key."""
    before, after = ((data or b"").decode().splitlines() for data in (change.before, change.after))
    old = str(change.path) if change.before is not None else os.devnull
    for line in difflib.unified_diff(before, after, old, str(change.path), lineterm=""):
        yield (line.replace(key.value, "…") if key.variable else line) + "\n"


def _left(client: Client, chosen: ChosenClient) -> Iterator[str]:
    """The steps that no file covers: shell variables, and how to start the program."""
    for step in client.steps:
        if step.language == "shell" and not step.is_alternative:
            shell = shell_lines(clients.lines_of(client, step, chosen.address))
            if not step.file:
                yield from (f"export {name}={value}" for name, value in shell.variables.items())
            yield from (" ".join(words) for words in shell.commands)
