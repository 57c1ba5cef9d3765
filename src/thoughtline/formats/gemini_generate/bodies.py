"""Requests and whole responses of `generateContent`; finish reasons and usage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats.bodies import FinishWords, encode_conversation, thinking_switch
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.gemini_generate.notes import Noting, decode_notes, encode_notes
from thoughtline.formats.gemini_generate.parts import decode_part, encode_part
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_each,
    decode_list,
    encode,
    is_array,
    is_given,
    members,
    object_of,
    of_upstream,
    read_or_none,
    replace_at,
    set_members,
    span_at,
    those_given,
)
from thoughtline.formats.vendor_shapes import GoogleUsage
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.items import Item, Role, Text
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Finish, Reply, Transcript, Turn

C = TypeVar("C")
_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "tool", "system": "system", "": "user"}
_WIRE_ROLES: dict[Role, str] = {"assistant": "model"}


class _Content(Struct, gc=False):
    role: str | None = None
    parts: Raw = NULL


class _Request(NamesUser, gc=False, kw_only=True, rename="camel"):
    contents: list[_Content]
    system_instruction: Raw = NULL
    snake_system: Raw = field(default=NULL, name="system_instruction")
    model: str = ""
    tools: Raw = NULL
    generation_config: Raw = NULL
    snake_config: Raw = field(default=NULL, name="generation_config")
    labels: Raw = NULL
    cached_content: Raw = NULL
    snake_cached: Raw = field(default=NULL, name="cached_content")


class Answer(Noting, Generic[C], gc=False, rename="camel"):
    content: C | None = None
    index: int = 0
    finish_reason: str | None = None


class Response(Struct, Generic[C], gc=False, rename="camel"):
    """A whole response, or a chunk of a stream."""

    candidates: list[Answer[C]] | None = None
    usage_metadata: Raw = NULL
    model_version: str | None = None
    response_id: str | None = None
    error: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
_response_decoder = msgspec.json.Decoder(Response[_Content])
_content_decoder = msgspec.json.Decoder(_Content)
_text_decoder = msgspec.json.Decoder(str)


_members_decoder = msgspec.json.Decoder(dict[str, Raw])
_SINGLE = re.compile(rb'"(?:contents|tools)"\s*:\s*\{')


def in_lists(body: bytes) -> bytes:
    """A request whose `contents` and `tools` are lists: Google also accepts a single object for either, as in its own
    examples and in goose. An unreadable request stays unchanged.
    """
    known = read_or_none(_members_decoder, body) if _SINGLE.search(body) else None
    held = {name: bytes(known[name]) for name in ("contents", "tools") if name in known} if known is not None else {}
    changes = [(name, array([value])) for name, value in held.items() if value[:1] == b"{"]
    return set_members(body, changes) if changes else body


def decode_request(body: bytes, dialect: Dialect = GEMINI) -> Transcript:
    """A request as typed turns. The model and streaming are in the URL, not in the body."""
    request = decode(_request_decoder, body)
    turns = []
    system = request.system_instruction if is_given(request.system_instruction) else request.snake_system
    if is_given(system):
        turns.append(Turn("system", _decode_system(system, dialect), SYSTEM_MEMBER))
    for at, content in enumerate(request.contents):
        items = _decode_parts(content.parts, dialect, f"/contents/{at}/parts")
        turns.append(Turn(_ROLES.get(content.role or "", "other"), items, at))
    tools = tuple(_listed(request.tools, "/tools"))
    switch = thinking_switch(request.generation_config, request.snake_config)
    return Transcript(
        "gemini_generate",
        tuple(turns),
        body,
        model=request.model,
        tools=tools,
        thinking=switch,
        user=end_user_of(request, request.labels),
        references=those_given(request.cached_content, request.snake_cached),
    )


def _decode_system(system: Raw, dialect: Dialect) -> tuple[Item, ...]:
    if bytes(system)[:1] == b'"':
        return (Text(decode(_text_decoder, system, "/systemInstruction")),)
    content = decode(_content_decoder, system, "/systemInstruction")
    return _decode_parts(content.parts, dialect, "/systemInstruction/parts")


def _decode_parts(parts: Raw, dialect: Dialect, place: str) -> tuple[Item, ...]:
    """The parts of a content: a list, or a single part, which Google's servers accept too."""
    return decode_each(_listed(parts, place), lambda raw: decode_part(raw, dialect), place)


def _listed(value: Raw, place: str) -> list[Raw]:
    """The elements of a list, or a single value in place of one."""
    if not is_given(value):
        return []
    return [value] if bytes(value)[:1] == b"{" else decode_list(value, place)


def encode_request(transcript: Transcript, dialect: Dialect = GEMINI) -> bytes:
    """The body of a request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        parts = array(encode_part(item, dialect) for item in turn.items)
        if before:
            return [_with_parts(before, parts)]
        role = _WIRE_ROLES.get(turn.role, "user")
        return [object_of([("role", encode(role)), ("parts", parts)])]

    def encode_system(turn: Turn, before: bytes | None) -> bytes:
        parts = array(encode_part(item, dialect) for item in turn.items)
        return _with_parts(before if before and before[:1] == b"{" else b"{}", parts)

    snake = "system_instruction"
    system_member = snake if snake in members(transcript.body or b"{}") else "systemInstruction"
    return encode_conversation(transcript, "contents", encode_turn, system_member, encode_system)


def _with_parts(content: bytes, parts: bytes) -> bytes:
    """A content with these parts; a single part stays single."""
    alone = members(content).get("parts")
    if alone is not None and parts == b"[" + bytes(alone) + b"]":
        return content
    return set_members(content, [("parts", parts)])


@of_upstream
def decode_response(body: bytes, dialect: Dialect = GEMINI) -> Reply:
    """A whole response or an error (in an array if the request was a stream)."""
    first = next(iter(decode_list(body)), body) if is_array(body.lstrip()) else body
    response = decode(_response_decoder, first)
    candidates = tuple(
        _decode_candidate(candidate, position, dialect) for position, candidate in enumerate(response.candidates or ())
    )
    usage = USAGE.decode(response.usage_metadata) if is_given(response.usage_metadata) else None
    error = response.error.copy() if is_given(response.error) else None
    return Reply(
        "gemini_generate",
        candidates,
        body,
        id=response.response_id,
        model=response.model_version,
        usage=usage,
        error=error,
    )


def _decode_candidate(candidate: Answer[_Content], position: int, dialect: Dialect) -> Candidate:
    parts = candidate.content.parts if candidate.content else NULL
    items = _decode_parts(parts, dialect, f"/candidates/{position}/content/parts")
    finish = FINISH.decode(candidate.finish_reason, items)
    return Candidate(Turn("assistant", items), candidate.index, finish, decode_notes(candidate, items))


def encode_response(reply: Reply, dialect: Dialect = GEMINI) -> bytes:
    """The body of a whole response: unchanged except for edited candidates."""
    if not reply.body:
        return _encode_new(reply, dialect)
    body = reply.body
    for position, candidate in enumerate(reply.candidates):
        if candidate.turn.is_edited:
            parts = array(encode_part(item, dialect) for item in candidate.turn.items)
            path = ("candidates", position)
            start, end = span_at(body, path) or (0, 0)
            body = replace_at(body, path, _with_content(body[start:end], parts))
    return body


def _with_content(candidate: bytes, parts: bytes) -> bytes:
    """A candidate with these parts; a blocked one has no content, and one that was cut off no parts."""
    found = members(candidate).get("content", NULL)
    content = bytes(found) if is_given(found) else b"{}"
    if parts == b"[]" and "parts" not in members(content):
        return candidate
    return set_members(candidate, [("content", _with_parts(content, parts))])


def _encode_new(reply: Reply, dialect: Dialect) -> bytes:
    return object_of(
        [
            ("candidates", array(_encode_candidate(candidate, dialect) for candidate in reply.candidates)),
            ("usageMetadata", USAGE.encode(reply.usage) if reply.usage else None),
            ("modelVersion", encode(reply.model) if reply.model else None),
            ("responseId", encode(reply.id) if reply.id else None),
        ]
    )


def _encode_candidate(candidate: Candidate, dialect: Dialect) -> bytes:
    items = candidate.turn.items
    parts = [encode_part(item, dialect) for item in items]
    return encode_answer(parts, candidate.index, candidate.finish, encode_notes(candidate.notes, items))


def encode_answer(
    parts: Sequence[bytes], index: int, finish: Finish | None = None, notes: Sequence[tuple[str, bytes]] = ()
) -> bytes:
    """A candidate, or its part in a chunk of a stream."""
    content = object_of([("parts", array(parts)), ("role", b'"model"')])
    ended = FINISH.encode(finish) if finish else None
    return object_of([("content", content), ("finishReason", ended), ("index", encode(index)), *notes])


# --- finish reasons and usage -----------------------------------------------------------------------------------------


FINISH = FinishWords(
    known={
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
        "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "MALFORMED_FUNCTION_CALL": "error",
        "OTHER": "other",
    },
    written={
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "error": "OTHER",
        "other": "OTHER",
    },
)
USAGE = GoogleUsage(
    "/usageMetadata",
    input="promptTokenCount",
    output="candidatesTokenCount",
    thoughts="thoughtsTokenCount",
    cached="cachedContentTokenCount",
    total="totalTokenCount",
)
