"""Requests in their envelope, and whole answers: all lines of a stream, decoded at once."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.bodies import encode_conversation, encode_plain_system, thinking_switch
from thoughtline.formats.command_code_generate.parts import decode_parts, encode_part
from thoughtline.formats.command_code_generate.stream import StreamDecoder, StreamEncoder
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    encode,
    is_array,
    is_given,
    members,
    object_of,
    of_upstream,
    plain_value,
    set_members,
    span_at,
)
from thoughtline.formats.lone_surrogates import as_sent
from thoughtline.providers import COMMAND_CODE, Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.events import Event, ItemDone, Started, TurnDone, UsageReported, fold
from thoughtline.values.items import Item, Role, Text
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, FormatName, Reply, Transcript, Turn

_NAME: FormatName = "command_code_generate"
_INSIDE = "params"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}

# The members that a request must have around it (from the API's own error messages, as hareeshkar/opencode-commandcode
# collected them, 2026-09-29). They describe where the CLI runs, which is unknown here; a prompt that is always the same
# can be cached.
_CONFIG = {
    "workingDir": "/",
    "date": "",
    "environment": "thoughtline",
    "structure": [],
    "isGitRepo": False,
    "currentBranch": "",
    "mainBranch": "",
    "gitStatus": "",
    "recentCommits": [],
}
_HEAD = [("config", encode(_CONFIG)), ("memory", b'""'), ("taste", b"null"), ("skills", b"null")]
_HEAD += [("permissionMode", b'"standard"')]


class _Envelope(Struct, gc=False):
    params: Raw = NULL


class _Message(Struct, gc=False):
    role: str = ""
    content: str | list[Raw] | None = None


class _Request(NamesUser, gc=False, kw_only=True):
    messages: list[_Message]
    system: str | list[Raw] | None = None
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    reasoning_effort: Raw = NULL


_envelope_decoder = msgspec.json.Decoder(_Envelope)
_request_decoder = msgspec.json.Decoder(_Request)


def decode_request(body: bytes, dialect: Dialect = COMMAND_CODE) -> Transcript:
    """The request in the envelope; without an envelope the body itself."""
    envelope = decode(_envelope_decoder, body)
    start, end = (span_at(body, (_INSIDE,)) if is_given(envelope.params) else None) or (0, len(body))
    try:
        inner = _decode_params(body[start:end], dialect)
    except DecodeError as problem:
        raise (problem.within(f"/{_INSIDE}") if start else problem) from None
    return replace(inner, around=(body[:start], body[end:]))


def _decode_params(body: bytes, dialect: Dialect) -> Transcript:
    request = decode(_request_decoder, body)
    turns = []
    if request.system is not None:
        turns.append(Turn("system", decode_parts(request.system, dialect, "/system"), SYSTEM_MEMBER))
    for at, message in enumerate(request.messages):
        items = decode_parts(message.content, dialect, f"/messages/{at}/content")
        turns.append(Turn(_ROLES.get(message.role, "other"), items, at))
    return Transcript(
        _NAME,
        tuple(turns),
        body,
        model=request.model,
        is_streaming=request.stream is not False,
        tools=tuple(request.tools or ()),
        thinking=thinking_switch(request.reasoning_effort),
        user=end_user_of(request),
    )


def encode_request(transcript: Transcript, dialect: Dialect = COMMAND_CODE) -> bytes:
    """In its own envelope, or in a new one."""
    if transcript.has_lone_surrogates:
        return as_sent(encode_request(replace(transcript, has_lone_surrogates=False), dialect))

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        content = _encode_content(turn.items, before, dialect)
        if before:
            return [set_members(before, [("content", content)])]
        return [object_of([("role", encode(turn.role)), ("content", content)])]

    def encode_system(turn: Turn, before: bytes | None) -> bytes:
        if before is not None and is_array(before):
            return array(encode_part(item, dialect) for item in turn.items)
        return encode_plain_system(turn, before)

    inner = encode_conversation(transcript, "messages", encode_turn, "system", encode_system)
    if transcript.around is None:
        return object_of([*_HEAD, (_INSIDE, inner)])
    head, tail = transcript.around
    return head + inner + tail


def _encode_content(items: tuple[Item, ...], before: bytes | None, dialect: Dialect) -> bytes:
    """A list of parts; a message that had a string keeps it."""
    match items:
        case (Text(seal=None) as text,) if not text.raw and before and _is_string(before):
            return encode(text.text)
        case () if before and _is_string(before):
            return b'""'
    return array(encode_part(item, dialect) for item in items)


def _is_string(message: bytes) -> bool:
    return bytes(members(message).get("content", NULL))[:1] == b'"'


@of_upstream
def decode_response(body: bytes, dialect: Dialect = COMMAND_CODE) -> Reply:
    """The answer in a stream; a body that is not a stream is an error."""
    value = plain_value(body)
    if isinstance(value, dict) and "type" not in value:
        known = members(body).get("error", NULL)
        return Reply(_NAME, (), body, error=known.copy() if is_given(known) else Raw(body))
    decoder = StreamDecoder(dialect)
    reply = replace(fold([*decoder.feed(body), *decoder.finish()], _NAME), body=body)
    if reply.error is None and not reply.candidates:
        raise DecodeError("an answer without a line that says anything", "/")
    return reply if reply.error is None else replace(reply, candidates=())


def encode_response(reply: Reply, dialect: Dialect = COMMAND_CODE) -> bytes:
    """The lines of a whole answer: unchanged, or all written again."""
    if reply.body and not reply.is_edited:
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    events: list[Event] = [Started(reply.id, reply.model, reply.created)]
    events += [ItemDone(0, position, item) for position, item in enumerate(candidate.turn.items)]
    events += [UsageReported(reply.usage)] if reply.usage is not None else []
    events.append(TurnDone(0, candidate.finish))
    encoder = StreamEncoder(dialect)
    return b"".join(map(encoder.encode, events)) + encoder.finish()
