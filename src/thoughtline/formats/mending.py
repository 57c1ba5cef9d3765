"""Repairs of elements that some servers reject: the name of each repair in a learned correction, and a body without
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from thoughtline.formats.json_text import array, element_spans, is_array, members, plain_value, set_members

EMPTY_THINKING = "empty thinking"
THOUGHT_PARTS = "thought parts"
UNSIGNED_THOUGHTS = "unsigned thoughts"
WORDS_BESIDE_THOUGHTS = "words beside thoughts"
"""For messages with calls: some templates accept either text or thoughts there, and the thoughts stay."""

_ITEMS = "items of type "


def items_of(kind: str) -> str:
    """The name of a repair that removes the elements of `input` of one type."""
    return _ITEMS + kind


class _List(NamedTuple):
    """The list that a repair edits: a member of the body, or one inside each of its elements."""

    outer: str
    inner: str
    is_refused: Callable[[Any], bool]


def _is_empty_thinking(element: Any) -> bool:
    is_thinking = element.get("type") == "thinking"
    return is_thinking and not str(element.get("thinking") or "").strip() and not element.get("signature")


def _is_thought(element: Any) -> bool:
    return element.get("thought") is True and "functionCall" not in element and "function_call" not in element


def _is_unsigned_thought(element: Any) -> bool:
    return element.get("type") == "thought" and not element.get("signature")


def _is_of(kind: str, element: Any) -> bool:
    return bool(element.get("type") == kind)


_LISTS = {
    EMPTY_THINKING: _List("messages", "content", _is_empty_thinking),
    THOUGHT_PARTS: _List("contents", "parts", _is_thought),
    UNSIGNED_THOUGHTS: _List("input", "", _is_unsigned_thought),
}


def mended(body: bytes, names: Iterable[str]) -> tuple[bytes, tuple[str, ...]]:
    """The repaired body, and the repairs that changed it."""
    done = []
    for name in names:
        less = _mended(body, name)
        if less != body:
            done.append(name)
            body = less
    return body, tuple(done)


def _mended(body: bytes, name: str) -> bytes:
    if name == WORDS_BESIDE_THOUGHTS:
        return _edited_list(body, "messages", _without_words)
    if name.startswith(_ITEMS):
        kind = name.removeprefix(_ITEMS)
        return _edited_list(body, "input", partial(_without, is_refused=partial(_is_of, kind)))
    mend = _LISTS.get(name)
    if mend is None:
        return body  # a correction learned by another version
    without = partial(_without, is_refused=mend.is_refused)
    if not mend.inner:
        return _edited_list(body, mend.outer, without)
    return _edited_list(body, mend.outer, lambda one: _edited_list(one, mend.inner, without) or None)


def _without(element: bytes, *, is_refused: Callable[[Any], bool]) -> bytes | None:
    return None if element[:1] == b"{" and is_refused(plain_value(element)) else element


def _without_words(element: bytes) -> bytes:
    value = plain_value(element)
    if not isinstance(value, dict) or not value.get("tool_calls") or not value.get("content"):
        return element
    thinks = any(value.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return set_members(element, [("content", b'""')]) if thinks else element


def _edited_list(text: bytes, name: str, edit: Callable[[bytes], bytes | None]) -> bytes:
    """An object whose list has each element edited, or removed if the edit returns None. At least one element stays."""
    held = members(text).get(name) if text[:1] == b"{" else None
    if held is None or not is_array(held):
        return text
    listed = bytes(held)
    before = [listed[start:end] for start, end in element_spans(listed)]
    after = [one for one in map(edit, before) if one is not None]
    if after == before or not after:
        return text
    return set_members(text, [(name, array(after))])
