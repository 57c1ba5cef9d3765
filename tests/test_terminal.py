"""Lines for people: colours where they are wanted, and nothing that takes the terminal."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from thoughtline.terminal import (
    LogOptions,
    LogRow,
    counted,
    duration,
    is_coloured,
    printable,
    program,
    row_text,
    unlinked,
)


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (_Screen(), {}, True),
        (_Screen(), {"NO_COLOR": ""}, True),
        (_Screen(), {"NO_COLOR": "1"}, False),
        (_Screen(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours(stream: io.StringIO, environment: dict[str, str], expected: bool) -> None:
    """On a terminal, unless they are not wanted."""
    assert is_coloured(stream, environment) is expected


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\nb", "a\x9bb", "a\u202eb", "a\x07b"])
def test_printable(text: str) -> None:
    """One line, without what would move the cursor or ring a bell."""
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3 * 3600 + 5, "3 h 5 s"), (90061, "1 d 1 h")]
)
def test_duration(seconds: float, text: str) -> None:
    """The two largest units."""
    assert duration(seconds) == text


def test_counted() -> None:
    """One, and many."""
    assert (counted(1, "turn"), counted(2, "turn"), counted(0, "turn")) == ("1 turn", "2 turns", "0 turns")


@pytest.mark.parametrize(("status", "colour"), [(200, "32"), (404, "33"), (500, "31"), (0, "31")])
def test_the_status_has_a_colour(status: int, colour: str) -> None:
    """Green, yellow, red."""
    row = LogRow(0.0, status, 1.0, subject="m", format="f", words="w")
    assert f"\x1b[{colour}m{status or '---'}\x1b[0m" in row_text(row, LogOptions("text", is_coloured=True))
    assert "\x1b" not in row_text(row, LogOptions("text"))


def test_the_program_is_named_as_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name where the PATH leads to it, by its path where it does not, quoted where the path has a space."""
    own = tmp_path / "my projects" / "bin" / "thoughtline"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(own)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == shlex.quote(str(own))
    monkeypatch.chdir(tmp_path / "my projects")
    assert program() == "bin/thoughtline"
    monkeypatch.setenv("PATH", str(own.parent))
    assert program() == "thoughtline"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "cli.py")])
    assert program() == "thoughtline"
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == f"{shlex.quote(sys.executable)} -m thoughtline.cli"


def test_links_of_markdown_become_words() -> None:
    """A terminal shows no links; addresses stay as they are."""
    assert unlinked("see [what to set](gateway.md#a) now") == "see what to set (docs/gateway.md#a) now"
    assert unlinked("[x](https://example.com)") == "[x](https://example.com)"
