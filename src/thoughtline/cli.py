"""The command line: parses it, runs the command, and reports its errors."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from thoughtline.commands.parser import COMMANDS, Command, parser
from thoughtline.values.errors import ThoughtlineError

GATEWAY = frozenset({"httptools", "prometheus_client", "rich", "uvicorn", "uvloop", "websockets"})
"""The modules that the extra of this name brings: the library is installed without."""

INTERRUPTED, UNREAD = 128 + 2, 128 + 13
"""A shell's exit status for a program that SIGINT or SIGPIPE has ended."""

_STARTS_A_CLIENT = ("run", "record")
"""Commands whose words behind `--` are another program's."""


def program() -> NoReturn:
    """Entry point of the console script: `main`, then an exit that native threads can't break.

    The HTTP client's threads release Python objects at any time. If that happens during the interpreter's shutdown,
    CPython before 3.14 aborts ("PyGILState_Release: thread state must be current"), and a successful command would end
    by SIGABRT. Every command has closed its resources when it returns.
    """
    _replace_what_can_not_be_shown()
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _replace_what_can_not_be_shown() -> None:
    """On Windows a pipe only accepts characters of a code page: an arrow in a report must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    named = next((word for word in words if not word.startswith("-")), "")
    try:
        return _main(words, named)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in GATEWAY:
            raise
        command = f"thoughtline {named}".rstrip()
        print(f"{command}: this needs the gateway: pip install 'thoughtline[gateway]'", file=sys.stderr)
        return 2


def _main(words: list[str], named: str) -> int:
    words, behind = _parted(words) if named in _STARTS_A_CLIENT else (words, [])
    root = parser(only=named)
    chosen = root.parse_args(words)
    if behind:
        chosen.arguments = behind
    for command in COMMANDS:
        if command.name == chosen.command:
            return _run(command, chosen)
    root.print_help()
    return 0


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before `--` and after it: argparse can't handle it if options may come in between."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _run(command: Command, chosen: argparse.Namespace) -> int:
    """The command's exit status, also if the user interrupts it or closes its output."""
    if hasattr(chosen, "config"):
        _warn_of_settings(chosen)
    try:
        status: int = command.load().run(chosen)
        sys.stdout.flush()
    except ThoughtlineError as error:
        from thoughtline.commands.output import report

        return report(command.name, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at exit
        return UNREAD
    return status


def _warn_of_settings(chosen: argparse.Namespace) -> None:
    """Warn about environment variables without effect, and about a file in the working directory, which is only read if
    named.
    """
    from thoughtline.settings import home_folder, overlooked_file, strange_variables

    for name, remedy in strange_variables(os.environ).items():
        print(f"thoughtline: {name} sets nothing; {remedy}", file=sys.stderr)
    file = overlooked_file(os.environ, home_folder()) if chosen.config is None else None
    if file is not None:
        words = ["thoughtline", chosen.command, *filter(None, [vars(chosen).get("action")])]
        use = " ".join([*words, "--config", f"./{file}"])
        print(f"thoughtline: ./{file} is not read unless it is named. To use it: {use}", file=sys.stderr)


if __name__ == "__main__":
    program()
