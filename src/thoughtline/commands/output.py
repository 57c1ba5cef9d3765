"""Output shared by commands: JSON, wide tables, a question, and errors."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.table import Table

from thoughtline.values.errors import ThoughtlineError

FAILED = 2


def report(command: str, error: ThoughtlineError) -> int:
    """Print the command's name, the problem, its position, and a remedy: one line per problem; returns
    the exit status.
    """
    remedy = getattr(error, "remedy", "")
    for line in f"{error} {remedy}".rstrip().splitlines():
        sys.stderr.write(f"thoughtline {command}: {line}\n")
    return FAILED


def json_text(value: object) -> str:
    """For people and programs: indented."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def print_table(table: Table, least_width: int) -> None:
    """At least this wide, whatever the terminal is."""
    console = Console(file=sys.stdout, highlight=False)
    console.width = max(console.width, least_width)
    console.print(table)


def is_confirmed(question: str) -> bool:
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
