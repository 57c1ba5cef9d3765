"""What `thoughtline serve` says when it starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from thoughtline.commands.serve import ListeningPlace, show_banner
from thoughtline.settings import ServerSettings, Settings

TOKEN = "0123456789abcdef0123"
CODE = "good-once"
FILE = Path("/data/admin-token")


@pytest.fixture(autouse=True)
def is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the token is there."""
    monkeypatch.setattr(Path, "exists", lambda path: path == FILE)


LOCAL = ListeningPlace("http://127.0.0.1:8642", "http://127.0.0.1:8642")


def banner(
    settings: Settings, *, is_terminal: bool = False, place: ListeningPlace = LOCAL, needs_key: bool = True
) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=is_terminal, width=400, color_system=None)
    show_banner(console, settings, place, code=CODE, token_file=FILE, needs_key=needs_key)
    return output.getvalue()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(Settings(), str(FILE)), (Settings(server=ServerSettings(admin_token=TOKEN)), "your settings")],
    ids=["made", "set"],
)
def test_a_log_shows_where_the_token_is(settings: Settings, expected: str) -> None:
    """In its file, or, where a person has set one, in the settings; never the token itself."""
    text = banner(settings, is_terminal=False)
    assert f"(log in with the token in {expected})" in text
    assert TOKEN not in text
    assert CODE not in text


def test_a_person_gets_a_link() -> None:
    """On a terminal the login is one click away: one that is good once, without the token in it."""
    text = banner(Settings(server=ServerSettings(admin_token=TOKEN)), is_terminal=True)
    assert f"http://127.0.0.1:8642/login?token={CODE} " in text
    assert TOKEN not in text


def test_every_line_says_something() -> None:
    """The first one has the example provider, and none is blank."""
    lines = banner(Settings()).splitlines()
    assert "send requests to http://127.0.0.1:8642/PROVIDER, for example /deepseek" in lines[1]
    assert all(line.strip() for line in lines)


def test_a_gateway_for_all_interfaces_is_used_by_an_address_that_works() -> None:
    """Nothing is at 0.0.0.0; and the banner says that other machines can reach it."""
    everywhere = ListeningPlace("http://0.0.0.0:8642", "http://127.0.0.1:8642")
    text = banner(Settings(server=ServerSettings(host="0.0.0.0")), place=everywhere)
    assert text.count("0.0.0.0") == 1
    assert "other machines can reach it" in text
    assert "other machines" not in banner(Settings())


def test_no_key_is_required_in_front_of_a_simulator() -> None:
    """The line for the SDK can be pasted without an unset variable."""
    assert 'api_key="any"' in banner(Settings(), needs_key=False)
    assert 'api_key=os.environ["DEEPSEEK_API_KEY"]' in banner(Settings())
