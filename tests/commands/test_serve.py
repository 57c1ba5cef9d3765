"""What `thoughtline serve` says when it starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from thoughtline.commands.serve import show_banner
from thoughtline.settings import ServerSettings, Settings

TOKEN = "0123456789abcdef0123"
CODE = "good-once"
FILE = Path("/data/admin-token")


@pytest.fixture(autouse=True)
def is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the token is there."""
    monkeypatch.setattr(Path, "exists", lambda path: path == FILE)


def banner(settings: Settings, *, is_terminal: bool) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=is_terminal, width=400, color_system=None)
    show_banner(console, settings, "http://127.0.0.1:8642", CODE, FILE)
    return output.getvalue()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(Settings(), str(FILE)), (Settings(server=ServerSettings(admin_token=TOKEN)), "your settings")],
    ids=["made", "set"],
)
def test_a_log_is_told_where_the_token_is(settings: Settings, expected: str) -> None:
    """In its file, or, where a person has set one, in the settings; never the token itself."""
    text = banner(settings, is_terminal=False)
    assert f"(the token is in {expected})" in text
    assert TOKEN not in text
    assert CODE not in text


def test_a_person_gets_a_link() -> None:
    """On a terminal the login is one click away: one that is good once, without the token in it."""
    text = banner(Settings(server=ServerSettings(admin_token=TOKEN)), is_terminal=True)
    assert f"http://127.0.0.1:8642/login?token={CODE} " in text
    assert TOKEN not in text
