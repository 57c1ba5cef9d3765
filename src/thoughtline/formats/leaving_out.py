"""Removes named members from a body, and nothing else.

A pattern names them: `messages[].refusal`, `messages[].content[thinking].cache_control`, `thinking.block_binding`,
`reasoning`. `[]` is every element of a list, `[kind]` each one with this `type`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Raw

from thoughtline.formats.json_text import NULL, decode_list, element_spans, encode, is_array, members, set_members
from thoughtline.values.errors import DecodeError

_ESSENTIAL = frozenset(
    {
        *("role", "content", "parts", "type", "name", "id", "text", "input", "output", "messages", "contents", "model"),
        *("tool_calls", "tool_call_id", "call_id", "tool_use_id", "function", "custom", "arguments", "tools", "system"),
        *("functionCall", "functionResponse", "inlineData", "toolUse", "toolResult", "image_url", "source", "file"),
    }
)
"""The essential members of a message: never removed, whatever an error says."""

_TELLING = frozenset({"refusal", "audio", "function_call"})
"""Members that may be the only content of a message: removed only if empty."""

_NOTHING = frozenset({b"null", b'""', b"[]", b"{}"})
_NAME = r"[\w$@-]{1,80}"
_PATTERN = re.compile(rf"{_NAME}(?:\[[\w.-]{{0,40}}\])?(?:\.{_NAME}(?:\[[\w.-]{{0,40}}\])?){{0,8}}", re.ASCII)
_KIND = re.compile(r'"([\w.-]{1,40})"', re.ASCII)


class _Step(NamedTuple):
    """A step into a member: an object, or the elements of a list that are of a kind (empty: any)."""

    name: str
    kind: str | None


def pattern_at(body: bytes, place: str, field: str) -> str | None:
    """The pattern of the member at a JSON pointer; None if it is missing or must stay."""
    path = [step for step in place.split("/") if step]
    here, kind, written = Raw(body), "", ""
    for name, inner in pairwise([*path, ""]):
        if name.isdecimal():
            continue
        here = _member(here, name)
        written += f"{name}."
        if inner.isdecimal():
            here = _element(here, int(inner))
            kind = _kind_of(here)
            written = f"{written[:-1]}[{kind}]."
    value = _member(here, field)
    return (
        written + field if value is not NULL and _may_go(field, value, kind) and is_pattern(written + field) else None
    )


def is_pattern(text: str) -> bool:
    return _PATTERN.fullmatch(text) is not None


def without_members(body: bytes, patterns: Iterable[str]) -> tuple[bytes, tuple[str, ...]]:
    """The body without the members that match, and the patterns that matched any."""
    found = []
    for pattern in patterns:
        *path, name = pattern.split(".")
        if encode(name) not in body:
            continue
        less = _without(body, [_step(one) for one in path], name, "")
        if less != body:
            found.append(pattern)
            body = less
    return body, tuple(found)


def _step(written: str) -> _Step:
    name, bracket, kind = written.partition("[")
    return _Step(name, kind[:-1] if bracket else None)


def _without(text: bytes, path: Sequence[_Step], name: str, kind: str) -> bytes:
    if text[:1] != b"{":
        return text
    if not path:
        value = _member(Raw(text), name)
        return set_members(text, [(name, None)]) if value is not NULL and _may_go(name, value, kind) else text
    step, rest = path[0], path[1:]
    inner = bytes(_member(Raw(text), step.name))
    if step.kind is None:
        less = _without(inner, rest, name, "")
    else:
        less = _without_in_list(inner, rest, name, step.kind) if is_array(inner) else inner
    return set_members(text, [(step.name, less)]) if less != inner else text


def _without_in_list(text: bytes, path: Sequence[_Step], name: str, kind: str) -> bytes:
    pieces, position = [], 0
    for start, end in element_spans(text):
        element = text[start:end]
        found = _kind_of(Raw(element))
        less = _without(element, path, name, found) if kind in ("", found) else element
        pieces += [text[position:start], less]
        position = end
    return b"".join([*pieces, text[position:]])


def _may_go(name: str, value: Raw, kind: str) -> bool:
    if name in _ESSENTIAL:
        return name == "content" and kind == "reasoning"  # of an item of Responses: the readable part of the thought
    return name not in _TELLING or bytes(value) in _NOTHING


def _member(text: Raw, name: str) -> Raw:
    return members(text).get(name, NULL) if bytes(text)[:1] == b"{" else NULL


def _element(text: Raw, at: int) -> Raw:
    try:
        found = decode_list(text)
    except DecodeError:
        return NULL
    return found[at] if at < len(found) else NULL


def _kind_of(element: Raw) -> str:
    kind = _KIND.fullmatch(bytes(_member(element, "type")).decode("utf-8", "replace"))
    return kind[1] if kind else ""
