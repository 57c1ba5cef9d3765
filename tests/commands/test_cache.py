"""`thoughtline cache`, over a running gateway and straight from its store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import running
from tests.sim.served_simulators import served
from thoughtline.cli import main
from thoughtline.settings import ServerSettings, Settings

TOKEN = "a-token-of-the-tests-000"
TURNS = (("deepseek", "deepseek-v4-pro", "one"), ("deepseek", "deepseek-v4-pro", "two"), ("kimi", "kimi-k2.6", "three"))
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[dict[str, list[str]]]:
    """Two turns of DeepSeek's and one of Kimi's in a store, with a gateway before it: the options for both ways."""
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    simulators = {"deepseek": served("deepseek").url, "kimi": served("kimi").url}
    settings = Settings(server=replace(ServerSettings(), admin_token=TOKEN))
    with running(simulators, settings, url) as gateway:
        for provider, model, words in (
            ("deepseek", "deepseek-v4-pro", "one"),
            ("deepseek", "deepseek-v4-pro", "two"),
            ("kimi", "kimi-k2.6", "three"),
        ):
            body = {"model": model, "messages": [{"role": "user", "content": words}], "tools": TOOLS}
            httpx.post(f"{gateway.url}/{provider}/v1/chat/completions", json=body).raise_for_status()
        yield {"gateway": ["--url", gateway.url, "--token", TOKEN], "store": ["--store", url]}


both_ways = pytest.mark.parametrize("backend", ["gateway", "store"])


@both_ways
def test_statistics(backend: str, place: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """How much is remembered, of whom."""
    assert main(["cache", "stats", "--json", *place[backend]]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert stats["byProvider"]["deepseek"]["entries"] == 2
    assert stats["byProvider"]["kimi"]["entries"] == 1
    assert main(["cache", "stats", *place[backend]]) == 0
    assert "deepseek" in capsys.readouterr().out


@both_ways
def test_the_list_is_readable(backend: str, place: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Ids (as `show` takes them), times, providers and counts are never cut, however long a client's names are."""
    assert main(["cache", "list", *place[backend]]) == 0
    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["id", "made", "provider", "model", "session", "call", "characters"]
    assert [row[3] for row in rows] == ["kimi", "deepseek", "deepseek"]
    assert not any("…" in cell for row in rows for cell in (*row[:4], row[-1]))


@both_ways
def test_listing_and_showing(backend: str, place: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """The newest first, by filters; one of them by its call or by its own id, with what was thought."""
    assert main(["cache", "list", "--json", "--provider", "kimi", *place[backend]]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    for name in (entry["toolCallId"], entry["id"][:12]):
        assert main(["cache", "show", name, *place[backend]]) == 0
        assert json.loads(capsys.readouterr().out)["reasoning"] == entry["reasoning"] != ""
    assert main(["cache", "show", "nobody", *place[backend]]) == 1


@both_ways
def test_clearing(backend: str, place: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Only what fits goes."""
    assert main(["cache", "clear", "--yes", "--provider", "deepseek", *place[backend]]) == 0
    assert capsys.readouterr().out == "2 turns forgotten\n"
    assert main(["cache", "list", "--json", *place[backend]]) == 0
    assert [entry["provider"] for entry in json.loads(capsys.readouterr().out)["entries"]] == ["kimi"]


def test_clearing_asks_first(
    place: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a yes nothing is lost, and that is said."""
    monkeypatch.setattr("sys.stdin.readline", lambda: "\n", raising=False)
    assert main(["cache", "clear", *place["store"]]) == 1
    assert "Nothing was forgotten. Use --yes" in capsys.readouterr().err
    assert main(["cache", "list", *place["store"]]) == 0


def test_a_wrong_token_and_no_gateway(place: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Both say what to do."""
    assert main(["cache", "stats", "--url", place["gateway"][1], "--token", "wrong"]) == 2
    assert "--token" in capsys.readouterr().err
    assert main(["cache", "stats", "--url", "http://127.0.0.1:1", "--token", TOKEN]) == 2
    assert "--store" in capsys.readouterr().err
