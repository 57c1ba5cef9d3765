"""The command line. Each command is a row, and a few lines over a function that can be called without it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import NamedTuple


class Command(NamedTuple):
    """A row of the table. `run` imports what it needs when it runs: a command pays for itself alone."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    from thoughtline import audit_command

    audit_command.add_arguments(parser)


def _audit(options: argparse.Namespace) -> int:
    from thoughtline import audit_command

    return audit_command.run(options)


COMMANDS: tuple[Command, ...] = (
    Command("audit", "say what a provider would refuse in a request, where and why", _audit_arguments, _audit),
)


def parser() -> argparse.ArgumentParser:
    """The commands and their options; `docs/cli.md` is made from it."""
    root = argparse.ArgumentParser(
        prog="thoughtline",
        description="Remembers what a model thought and puts it back where the provider wants it.",
    )
    root.add_argument("--version", action="version", version=f"thoughtline {version('thoughtline')}")
    if COMMANDS:
        commands = root.add_subparsers(dest="command", metavar="COMMAND")
        for command in COMMANDS:
            command.add_arguments(commands.add_parser(command.name, help=command.help, description=command.help))
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the console script."""
    root = parser()
    chosen = root.parse_args(arguments)
    for command in COMMANDS:
        if command.name == chosen.command:
            return command.run(chosen)
    root.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
