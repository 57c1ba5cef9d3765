"""Records survive being kept."""

from __future__ import annotations

import pytest
from msgspec import Raw

from thoughtline.values.errors import DecodeError
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    Item,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.records import Key, Record, RecordId, decode_record, encode_record
from thoughtline.values.turns import Provenance

RAW = Raw(b'{"n": 1e400, "s":"\\u00e9"}')
ITEMS: tuple[Item, ...] = (
    ReasoningText("a thought", "c2ln", raw=RAW),
    ReasoningSummary("short", id="rs_1", index=0),
    ReasoningEncrypted("gAAAA", raw=RAW),
    ReasoningServerToolCall("search", raw=RAW),
    Text("hello", Seal("c2ln", GOOGLE_GEMINI_V1)),
    ToolCall("look", '{"a": 1.0}', "call_1", seal=Seal("c2ln", GOOGLE_GEMINI_V1)),
    ToolResult(Raw(b'"ok"'), "call_1"),
    Unknown("strange", RAW),
)
WHERE = Provenance("t", "deepseek", "host", "acct", "m", "m-1", "openai_chat", "deepseek", session="s")


def made(*items: Item, is_complete: bool = True) -> Record:
    return Record(RecordId("r"), WHERE, items, (Key("lineage-v1:00"),), 1.5, is_complete)


def test_every_kind_of_item_comes_back() -> None:
    """What was kept is what was captured, raw JSON byte for byte."""
    record = made(*ITEMS)
    kept = decode_record(encode_record(record))
    assert kept == record
    assert bytes(kept.items[0].raw) == bytes(RAW)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_whether_a_turn_had_reasoning(item: Item) -> None:
    """Reasoning in either placement counts; a turn without is a fact of its own."""
    assert made(item).has_reasoning is not isinstance(item, (ToolResult, Unknown))
    assert not made(Text("plain"), is_complete=False).has_reasoning


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'{"id":1}'])
def test_a_record_that_is_none_is_refused_by_name(data: bytes) -> None:
    """A damaged entry is an error with a name, and says nothing of what it held."""
    with pytest.raises(DecodeError):
        decode_record(data)


COUNTED = [
    (ReasoningText("four"), 4),
    (ReasoningSummary("three"), 5),
    (ReasoningEncrypted("gAAAA"), 5),
    (ReasoningServerToolCall("search", raw=Raw(b"{}")), 2),
    (Text("not counted", Seal("c2ln", GOOGLE_GEMINI_V1)), 0),
]


@pytest.mark.parametrize(("item", "chars"), COUNTED, ids=lambda value: type(value).__name__)
def test_how_much_reasoning_a_turn_holds(item: Item, chars: int) -> None:
    """Readable or encrypted; visible content is not counted."""
    assert made(item).reasoning_chars == chars
    assert made(item, item).reasoning_chars == 2 * chars


@pytest.mark.parametrize(("answered", "model"), [("m-1", "m-1"), ("", "asked")])
def test_the_model_is_what_the_provider_says_it_is(answered: str, model: str) -> None:
    """Or what was asked for, where it doesn't say."""
    where = Provenance("t", "deepseek", "host", "acct", "asked", answered, "openai_chat", "deepseek")
    assert Record(RecordId("r"), where, (), (), 1.5).model == model
