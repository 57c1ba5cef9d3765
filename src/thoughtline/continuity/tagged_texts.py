"""Where visible text stands in what each format sends: in the events of a stream, and in a whole response.

    read_event(format, payload)   the texts that one event brings, and those that end with it
    read_whole(format, body)      the texts of a whole response

A text is told by a key: pieces with one key are one text. What can't be read has no text: it passes as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from thoughtline.formats.json_text import Path
from thoughtline.values.turns import FormatName

TextKey: TypeAlias = tuple[str | int, ...]
Json: TypeAlias = Any

EVERY: TextKey = ()
"""In `ended`: whatever was open has ended."""


class Spot(NamedTuple):
    """A text, or more of one: what it says, where it stands, and whether that is all of it."""

    key: TextKey
    path: tuple[str | int, ...]
    text: str
    is_whole: bool = False


class Reading(NamedTuple):
    """What an event says: texts in their order, then which texts are over."""

    spots: tuple[Spot, ...] = ()
    ended: tuple[TextKey, ...] = ()


NOTHING = Reading()


def read_event(format: FormatName, payload: bytes) -> Reading:
    """The texts of one event of a stream."""
    if payload.strip() == b"[DONE]":
        return Reading((), (EVERY,))
    reader = _EVENTS.get(format)
    value = _decoded(payload)
    return reader(value) if reader is not None and isinstance(value, dict) else NOTHING


def read_whole(format: FormatName, body: bytes) -> Reading:
    """The texts of a whole response, each by itself."""
    reader = _BODIES.get(format)
    value = _decoded(body)
    return Reading(tuple(reader(value))) if reader is not None and isinstance(value, dict) else NOTHING


def _decoded(payload: bytes) -> Json:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _dicts(value: Json) -> Iterator[tuple[int, dict[str, Json]]]:
    """The objects of a list, with their places; nothing of what is no list."""
    for at, one in enumerate(value if isinstance(value, list) else ()):
        if isinstance(one, dict):
            yield at, one


def _inner(value: Json, name: str) -> dict[str, Json]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _contents(content: Json, key: TextKey, path: Path, *, is_whole: bool = False) -> Iterator[Spot]:
    """Content that is a text, or a list of parts of which some are."""
    if isinstance(content, str):
        yield Spot(key, (*path,), content, is_whole)
    for at, part in _dicts(content):
        if part.get("type") in ("text", "output_text") and isinstance(part.get("text"), str):
            yield Spot((*key, at) if is_whole else key, (*path, at, "text"), part["text"], is_whole)


# --- openai_chat ------------------------------------------------------------------------------------------------------


def _chat_event(value: Json) -> Reading:
    spots: list[Spot] = []
    ended: list[TextKey] = []
    for at, choice in _dicts(value.get("choices")):
        key = (choice.get("index", at),)
        spots += _contents(_inner(choice, "delta").get("content"), key, ("choices", at, "delta", "content"))
        ended += [key] if choice.get("finish_reason") is not None else []
    return Reading(tuple(spots), (*ended, EVERY) if value.get("error") else tuple(ended))


def _chat_body(value: Json) -> Iterator[Spot]:
    for at, choice in _dicts(value.get("choices")):
        content = _inner(choice, "message").get("content")
        yield from _contents(content, (at,), ("choices", at, "message", "content"), is_whole=True)


# --- anthropic_messages -----------------------------------------------------------------------------------------------


def _messages_event(value: Json) -> Reading:
    key = (value.get("index", 0),)
    match value.get("type"):
        case "content_block_start" if _inner(value, "content_block").get("type") == "text":
            return Reading(_string(value, "content_block", "text", key))
        case "content_block_delta" if _inner(value, "delta").get("type") == "text_delta":
            return Reading(_string(value, "delta", "text", key))
        case "content_block_stop":
            return Reading((), (key,))
        case "message_stop" | "message_delta" | "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _string(value: Json, outer: str, inner: str, key: TextKey) -> tuple[Spot, ...]:
    text = _inner(value, outer).get(inner)
    return (Spot(key, (outer, inner), text),) if isinstance(text, str) else ()


def _messages_body(value: Json) -> Iterator[Spot]:
    yield from _contents(value.get("content"), (), ("content",), is_whole=True)


# --- openai_responses -------------------------------------------------------------------------------------------------


def _responses_event(value: Json) -> Reading:
    key = (value.get("output_index", 0), value.get("content_index", 0))
    match value.get("type"):
        case "response.output_text.delta" if isinstance(value.get("delta"), str):
            return Reading((Spot(key, ("delta",), value["delta"]),))
        case "response.output_text.done" if isinstance(value.get("text"), str):
            return Reading((Spot((*key, "done"), ("text",), value["text"], True),), (key,))
        case "response.content_part.done":
            part = _inner(value, "part")
            is_text = part.get("type") == "output_text" and isinstance(part.get("text"), str)
            done = (Spot((*key, "part"), ("part", "text"), part["text"], True),) if is_text else ()
            return Reading(done, (key,))
        case "response.output_item.done":
            return Reading(tuple(_element(_inner(value, "item"), ("item",))), (EVERY,))
        case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
            return Reading(tuple(_output(_inner(value, "response"), ("response",))), (EVERY,))
        case "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _output(response: Json, path: Path) -> Iterator[Spot]:
    for at, element in _dicts(response.get("output")):
        yield from _element(element, (*path, "output", at))


def _element(element: Json, path: Path) -> Iterator[Spot]:
    if element.get("type") == "message":
        yield from _contents(element.get("content"), (*path, "final"), (*path, "content"), is_whole=True)


def _responses_body(value: Json) -> Iterator[Spot]:
    yield from _output(value, ())


# --- gemini_generate --------------------------------------------------------------------------------------------------


def _gemini_event(value: Json) -> Reading:
    """A signed part is an item by itself, and so is a call: a text is over where one comes."""
    spots: list[Spot] = []
    ended: list[TextKey] = [EVERY] if value.get("error") else []
    for at, candidate in _dicts(value.get("candidates")):
        key = (candidate.get("index", at),)
        parts = list(_dicts(_inner(candidate, "content").get("parts")))
        is_over = any(not _is_text(part) for _, part in parts) or candidate.get("finishReason") is not None
        spots += [
            Spot(key, ("candidates", at, "content", "parts", place, "text"), part["text"])
            for place, part in parts
            if _is_text(part)
        ]
        ended += [key] if is_over else []
    return Reading(tuple(spots), tuple(ended))


def _is_text(part: Json) -> bool:
    """What is signed is not touched: it would no longer be what was signed."""
    is_sealed = part.get("thought") or part.get("thoughtSignature") or part.get("thought_signature")
    return isinstance(part.get("text"), str) and not is_sealed


def _gemini_body(value: Json) -> Iterator[Spot]:
    for at, candidate in _dicts(value.get("candidates")):
        for place, part in _dicts(_inner(candidate, "content").get("parts")):
            if _is_text(part):
                yield Spot((at, place), ("candidates", at, "content", "parts", place, "text"), part["text"], True)


# --- ollama_chat ------------------------------------------------------------------------------------------------------


def _ollama_event(value: Json) -> Reading:
    ended: tuple[TextKey, ...] = (EVERY,) if value.get("done") or value.get("error") else ()
    return Reading(tuple(_ollama(value, is_whole=False)), ended)


def _ollama(value: Json, *, is_whole: bool) -> Iterator[Spot]:
    content = _inner(value, "message").get("content")
    if isinstance(content, str):
        yield Spot((0,), ("message", "content"), content, is_whole)
    if isinstance(value.get("response"), str):
        yield Spot((1,), ("response",), value["response"], is_whole)


def _ollama_body(value: Json) -> Iterator[Spot]:
    yield from _ollama(value, is_whole=True)


# --- bedrock_converse -------------------------------------------------------------------------------------------------


def _converse_body(value: Json) -> Iterator[Spot]:
    blocks = _inner(_inner(value, "output"), "message").get("content")
    for at, block in _dicts(blocks):
        if isinstance(block.get("text"), str):
            yield Spot((at,), ("output", "message", "content", at, "text"), block["text"], True)


_EVENTS: dict[FormatName, Callable[[Json], Reading]] = {
    "openai_chat": _chat_event,
    "anthropic_messages": _messages_event,
    "openai_responses": _responses_event,
    "gemini_generate": _gemini_event,
    "ollama_chat": _ollama_event,
}
"""Bedrock's streams are binary, with checksums: their texts go through typed events (tagged_events.py)."""

_BODIES: dict[FormatName, Callable[[Json], Iterator[Spot]]] = {
    "openai_chat": _chat_body,
    "anthropic_messages": _messages_body,
    "openai_responses": _responses_body,
    "gemini_generate": _gemini_body,
    "ollama_chat": _ollama_body,
    "bedrock_converse": _converse_body,
}
