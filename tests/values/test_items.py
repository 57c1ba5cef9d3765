"""Items: which of them are reasoning, and which token each carries."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec import Raw

from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    GOOGLE_GEMINI_V1,
    OPENAI_RESPONSES_V1,
    REASONING_KINDS,
    UNKNOWN_FORMAT,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    reasoning_of,
    seal_of,
)

SEAL = Seal("dG9rZW4", GOOGLE_GEMINI_V1)

SEALS: dict[str, tuple[Item, Seal | None]] = {
    "text": (Text("a"), None),
    "sealed text": (Text("a", SEAL), SEAL),
    "call": (ToolCall("look", "{}"), None),
    "sealed call": (ToolCall("look", "{}", "call_1", seal=SEAL), SEAL),
    "result": (ToolResult(Raw(b'"a"'), "call_1"), None),
    "signed reasoning": (ReasoningText("a", "c2ln", ANTHROPIC_CLAUDE_V1), Seal("c2ln", ANTHROPIC_CLAUDE_V1)),
    "signature without text": (ReasoningText("", "c2ln", ANTHROPIC_CLAUDE_V1), Seal("c2ln", ANTHROPIC_CLAUDE_V1)),
    "signature of an unknown maker": (ReasoningText("a", "c2ln"), Seal("c2ln", UNKNOWN_FORMAT)),
    "unsigned reasoning": (ReasoningText("a", None, ANTHROPIC_CLAUDE_V1), None),
    "an empty signature": (ReasoningText("a", "", ANTHROPIC_CLAUDE_V1), None),
    "encrypted reasoning": (ReasoningEncrypted("ZGF0YQ", OPENAI_RESPONSES_V1), Seal("ZGF0YQ", OPENAI_RESPONSES_V1)),
    "summary": (ReasoningSummary("a", OPENAI_RESPONSES_V1, "rs_1"), None),
    "server tool call": (ReasoningServerToolCall("search", OPENAI_RESPONSES_V1), None),
    "unknown": (Unknown("image", Raw(b"{}")), None),
    "sealed unknown": (Unknown("image", Raw(b"{}"), SEAL), SEAL),
}


@pytest.mark.parametrize("name", SEALS)
def test_the_token_an_item_carries(name: str) -> None:
    """With its maker, whichever of the two placements it has."""
    item, seal = SEALS[name]
    assert seal_of(item) == seal


def test_every_kind_of_item_is_in_the_table() -> None:
    """A new kind needs a row above."""
    assert {type(item) for item, _ in SEALS.values()} == set(get_args(Item))


def test_the_reasoning_among_items() -> None:
    """The four kinds, each with its place among the others, doubles included."""
    items = tuple(item for item, _ in SEALS.values())
    names = ["signed reasoning", "signature without text", "signature of an unknown maker", "unsigned reasoning"]
    names += ["an empty signature", "encrypted reasoning", "summary", "server tool call"]
    thoughts = tuple(SEALS[name][0] for name in names)
    assert reasoning_of(items) == thoughts
    assert reasoning_of(items[::-1] + items) == thoughts[::-1] + thoughts


def test_no_reasoning_among_items() -> None:
    """A seal on a call is not reasoning itself."""
    assert reasoning_of(()) == ()
    assert reasoning_of((Text("a", SEAL), ToolCall("look", "{}", seal=SEAL), Unknown("x", Raw(b"{}"), SEAL))) == ()


def test_the_kinds_of_reasoning_are_those_of_the_union() -> None:
    """The tuple for `isinstance` and the type for the checker name the same four."""
    assert set(REASONING_KINDS) == set(get_args(Reasoning))


@pytest.mark.parametrize("name", SEALS)
def test_items_are_frozen_values(name: str) -> None:
    """They can be compared and never change."""
    item, _ = SEALS[name]
    first = type(item).__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(item, first, "other")
    assert item == type(item)(*(getattr(item, field) for field in type(item).__struct_fields__))
