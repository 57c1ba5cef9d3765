"""OpenRouter's codec: reading the entries of `reasoning_details` and writing them back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.library.codecs import EMPTY_DETAILS, OpenRouterReasoningCodec, Thought
from thoughtline.replay.turn_audit import ReplayContract, audit_replay
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    GOOGLE_GEMINI_V1,
    NO_RAW,
    OPENAI_RESPONSES_V1,
    UNKNOWN_FORMAT,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Unknown,
)

OPENROUTER = OpenRouterReasoningCodec()
BARE = b'{ "role":"assistant","content":"caf\\u00e9", "x":1e400,"x":[] }'

ENTRIES: dict[str, tuple[str, Thought]] = {
    "signed text": (
        '{"type":"reasoning.text","text":"why","signature":"c2ln","format":"anthropic-claude-v1","index":0,"id":"a"}',
        ReasoningText("why", "c2ln", ANTHROPIC_CLAUDE_V1, "a", 0),
    ),
    "summary": (
        '{"type":"reasoning.summary","summary":"told","format":"openai-responses-v1","index":0}',
        ReasoningSummary("told", OPENAI_RESPONSES_V1, None, 0),
    ),
    "encrypted": (
        '{"type":"reasoning.encrypted","data":"gAAAA","id":"rs_1","format":"google-gemini-v1"}',
        ReasoningEncrypted("gAAAA", GOOGLE_GEMINI_V1, "rs_1"),
    ),
    "server tool call": (
        '{"type":"reasoning.server_tool_call","tool_name":"search","arguments":"{}","result":"[]","format":"unknown"}',
        ReasoningServerToolCall("search"),
    ),
    "no format": ('{"type":"reasoning.text","text":"why"}', ReasoningText("why", None, ANTHROPIC_CLAUDE_V1)),
    "null format": ('{"type":"reasoning.text","text":"why","format":null}', ReasoningText("why")),
    "a format nobody knows": (
        '{"type":"reasoning.text","text":"why","format":"new-maker-v7"}',
        ReasoningText("why", None, ReasoningFormat("new-maker-v7")),
    ),
    "null id": (
        '{"type":"reasoning.text","text":"why","id":null,"format":"unknown"}',
        ReasoningText("why", None, UNKNOWN_FORMAT),
    ),
    "no text": (
        '{"type":"reasoning.text","signature":"c2ln","format":"unknown"}',
        ReasoningText("", "c2ln", UNKNOWN_FORMAT),
    ),
    "null text and signature": (
        '{"type":"reasoning.text","text":null,"signature":null,"format":"unknown"}',
        ReasoningText(""),
    ),
    "members nobody knows, oddly written": (
        '{ "z" : 1.50,"type":"reasoning.summary", "summary":"\\u00e9","format":"unknown" }',
        ReasoningSummary("é"),
    ),
    "a type nobody knows": (
        '{"type":"reasoning.image","url":"data:","text":5}',
        Unknown("reasoning.image", Raw(b'{"type":"reasoning.image","url":"data:","text":5}')),
    ),
    "no type": ('{"text":"why"}', Unknown("", Raw(b'{"text":"why"}'))),
}


def message_with(details: str) -> bytes:
    return f'{{"role":"assistant","reasoning_details":{details},"content":null}}'.encode()


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_read_and_comes_back_as_it_was(name: str) -> None:
    """Whatever it lacks, and from any provider: it is written unchanged, byte for byte."""
    text, expected = ENTRIES[name]
    items = OPENROUTER.parse_response(message_with(f"[{text}]"))
    assert [replace(item, raw=expected.raw) for item in items] == [expected]
    written = OPENROUTER.write_assistant(BARE, items)
    assert written == BARE[:-2] + b',"reasoning_details":[' + text.encode() + b"] }"


def test_all_entries_in_their_order() -> None:
    """Never sorted, joined or deduplicated, and the message around them keeps its bytes."""
    texts = [text for text, _ in ENTRIES.values()] * 2
    whole = message_with("[" + " ,\n".join(texts) + "]")
    items = OPENROUTER.parse_response(whole)
    assert OPENROUTER.write_assistant(whole, items) == whole
    assert [item.raw for item in items] == [Raw(text.encode()) for text in texts]
    assert json.loads(OPENROUTER.write_assistant(b"{}", items))["reasoning_details"] == [*map(json.loads, texts)]


ENTRY: dict[str, Any] = {"type": "reasoning.text", "text": "why", "format": "unknown"}
WHY = ReasoningText("why", None, UNKNOWN_FORMAT)
GIVEN: dict[str, Any] = {
    "the entries": [ENTRY],
    "the message": {"role": "assistant", "reasoning_details": [ENTRY]},
    "the whole response": {"choices": [{"message": {"reasoning_details": [ENTRY]}}], "usage": {}},
}


@pytest.mark.parametrize("is_parsed", [True, False], ids=["parsed", "bytes"])
@pytest.mark.parametrize("name", GIVEN)
def test_what_can_be_given(name: str, is_parsed: bool) -> None:
    """Entries, a message or a response; as bytes or as parsed JSON."""
    raw = GIVEN[name] if is_parsed else b" " + json.dumps(GIVEN[name]).encode() + b"\n"
    assert [replace(item, raw=NO_RAW) for item in OPENROUTER.parse_response(raw)] == [WHY]


NOTHING: list[Any] = [
    {},
    {"reasoning_details": None},
    [],
    {"choices": []},
    {"choices": [{}]},
    {"choices": [None]},
    {"error": {}},
]


@pytest.mark.parametrize("raw", [*NOTHING, {"choices": [{"message": None}]}], ids=json.dumps)
def test_no_reasoning_is_no_items(raw: Any) -> None:
    """Absent, null, or no answer."""
    assert OPENROUTER.parse_response(raw) == ()


def test_no_items_write_nothing() -> None:
    """The message is unchanged, with or without its reasoning."""
    for message in (BARE, message_with("[]"), message_with('[{"type":"reasoning.text"}]')):
        assert OPENROUTER.write_assistant(message, ()) == message


def test_an_empty_list_is_not_the_same_as_none() -> None:
    """It is read and written as such, and an audit counts no reasoning."""
    items = OPENROUTER.parse_response(message_with("[]"))
    assert items == (EMPTY_DETAILS,)
    assert json.loads(OPENROUTER.write_assistant(BARE, items))["reasoning_details"] == []
    assert OPENROUTER.write_assistant(message_with("[]"), items) == message_with("[]")
    assert audit_replay(items, ReplayContract.REQUIRED_WITH_TOOLS, True).item_count == 0


def test_items_that_no_wire_has_seen() -> None:
    """Entries are made from known data; other wires' JSON is not passed on."""
    items = [ReasoningText("why", "c2ln", ANTHROPIC_CLAUDE_V1, raw=Raw(b'{"type":"thinking"}')), WHY]
    assert json.loads(OPENROUTER.write_assistant(message_with("[]"), items))["reasoning_details"] == [
        {"type": "reasoning.text", "text": "why", "signature": "c2ln", "format": "anthropic-claude-v1"},
        ENTRY,
    ]


json_values = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=6)
some_entry = st.fixed_dictionaries(
    {"type": st.sampled_from(["reasoning.text", "reasoning.summary", "reasoning.encrypted", "reasoning.new"])},
    optional={
        "text": st.none() | st.text(max_size=6),
        "summary": st.none() | st.text(max_size=6),
        "data": st.none() | st.text(max_size=6),
        "signature": st.none() | st.text(max_size=6),
        "id": st.none() | st.text(max_size=6),
        "format": st.none() | st.text(max_size=6),
        "index": st.none() | st.integers(0, 9),
        "x_stranger": st.lists(json_values, max_size=2),
    },
)


@given(entries=st.lists(some_entry, max_size=5))
def test_any_entries_come_back(entries: list[dict[str, Any]]) -> None:
    """The same values with their keys in the same order; an empty list as an empty list."""
    items = OPENROUTER.parse_response({"reasoning_details": entries})
    written = json.loads(OPENROUTER.write_assistant(BARE, items))["reasoning_details"]
    assert json.dumps(written) == json.dumps(entries)
