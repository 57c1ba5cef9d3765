"""Weaving generated turns: any mix of reasoning, text, calls and items of unknown kinds, as any client shows it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.replay import weaving
from thoughtline.replay.visible import other_name
from thoughtline.replay.weaving import same_reasoning, spread, weave
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    reasoning_of,
)

SIGNED = Seal("EsA/+b==", GOOGLE_GEMINI_V1)
SPELLED_ANEW = Seal("EsA_-b", GOOGLE_GEMINI_V1)


def unknown(kind: str, seal: Seal | None = None, **members: object) -> Unknown:
    return Unknown(kind, Raw(json.dumps({"type": kind, **members}).encode()), seal)


class MadeUp:
    """A turn, and clients' versions of it. Items are often alike: kinds, values and words are few."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.turn = tuple(self._item(number) for number in range(self.random.randint(1, 9)))

    def _item(self, number: int) -> Item:
        pick = self.random.choice
        match pick(("thought", "thought", "sealed", "words", "call", "named", "nameless")):
            case "thought":
                return ReasoningText(pick(("A", "B")), f"sig-{number}")
            case "sealed":
                return ReasoningEncrypted(f"data-{number}")
            case "words":
                return Text(f"{pick(('Yes', 'No'))} {number}.")
            case "call":
                return ToolCall(pick(("bash", "read")), pick(("{}", '{"a": 1}')), f"call_{number}")
            case "named":
                return unknown(pick(("web_search_call", "mcp_call")), id=f"ws_{number}", query="same")
            case _:
                return unknown(pick(("container_upload", "quantum_call")), file=pick(("f1", "f2")))

    def shown(self) -> tuple[Item, ...]:
        """A client's version: some reasoning or none, some items of unknown kinds moved, dropped or rewritten."""
        keeps_thoughts = self.random.random() < 0.3
        shown = [item for item in self.turn if keeps_thoughts or not isinstance(item, REASONING_KINDS)]
        if self.random.random() < 0.4:
            shown = [item for item in shown if not isinstance(item, Unknown) or self.random.random() < 0.5]
        if self.random.random() < 0.3:
            self.random.shuffle(shown)
        return tuple(self._rewritten(item) for item in shown)

    def _rewritten(self, item: Item) -> Item:
        if isinstance(item, Unknown) and self.random.random() < 0.3:
            value = dict(reversed(json.loads(bytes(item.raw)).items()))
            return replace(item, raw=Raw(json.dumps(value | {"note": None}).encode()))
        return item


def value_of(item: Item) -> str:
    """An item without what a library adds."""
    if not isinstance(item, Unknown):
        return repr(item)
    return json.dumps({k: v for k, v in json.loads(bytes(item.raw)).items() if v is not None}, sort_keys=True)


@pytest.mark.parametrize("part", range(4))
def test_made_up_turns_come_out_as_they_were(part: int) -> None:
    """All reasoning once; exactly the items that the client shows; all in the record's order."""
    for seed in range(part * 1000, part * 1000 + 1000):
        made = MadeUp(seed)
        shown = made.shown()
        woven = weave(made.turn, shown)
        assert same_reasoning(reasoning_of(woven), reasoning_of(made.turn)), seed
        visible = [item for item in woven if not isinstance(item, REASONING_KINDS)]
        client = [item for item in shown if not isinstance(item, REASONING_KINDS)]
        assert sorted(map(repr, visible)) == sorted(map(repr, client)), seed
        left = Counter(map(value_of, visible))
        rest = iter(map(value_of, made.turn))
        assert all(any(value == other for other in rest) for value in map(value_of, woven)), seed
        assert left == Counter(map(value_of, client)), seed
        assert weave(made.turn, woven) == woven, seed


@pytest.mark.parametrize("part", range(2))
def test_a_turn_in_pieces_is_the_same_turn(part: int) -> None:
    """Written as several messages, a turn has all its reasoning once, and no message has an item of another."""
    for seed in range(part * 500, part * 500 + 500):
        made = MadeUp(seed)
        client = [item for item in made.turn if not isinstance(item, REASONING_KINDS)]
        if not client:
            continue
        cut = made.random.randint(0, len(client))
        woven = spread(made.turn, [client[:cut], client[cut:]])
        assert [*woven[0], *woven[1]] == [*made.turn], seed
        for items, own in zip(woven, (client[:cut], client[cut:]), strict=True):
            assert [item for item in items if not isinstance(item, REASONING_KINDS)] == own, seed


def test_what_says_the_same_is_the_clients_own() -> None:
    """A turn that differs only in JSON and base64 alphabet is the client's own turn, unchanged."""
    call = ToolCall("bash", "{}", "c", seal=SIGNED)
    shown = (ToolCall("bash", "{}", "c", seal=SPELLED_ANEW, raw=Raw(b'{"as": "it came"}')),)
    assert weave((call,), shown) == shown


@pytest.mark.parametrize("lost", ["members", "ids", "nothing"])
def test_a_seal_goes_on_the_code_it_was_made_for(lost: str) -> None:
    """Items without an id are identified by their value, or by what a library left of it; never by their kind alone."""
    first, second = (
        Unknown("executableCode", Raw(f'{{"executableCode": {{"code": "{n}", "id": "{n}"}}}}'.encode()), Seal(n))
        for n in "12"
    )
    writers: dict[str, Callable[[str], str]] = {
        "members": lambda n: f'{{"executableCode": {{"code": "{n}"}}}}',
        "ids": lambda n: f'{{"executableCode": {{"code": "{n}", "id": null}}}}',
        "nothing": lambda n: f'{{"executableCode": {{"id": "{n}", "code": "{n}"}}}}',
    }
    left = writers[lost]
    shown = [Unknown("executableCode", Raw(left(n).encode())) for n in "12"]
    assert [item.seal for item in weave((first, second), shown) if isinstance(item, Unknown)] == [Seal("1"), Seal("2")]
    other = (Unknown("executableCode", Raw(b'{"executableCode": {"code": "3"}}')),)
    assert weave((first, second), other) == other


def test_results_of_a_providers_tool_are_known_by_their_call() -> None:
    """Converse keeps the result of its own tool in the model's message."""
    result = ToolResult(Raw(b'[{"text": "3"}]'), "t1")
    record = (
        ReasoningText("A", "s1"),
        ToolCall("ground", "{}", "t1"),
        result,
        ReasoningText("B", "s2"),
        Text("Three."),
    )
    shown = (record[4], record[1], ToolResult(Raw(b'[{"text":"3"}]'), "t1"))
    woven = weave(record, shown)
    assert [type(item) for item in woven] == [type(item) for item in record]


def test_a_long_turn_is_woven_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand items of one unknown kind in another order: a few comparisons per item, not one per pair."""
    looks = 0

    def looked(item: Unknown | ToolResult) -> str:
        nonlocal looks
        looks += 1
        return other_name(item)

    monkeypatch.setattr(weaving, "other_name", looked)
    record = [unknown("n", id=str(number)) for number in range(10_000)]
    woven = weave((ReasoningText("A", "s"), *record), record[::-1])
    assert woven == (ReasoningText("A", "s"), *record)
    assert looks <= 4 * len(record)
