"""Requests, whole responses and streams: everything around Gemini's own content keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.gemini_generate import bodies, stream
from thoughtline.formats.json_text import (
    NULL,
    decode,
    encode,
    is_array,
    is_given,
    object_of,
    of_upstream,
    replace_at,
    set_members,
    span_at,
)
from thoughtline.formats.lone_surrogates import as_sent
from thoughtline.formats.texts import Json, Reading, TextSpot, inner
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.events import Event
from thoughtline.values.items import Item, ReasoningText, Seal, Text
from thoughtline.values.turns import FormatName, Reply, Transcript, Turn

_NAME: FormatName = "gemini_code_assist"
_OWN = ("model",)
"""Members of the envelope that an edit of a request may change."""

_MARK = "[Thought: true]"


class _RequestEnvelope(Struct, gc=False):
    request: Raw = NULL
    model: str = ""


class _ResponseEnvelope(Struct, gc=False):
    response: Raw = NULL


_request_decoder = msgspec.json.Decoder(_RequestEnvelope)
_response_decoder = msgspec.json.Decoder(_ResponseEnvelope)


def decode_request(body: bytes, dialect: Dialect = GEMINI) -> Transcript:
    """The request in the envelope; without an envelope the body itself."""
    envelope = decode(_request_decoder, body)
    start, end = (span_at(body, ("request",)) if is_given(envelope.request) else None) or (0, len(body))
    try:
        inner = bodies.decode_request(body[start:end], dialect)
    except DecodeError as problem:
        raise (problem.within("/request") if start else problem) from None
    inner = _with_each(inner, partial(_thought, dialect=dialect))
    return replace(inner, format=_NAME, model=envelope.model or inner.model, around=(body[:start], body[end:]))


def encode_request(transcript: Transcript, dialect: Dialect = GEMINI) -> bytes:
    """In its own envelope, or in a new one."""
    if transcript.has_lone_surrogates:
        return as_sent(encode_request(replace(transcript, has_lone_surrogates=False), dialect))
    edits = transcript.member_edits
    others = tuple(edit for edit in edits if edit[0] not in _OWN)
    inner = bodies.encode_request(replace(_with_each(transcript, _words), member_edits=others), dialect)
    if transcript.around is None:
        return object_of([("model", encode(transcript.model)), ("request", inner)])
    head, tail = transcript.around
    own = [edit for edit in edits if edit[0] in _OWN]
    return set_members(head + inner + tail, own) if own else head + inner + tail


@of_upstream
def decode_response(body: bytes, dialect: Dialect = GEMINI) -> Reply:
    """The response in the envelope; an error has none."""
    inner = body if is_array(body.lstrip()) else bytes(inside(body))
    return replace(bodies.decode_response(inner, dialect), format=_NAME, body=body)


def inside(body: bytes) -> bytes | Raw:
    """The content of an answer's envelope, or all of an answer without one."""
    found = decode(_response_decoder, body).response
    return found if is_given(found) else body


def encode_response(reply: Reply, dialect: Dialect = GEMINI) -> bytes:
    """The body of a whole response: unchanged except for edited candidates."""
    if not reply.body:
        return object_of([("response", bodies.encode_response(reply, dialect))])
    if not reply.is_edited:
        return reply.body
    inner = bytes(inside(reply.body))
    edited = bodies.encode_response(replace(reply, body=inner), dialect)
    return edited if inner == reply.body else replace_at(reply.body, ("response",), edited)


# --- streams: each partial response in an envelope of its own ---------------------------------------------------------


class StreamDecoder(stream.StreamDecoder):
    def _consume(self, payload: bytes, events: list[Event]) -> None:
        super()._consume(bytes(inside(payload)), events)


class StreamEncoder(stream.StreamEncoder):
    def _answer(self, answer: bytes) -> bytes:
        return object_of([("response", answer)])


def _deeper(spot: TextSpot) -> TextSpot:
    """The position of visible text in Gemini's format, one level deeper."""
    return spot._replace(path=("response", *spot.path), owner=("response", *spot.owner))


def _event(value: Json) -> Reading:
    read = stream.TEXTS.event({**inner(value, "response"), **({"error": value["error"]} if "error" in value else {})})
    return Reading(tuple(map(_deeper, read.spots)), read.ended)


def _body(value: Json) -> Iterator[TextSpot]:
    return map(_deeper, stream.TEXTS.body(inner(value, "response")))


TEXTS = stream.TEXTS._replace(body=_body, event=_event)


# --- thoughts that Gemini CLI sends back as text ----------------------------------------------------------------------
# `{"text": "…\n[Thought: true]"}` stands for `{"text": "…", "thought": true}`.
# Decoded as thoughts, so that the turn is recognized; written back exactly as they came.
# Gemini CLI's `code_assist/converter.ts`, 0.61.0, read 2026-11-16.


def _with_each(transcript: Transcript, change: Callable[[Item], Item]) -> Transcript:
    if _MARK.encode() not in transcript.body:
        return transcript
    turns = [_changed(turn, change) if turn.role == "assistant" else turn for turn in transcript.turns]
    return replace(transcript, turns=tuple(turns))


def _changed(turn: Turn, change: Callable[[Item], Item]) -> Turn:
    return replace(turn, items=tuple(map(change, turn.items)))


def _thought(item: Item, dialect: Dialect) -> Item:
    if not isinstance(item, Text) or not (item.text == _MARK or item.text.endswith(f"\n{_MARK}")):
        return item
    text = item.text.removesuffix(_MARK).removesuffix("\n")
    signature = item.seal.data if item.seal is not None else None
    return ReasoningText(text, signature, dialect.reasoning_format, raw=item.raw)


def _words(item: Item) -> Item:
    """Applies only to items that came this way: their JSON has the mark, and no `thought` member."""
    raw = bytes(item.raw)
    if not isinstance(item, ReasoningText) or _MARK.encode() not in raw or b'"thought"' in raw:
        return item
    text = f"{item.text}\n{_MARK}" if item.text else _MARK
    return Text(text, Seal(item.signature, item.format) if item.signature else None, raw=item.raw)
