"""Sessions, and what was done for each of their turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.gateway.managed_gateways import Json, Managed, managed
from thoughtline.gateway.admin.sessions import reads_as_a_name


@pytest.fixture(params=["memory", "sqlite"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Managed]:
    with managed(store_url="memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/kept.db") as one:
        yield one


def view(gateway: Managed, session: str, **params: str | int) -> Json:
    return gateway.get(f"/api/sessions/{quote(session, safe='')}", **params)


def test_sessions_newest_first(gateway: Managed) -> None:
    """Each with its stored size, and its tenant."""
    gateway.ask("first", session="one", turns=2)
    gateway.ask("second", session="two")
    found = gateway.get("/api/sessions")["sessions"]
    assert [(one["id"], one["entries"]) for one in found] == [("two", 1), ("one", 2)]
    assert len({one["tenant"] for one in found}) == 1
    assert [one["id"] for one in gateway.get("/api/sessions", limit=1)["sessions"]] == ["two"]
    assert gateway.get("/api/sessions", tenant="nobody")["sessions"] == []


def test_turns_in_order_with_what_happened(gateway: Managed) -> None:
    """Oldest first; what was restored for each request, its durations, and what the model thought."""
    answers = gateway.ask("list the files", session="mine", turns=3)
    found = view(gateway, "mine")
    turns = found["turns"]
    assert [turn["charCount"] for turn in turns] == [len(one["reasoning_content"]) for one in answers]
    assert [turn["outcome"]["restored"] for turn in turns] == [0, 1, 2]
    for turn in turns:
        outcome = turn["outcome"]
        assert {"blank", "missing", "healed", "findings"} <= set(outcome)
        assert min(outcome["ownMs"], outcome["upstreamMs"]) > 0
    thoughts = [[one["text"] for one in turn["says"] if one["kind"] == "thought"] for turn in turns]
    assert thoughts == [[one["reasoning_content"]] for one in answers]
    assert [turn["before"] for turn in turns] == [None] * 3


def test_a_session_says_who_began_it_and_with_what(gateway: Managed) -> None:
    """The client, the model of the first turn, all models, when it began: in the list and on its page."""
    agent = {"user-agent": "claude-cli/2.0.14 (external, cli)"}
    gateway.anyone.headers.update(agent)
    gateway.ask("list the files", session="0199a1f2-aaaa-7bbb-8ccc-1234567890ab", turns=2)
    gateway.ask("list the files", session="0199a1f2-aaaa-7bbb-8ccc-1234567890ab", provider="kimi", model="kimi-k3")
    (row,) = gateway.get("/api/sessions")["sessions"]
    assert (row["title"], row["titledBy"]) == (None, "")
    assert (row["client"], row["clientTitle"], row["model"]) == ("claude-code", "Claude Code", "deepseek-v4-pro")
    assert row["models"] == ["deepseek/deepseek-v4-pro", "kimi/kimi-k3"]
    assert row["startedAt"] < row["newestEntry"]
    found = view(gateway, row["id"])
    assert {name: found[name] for name in row} == row
    assert found["startedAt"] == found["turns"][0]["createdAt"]


@pytest.mark.parametrize(
    ("session", "is_name"),
    [
        ("fix-the-parser", True),
        ("Refactor billing 2", True),
        ("release/2026-11", True),
        ("main", True),
        ("0199a1f2-aaaa-7bbb-8ccc-1234567890ab", False),
        ("deadbeefdeadbeef", False),
        ("ses_4kJd92LmQx8", False),
        ("cgIQwRtyPlkMn", False),
        ("~fd210ecc98af4be4c8df5914", False),
        ("12", False),
        ("thread_abc123xyz", False),
    ],
)
def test_only_a_name_is_a_title(session: str, is_name: bool) -> None:
    assert reads_as_a_name(session) is is_name


@pytest.mark.parametrize("name", ["a/b", "with space", "?&=#", "100%", "a%2Fb"])
def test_any_name_can_be_asked_for(gateway: Managed, name: str) -> None:
    """Ids are percent-encoded, with any content."""
    gateway.ask("list the files", session=name)
    assert view(gateway, name)["id"] == name


def test_a_session_without_a_name(gateway: Managed) -> None:
    """It has a name for people, which begins with `~` and can be asked for."""
    gateway.ask("list the files")
    (one,) = gateway.get("/api/sessions")["sessions"]
    assert one["id"].startswith("~")
    assert len(view(gateway, one["id"])["turns"]) == 1


def test_two_tenants_with_one_name(gateway: Managed) -> None:
    """Without a tenant it is a 400 that names both; with one, only that one's is shown."""
    gateway.ask("list the files", key="a", session="main")
    gateway.ask("list the files", key="b", session="main")
    tenants = {one["tenant"] for one in gateway.get("/api/sessions")["sessions"]}
    response = gateway.admin.get("/api/sessions/main")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "ambiguous_session")
    assert all(tenant in response.json()["error"]["remedy"] for tenant in tenants)
    for tenant in tenants:
        found = view(gateway, "main", tenant=tenant)
        assert {turn["tenant"] for turn in found["turns"]} == {found["tenant"]} == {tenant}


def test_pages_of_a_long_session(gateway: Managed) -> None:
    """The newest turns first, each page in order; a cursor leads to earlier ones."""
    gateway.ask("list the files", session="long", turns=5)
    every = [turn["id"] for turn in view(gateway, "long")["turns"]]
    last = view(gateway, "long", limit=2)
    before = view(gateway, "long", limit=2, cursor=last["cursor"])
    assert [turn["id"] for turn in (*before["turns"], *last["turns"])] == every[1:]


@pytest.mark.parametrize("path", ["/api/sessions/nobody", "/api/sessions/a%00b", "/api/sessions/%ff"])
def test_an_unknown_session(gateway: Managed, path: str) -> None:
    """404 with a remedy."""
    response = gateway.admin.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_session")
