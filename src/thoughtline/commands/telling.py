"""What commands say in the same way: JSON, wide tables, a question, and why they can't do what they were asked for."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.table import Table

from thoughtline.values.errors import ThoughtlineError

FAILED = 2


def tell(command: str, error: ThoughtlineError) -> int:
    """The name of the command, what, where, and a remedy: a line for each problem; gives the exit status."""
    remedy = getattr(error, "remedy", "")
    for line in f"{error} {remedy}".rstrip().splitlines():
        sys.stderr.write(f"thoughtline {command}: {line}\n")
    return FAILED


def json_text(value: object) -> str:
    """For people and programs: on lines of its own."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def print_table(table: Table, least_width: int) -> None:
    """At least that wide, whatever the terminal is."""
    console = Console(file=sys.stdout, highlight=False)
    console.width = max(console.width, least_width)
    console.print(table)


def is_confirmed(question: str) -> bool:
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
