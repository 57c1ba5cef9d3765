"""Findings are values: which rule, where, what a provider would answer, and what to do."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.providers.refusals import RuleCode
from thoughtline.values.turns import FormatName, Turn


class Finding(Struct, frozen=True, gc=False):
    """What is wrong, or what was done about it.

    `place` is a JSON pointer into the request, or names what an answer lost (`answer/notes`). `answer` is what the
    provider would say to it, word for word where that is known; empty where it would say nothing. `remedy` is for
    people.
    """

    rule: RuleCode
    place: str
    message: str
    remedy: str
    answer: str = ""
    status: int = 0


_LISTS: dict[FormatName, tuple[str, str]] = {
    "openai_chat": ("messages", ""),
    "ollama_chat": ("messages", ""),
    "anthropic_messages": ("messages", "content"),
    "bedrock_converse": ("messages", "content"),
    "gemini_generate": ("contents", "parts"),
    "openai_responses": ("input", ""),
    "ai_sdk_ui": ("", ""),
}


def place_of(format: FormatName, turn: Turn, item: int | None = None, field: str = "") -> str:
    """Where a turn stands in its request, or one of its items, or a member of it."""
    outer, inner = _LISTS[format]
    at = turn.at + (item or 0 if format == "openai_responses" else 0)
    place = f"/{outer}/{at}"
    if inner and item is not None:
        place += f"/{inner}/{item}"
    return f"{place}/{field}" if field else place
