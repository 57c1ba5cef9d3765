"""Log lines for people: the columns and colours that the gateway and the simulators share."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

LogFormat = Literal["text", "json"]
Level = Literal["quiet", "normal", "verbose"]

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
"""Characters that would move the cursor, change the colours or turn the direction of writing."""


def program() -> str:
    """How a shell in this folder starts this program: by its name if the PATH finds it, else by its path."""
    own, found = Path(sys.argv[0]), shutil.which("thoughtline")
    if own.stem != "thoughtline" or not own.is_file():
        return "thoughtline" if found else f"{shlex.quote(sys.executable)} -m thoughtline.cli"
    if found and os.path.samefile(found, own):
        return "thoughtline"
    own, here = own.absolute(), Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))


class LogOptions(NamedTuple):
    """The log options of a command. They are decided once and passed to all workers."""

    format: LogFormat = "json"
    level: Level = "normal"
    is_coloured: bool = False


def is_coloured(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether the stream shows colours and they are wanted (https://no-color.org)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Untrusted text on one line, without control over the terminal."""
    return _UNPRINTABLE.sub(" ", text).strip()


_LINK = re.compile(r"\[([^\[\]]+)\]\((?!https?:)([^()\s]+)\)")


def unlinked(text: str) -> str:
    """A text without Markdown links, which no terminal shows: `what to set (docs/gateway.md#bedrock)`."""
    return _LINK.sub(r"\1 (docs/\2)", text)


def painted(text: str, colour: str, options: LogOptions) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if options.is_coloured and text else text


class LogRow(NamedTuple):
    """The log line of a request. One without a `status` got no answer."""

    at: float
    status: int
    seconds: float
    subject: str
    format: str
    words: str
    id: str = ""
    has_failed: bool = False
    has_begun: bool = False


def row_text(row: LogRow, options: LogOptions) -> str:
    """The line: time, status, seconds, target, format, what was done, id."""
    status = "..." if row.has_begun else str(row.status or "---")
    parts = [
        painted(f"{datetime.fromtimestamp(row.at):%H:%M:%S}", DIM, options),
        painted(status, _status_colour(row), options),
        f"{row.seconds:6.2f}s",
        f"{printable(row.subject):<32}",
        painted(f"{row.format:<18}", DIM, options),
        printable(row.words),
        painted(row.id, DIM, options),
    ]
    return "  ".join(part for part in parts if part)


def _status_colour(row: LogRow) -> str:
    if row.has_begun:
        return DIM
    if row.has_failed or row.status >= 500 or not row.status:
        return RED
    return YELLOW if row.status >= 400 else GREEN


def counted(number: int, noun: str) -> str:
    """`1 turn`, `3 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    words = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(words[:2]) or "0 s"
