"""Marks for prompt caching: where a format has them, and how to set one.

A mark says that a provider may cache everything up to its place. Two shapes exist: Anthropic's member `cache_control`,
on a block or a part, and Converse's block `cachePoint`, after the block it marks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Raw

from thoughtline.formats.json_text import NULL, elements, is_array, is_given, members, set_members
from thoughtline.providers import Dialect
from thoughtline.values.items import Item, ToolResult

CACHE_CONTROL = "cache_control"
USUAL_MARK = Raw(b'{"type":"ephemeral"}')
"""Five minutes, renewed by each use (https://platform.claude.com/docs/en/build-with-claude/prompt-caching)."""


class CacheMarks(NamedTuple):
    """How a format marks what to cache. `word` occurs in every body that has a mark.

    `of` returns the mark of an item, and `put` an item with one; None if it can't have any. `stands_apart`: a mark is
    an item of its own, after the marked one. `on_messages`: a message may have one too. `is_usual`: every server of the
    format accepts marks; elsewhere the contract says so. `is_needed`: the models that the format was made for cache
    nothing without one, so a client that sets none wants none.
    """

    word: bytes
    of: Callable[[Item], Raw | None]
    put: Callable[[Item, Raw, Dialect], tuple[Item, ...] | None]
    stands_apart: bool = False
    on_messages: bool = False
    is_usual: bool = False
    is_needed: bool = False


def member_mark(item: Item) -> Raw | None:
    """The `cache_control` of an item, or of a part of a result."""
    found = mark_of(item.raw)
    if found is None and isinstance(item, ToolResult) and is_array(item.content):
        found = next((mark for part in elements(item.content) if (mark := mark_of(part)) is not None), None)
    return found


def mark_of(raw: Raw | bytes) -> Raw | None:
    """The `cache_control` of an object."""
    if bytes(raw)[:1] != b"{" or CACHE_CONTROL.encode() not in bytes(raw):
        return None
    mark = members(raw).get(CACHE_CONTROL, NULL)
    return mark if is_given(mark) else None


def with_mark(raw: bytes | Raw, mark: Raw) -> Raw:
    """An object with this `cache_control`."""
    return Raw(set_members(raw, [(CACHE_CONTROL, bytes(mark))]))


def without_mark(raw: bytes | Raw) -> Raw:
    """An object without its `cache_control`."""
    return Raw(set_members(raw, [(CACHE_CONTROL, None)]))
