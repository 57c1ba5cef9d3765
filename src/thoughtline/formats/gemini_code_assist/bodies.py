"""Requests and whole responses: what stands around Gemini's own keeps its bytes."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.gemini_code_assist.thoughts import with_thoughts, with_words
from thoughtline.formats.gemini_generate import bodies
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
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import FormatName, Reply, Transcript

_NAME: FormatName = "gemini_code_assist"
_OWN = ("model",)
"""Members of the envelope itself that a request is changed in."""


class _Asked(Struct, gc=False):
    request: Raw = NULL
    model: str = ""


class _Answered(Struct, gc=False):
    response: Raw = NULL


_asked_decoder = msgspec.json.Decoder(_Asked)
_answered_decoder = msgspec.json.Decoder(_Answered)


def decode_request(body: bytes, dialect: Dialect = GEMINI) -> Transcript:
    """The request in the envelope; one that has none is read as it is."""
    asked = decode(_asked_decoder, body)
    start, end = (span_at(body, ("request",)) if is_given(asked.request) else None) or (0, len(body))
    try:
        inner = bodies.decode_request(body[start:end], dialect)
    except DecodeError as problem:
        raise (problem.within("/request") if start else problem) from None
    inner = with_thoughts(inner, dialect)
    return replace(inner, format=_NAME, model=asked.model or inner.model, around=(body[:start], body[end:]))


def encode_request(transcript: Transcript, dialect: Dialect = GEMINI) -> bytes:
    """In its own envelope, or in a new one."""
    if transcript.has_lone_surrogates:
        return as_sent(encode_request(replace(transcript, has_lone_surrogates=False), dialect))
    edits = transcript.member_edits
    others = tuple(edit for edit in edits if edit[0] not in _OWN)
    inner = bodies.encode_request(replace(with_words(transcript), member_edits=others), dialect)
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
    """What an answer has in its envelope, or all of one that has none."""
    found = decode(_answered_decoder, body).response
    return found if is_given(found) else body


def encode_response(reply: Reply, dialect: Dialect = GEMINI) -> bytes:
    """The body of a whole response: as it came, but for candidates that were edited."""
    if not reply.body:
        return object_of([("response", bodies.encode_response(reply, dialect))])
    if not reply.is_edited:
        return reply.body
    inner = bytes(inside(reply.body))
    edited = bodies.encode_response(replace(reply, body=inner), dialect)
    return edited if inner == reply.body else replace_at(reply.body, ("response",), edited)
