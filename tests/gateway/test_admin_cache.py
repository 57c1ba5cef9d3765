"""Stored turns in the admin API: entries, statistics, deletion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.managed_gateways import CACHE, Managed, followed, managed
from thoughtline.gateway.admin.cache import entry_answer
from thoughtline.stores import Entry
from thoughtline.values.items import ReasoningEncrypted, ReasoningSummary
from thoughtline.values.records import Record, RecordId
from thoughtline.values.turns import Provenance

STATS = {
    "memoryEntries",
    "dbEntries",
    "totalEntries",
    "totalChars",
    "hits",
    "misses",
    "replays",
    "replayRate",
    "byProvider",
    "byModel",
    "oldestEntry",
    "newestEntry",
}
ENTRY = {"toolCallId", "provider", "model", "reasoning", "charCount", "createdAt", "expiresAt"}
FURTHER = {"tenant", "session", "agent", "endpoint", "format", "isComplete", "toolCallIds", "id", "outcome"}
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@pytest.fixture(params=["memory", "sqlite"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Managed]:
    with managed(store_url="memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/kept.db") as one:
        yield one


def test_an_empty_memory(gateway: Managed) -> None:
    """An empty store has the same members, all zero."""
    found = gateway.get(CACHE)
    assert set(found) == {"stats", "entries", "cursor"}
    assert set(found["stats"]) == STATS
    assert (found["entries"], found["cursor"]) == ([], None)
    assert found["stats"]["replayRate"] == "0.0%"
    assert (found["stats"]["oldestEntry"], found["stats"]["byProvider"]) == (None, {})


def test_an_entry_for_each_turn(gateway: Managed) -> None:
    """Newest first, with its reasoning word for word, its calls, its origin and what was done about it."""
    answers = gateway.ask("list the files", turns=2)
    found = gateway.get(CACHE)
    entries = found["entries"]
    assert [entry["reasoning"] for entry in entries] == [one["reasoning_content"] for one in reversed(answers)]
    newest = entries[0]
    assert set(newest) >= ENTRY | FURTHER
    assert newest["toolCallIds"] == [call["id"] for call in answers[1].get("tool_calls") or []]
    assert newest["toolCallId"] == next(iter(newest["toolCallIds"]), None)
    assert newest["charCount"] == len(answers[1]["reasoning_content"])
    assert newest["outcome"]["restored"] == 1
    assert all(DATE.fullmatch(newest[name]) for name in ("createdAt", "expiresAt"))


def test_statistics_add_up(gateway: Managed) -> None:
    """Entries and characters by provider and model sum to the totals; restoring counts as a replay."""
    gateway.ask("list the files", turns=2)
    gateway.ask("and here", provider="kimi", model="kimi-k2-thinking")
    found = gateway.get(CACHE)
    stats, entries = found["stats"], found["entries"]
    assert stats["totalEntries"] == len(entries) == 3
    assert stats["totalChars"] == sum(entry["charCount"] for entry in entries)
    for shares in (stats["byProvider"], stats["byModel"]):
        assert sum(share["entries"] for share in shares.values()) == 3
        assert sum(share["chars"] for share in shares.values()) == stats["totalChars"]
    assert set(stats["byProvider"]) == {"deepseek", "kimi"}
    assert (stats["replays"], stats["hits"], stats["misses"], stats["replayRate"]) == (1, 1, 0, "100.0%")
    assert (stats["oldestEntry"], stats["newestEntry"]) == (entries[-1]["createdAt"], entries[0]["createdAt"])


def test_hits_and_misses_are_turns(gateway: Managed) -> None:
    """Nine turns restored and two unknown are 82 %; turns whose client kept their reasoning don't count."""
    answers = gateway.ask("list the files", turns=4)  # which restores 0 + 1 + 2 + 3
    opening = {"role": "user", "content": "list the files"}
    kept = [opening, *(message for answer in answers[:3] for message in followed(answer))]
    bare = [{name: value for name, value in message.items() if name != "reasoning_content"} for message in kept]
    for history in (bare, kept):
        assert gateway.send(history).status_code == 200
    before = gateway.get(CACHE)["stats"]
    unknown = [message for word in "ab" for message in (opening, {"role": "assistant", "content": word})]
    gateway.send([*unknown, opening])
    after = gateway.get(CACHE)["stats"]
    assert (before["hits"], before["misses"]) == (9, 0)
    assert (after["hits"], after["misses"], after["replayRate"]) == (9, 2, "81.8%")


@pytest.mark.parametrize("params", [{"provider": "DeepSeek"}, {"model": "DEEPSEEK-V4-Pro"}])
def test_filters_take_any_case(gateway: Managed, params: dict[str, str]) -> None:
    """In any case; an unknown value finds nothing."""
    gateway.ask("list the files")
    gateway.ask("and here", provider="kimi", model="kimi-k2-thinking")
    assert [entry["provider"] for entry in gateway.get(CACHE, **params)["entries"]] == ["deepseek"]
    assert gateway.admin.delete(CACHE, params=params).json() == {"deleted": 1}


@pytest.mark.parametrize("name", ["moonshot", "Moonshot", "KIMI"])
def test_filters_take_aliases(gateway: Managed, name: str) -> None:
    """A provider by one of its aliases."""
    gateway.ask("list the files")
    gateway.ask("and here", provider="kimi", model="kimi-k2-thinking")
    assert [entry["provider"] for entry in gateway.get(CACHE, provider=name)["entries"]] == ["kimi"]


def test_filters_narrow_the_list(gateway: Managed) -> None:
    """By provider, model, session, tenant and tool call; all given values must match."""
    (one,) = gateway.ask("list the files", session="s/1 &?x")
    gateway.ask("list the files", key="other", provider="kimi", model="kimi-k2-thinking")
    first = next(entry for entry in gateway.get(CACHE)["entries"] if entry["provider"] == "deepseek")
    call = one["tool_calls"][0]["id"]
    for name, value in {
        "provider": "deepseek",
        "model": "deepseek-v4-pro",
        "session": "s/1 &?x",
        "tenant": first["tenant"],
        "toolCallId": call,
    }.items():
        assert [entry["id"] for entry in gateway.get(CACHE, **{name: value})["entries"]] == [first["id"]], name
    assert gateway.get(CACHE, provider="kimi", toolCallId=call)["entries"] == []
    assert gateway.get(CACHE, provider="")["entries"] == []


@pytest.mark.parametrize(("limit", "given"), [("0", 1), ("-5", 1), ("2", 2), ("200", 3), ("99999999999999999999", 3)])
def test_limit_is_brought_into_bounds(gateway: Managed, limit: str, given: int) -> None:
    """Below one is one, above two hundred is two hundred."""
    for number in range(3):
        gateway.ask(f"opening {number}")
    assert len(gateway.get(CACHE, limit=limit)["entries"]) == given


def test_pages_hold_each_entry_once(gateway: Managed) -> None:
    """Cursors lead through all pages, and end."""
    for number in range(5):
        gateway.ask(f"opening {number}")
    seen: list[str] = []
    page = gateway.get(CACHE, limit=2)
    while True:
        seen += [entry["id"] for entry in page["entries"]]
        if page["cursor"] is None:
            break
        page = gateway.get(CACHE, limit=2, cursor=page["cursor"])
    assert seen == [entry["id"] for entry in gateway.get(CACHE)["entries"]]
    assert len(set(seen)) == 5


@pytest.mark.parametrize("cursor", ["", "x", "-1", "nan:00", "9" * 19, "9" * 400])
def test_a_cursor_that_no_page_gave(gateway: Managed, cursor: str) -> None:
    """400, and the store is not affected."""
    gateway.ask("list the files")
    response = gateway.admin.get(CACHE, params={"cursor": cursor})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_cursor")
    assert gateway.get("/readyz")["store"] == "ok"


def test_forgetting_by_filter(gateway: Managed) -> None:
    """One call, one provider, one session, one tenant: exactly those are deleted and counted."""
    (one,) = gateway.ask("first", session="s1")
    gateway.ask("second", session="s2")
    gateway.ask("third", provider="kimi", model="kimi-k2-thinking")
    gateway.ask("fourth", key="other")
    tenant = gateway.get(CACHE)["entries"][0]["tenant"]
    hits = gateway.get(CACHE)["stats"]["misses"]
    for params, left in (
        ({"toolCallId": one["tool_calls"][0]["id"]}, 3),
        ({"session": "s2"}, 2),
        ({"provider": "kimi"}, 1),
        ({"provider": "kimi"}, 1),
        ({"tenant": tenant}, 0),
    ):
        before = gateway.get(CACHE)["stats"]["totalEntries"]
        response = gateway.admin.delete(CACHE, params=params)
        assert response.json() == {"deleted": before - left}, params
        assert len(gateway.get(CACHE)["entries"]) == left
    assert gateway.get(CACHE)["stats"]["misses"] == hits


def test_forgetting_everything_resets_the_counts(gateway: Managed) -> None:
    """All entries are deleted, and hits, misses and replays are reset; the next request is not restored."""
    gateway.ask("list the files", turns=3)
    assert gateway.admin.delete(CACHE).json() == {"deleted": 3}
    found = gateway.get(CACHE)
    stats = found["stats"]
    assert found["entries"] == []
    assert (stats["hits"], stats["misses"], stats["replays"], stats["replayRate"]) == (0, 0, 0, "0.0%")
    assert (stats["totalEntries"], stats["totalChars"]) == (0, 0)


def test_no_reasoning_in_the_log(gateway: Managed) -> None:
    """Only the admin sees reasoning in the listing: the log has neither reasoning nor a key nor a token."""
    answers = gateway.ask("list the files", key="a-secret-key", turns=2)
    gateway.get(CACHE)
    gateway.anyone.get("/login", params={"token": "a-wrong-token"})
    text = str(gateway.gateway.log)
    for secret in (*(one["reasoning_content"] for one in answers), "a-secret-key", "a-wrong-token", "an-admin-token"):
        assert secret not in text


def test_a_failing_store_is_reported() -> None:
    """A deletion that failed is a 503 with a remedy, not a success."""
    with managed(store_url="sqlite:////dev/null/nowhere.db") as gateway:
        gateway.ask("list the files")
        assert len(gateway.get(CACHE)["entries"]) == 1
        response = gateway.admin.delete(CACHE)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "store_unavailable")
        assert gateway.get("/readyz")["store"] == "degraded"


def test_encrypted_reasoning_is_counted_and_not_shown() -> None:
    """Reasoning that only its maker can read has a size, but no text."""
    where = Provenance("t", "openai", "https://x", "a", "gpt", "gpt", "openai_responses", "native")
    items = (ReasoningSummary("it looked"), ReasoningEncrypted("c2VhbGVk"), ReasoningSummary("it saw"))
    answer = entry_answer(Entry(Record(RecordId("r"), where, items, (), 1.0), 2.0))
    assert (answer.reasoning, answer.kinds) == ("it looked\n\nit saw", ["summary", "encrypted", "summary"])
    assert answer.char_count == len("it looked" + "c2VhbGVk" + "it saw")
