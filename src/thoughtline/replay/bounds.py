"""The context that Claude binds its thinking to, apart from the conversation: the system prompt and the tools."""

from __future__ import annotations

from itertools import takewhile

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import read_or_none
from thoughtline.providers.anthropic import ATTRIBUTION
from thoughtline.replay.visible import said_by, without_cache_marks
from thoughtline.values.items import Item, Text
from thoughtline.values.records import digest_of
from thoughtline.values.turns import Transcript, Turn


class _Tool(Struct):
    defer_loading: bool = False


_tool = msgspec.json.Decoder(_Tool)


def bound_of(transcript: Transcript) -> bytes:
    """Return a digest of the system prompt and the tools of a conversation, without cache markers.

    Anthropic strips Claude Code's attribution line (gateway protocol, 2026-08-22), and tools that are loaded on
    reference are not part of the prefix (Preserved thinking, 2026-09-26).
    """
    prompt = list(takewhile(lambda turn: turn.role == "system", transcript.turns))
    if "attribution" in FORMATS[transcript.format].quirks:
        prompt = [without_attribution(turn) for turn in prompt]
    tools = [without_cache_marks(tool).encode() for tool in transcript.tools if not _is_deferred(tool)]
    return digest_of(*map(said_by, prompt), b"", *tools)


def _is_deferred(tool: Raw) -> bool:
    if b'"defer_loading"' not in bytes(tool):
        return False
    read = read_or_none(_tool, tool)
    return read is not None and read.defer_loading


def is_attribution(item: Item) -> bool:
    """Whether it is the line that Claude Code writes as the first entry of its system prompt."""
    return isinstance(item, Text) and item.text.startswith(ATTRIBUTION)


def without_attribution(turn: Turn) -> Turn:
    """Return a system prompt without that line. A line inside a longer text is kept."""
    items = turn.items
    if len(items) > 1 and is_attribution(items[0]) and isinstance(items[0], Text) and "\n" not in items[0].text.strip():
        return replace(turn, items=items[1:])
    return turn


def unattributed(transcript: Transcript) -> Transcript:
    """Return a request without Claude Code's attribution line. For any other model it is part of the prompt, and it
    changes from version to version."""
    first = transcript.turns[0] if transcript.turns else None
    if "attribution" not in FORMATS[transcript.format].quirks or first is None or first.role != "system":
        return transcript
    items = without_attribution(first).items
    return transcript if len(items) == len(first.items) else transcript.with_items(0, items)
