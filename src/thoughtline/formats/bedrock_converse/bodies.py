"""Requests and whole responses of Converse."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bedrock_converse.blocks import decode_blocks, encode_block
from thoughtline.formats.conversation import encode_conversation
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    encode,
    is_given,
    object_of,
    of_upstream,
    replace_at,
    set_members,
)
from thoughtline.formats.thinking import thinking_switch
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.items import Role
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Finish, FinishReason, Reply, Transcript, Turn, Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_NATIVE: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "error": "end_turn",
    "other": "end_turn",
}


# The members are spelled as the wire spells them.
class _Message(Struct, gc=False):
    role: str = ""
    content: list[Raw] | None = None


class _Request(Struct, gc=False):
    messages: list[_Message]
    system: list[Raw] | None = None
    toolConfig: Raw = NULL  # noqa: N815
    additionalModelRequestFields: Raw = NULL  # noqa: N815


class _Output(Struct, gc=False):
    message: _Message | None = None


class _Usage(Struct, gc=False):
    inputTokens: int | None = None  # noqa: N815
    outputTokens: int | None = None  # noqa: N815
    cacheReadInputTokens: int | None = None  # noqa: N815
    cacheWriteInputTokens: int | None = None  # noqa: N815


class _Response(Struct, gc=False):
    output: _Output | None = None
    stopReason: str | None = None  # noqa: N815
    usage: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
_response_decoder = msgspec.json.Decoder(_Response)
_usage_decoder = msgspec.json.Decoder(_Usage)


def decode_request(body: bytes, dialect: Dialect = BEDROCK_CLAUDE) -> Transcript:
    """A Converse request as typed turns. The model and streaming stand in the address."""
    request = decode(_request_decoder, body)
    turns = []
    if request.system:
        turns.append(Turn("system", decode_blocks(request.system, dialect, "/system"), SYSTEM_MEMBER))
    for at, message in enumerate(request.messages):
        items = decode_blocks(message.content or (), dialect, f"/messages/{at}/content")
        turns.append(Turn(_ROLES.get(message.role, "other"), items, at))
    tools = (request.toolConfig,) if is_given(request.toolConfig) else ()
    switch = thinking_switch(request.additionalModelRequestFields)
    return Transcript("bedrock_converse", tuple(turns), body, "", False, tools, switch)


def encode_request(transcript: Transcript, dialect: Dialect = BEDROCK_CLAUDE) -> bytes:
    """The body of a Converse request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: Sequence[bytes]) -> list[bytes]:
        content = array(encode_block(item, dialect) for item in turn.items)
        if before:
            return [set_members(before[0], [("content", content)])]
        role = "assistant" if turn.role == "assistant" else "user"
        return [object_of([("role", encode(role)), ("content", content)])]

    def encode_system(turn: Turn, before: bytes | None) -> bytes:
        return array(encode_block(item, dialect) for item in turn.items)

    return encode_conversation(transcript, "messages", encode_turn, "system", encode_system)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = BEDROCK_CLAUDE) -> Reply:
    """A whole Converse response, errors included."""
    response = decode(_response_decoder, body)
    message = response.output.message if response.output else None
    if message is None:
        return Reply("bedrock_converse", (), body, error=Raw(body))
    items = decode_blocks(message.content or (), dialect, "/output/message/content")
    candidate = Candidate(Turn("assistant", items), 0, decode_finish(response.stopReason))
    usage = decode_usage(response.usage) if is_given(response.usage) else None
    return Reply("bedrock_converse", (candidate,), body, usage=usage)


def decode_finish(native: str | None) -> Finish | None:
    return Finish(_REASONS.get(native, "other"), native) if native else None


def encode_finish(finish: Finish | None) -> bytes:
    if finish is None:
        return b"null"
    return encode(finish.native if finish.native in _REASONS else _NATIVE[finish.reason])


def decode_usage(raw: Raw) -> Usage:
    usage = decode(_usage_decoder, raw, "/usage")
    cached = usage.cacheReadInputTokens or 0
    total = (usage.inputTokens or 0) + cached + (usage.cacheWriteInputTokens or 0)
    return Usage(total, usage.outputTokens or 0, 0, cached, raw.copy())


def encode_usage(usage: Usage) -> bytes:
    known = {"inputTokens": usage.input - usage.cached, "outputTokens": usage.output}
    return encode({**known, "cacheReadInputTokens": usage.cached, "totalTokens": usage.input + usage.output})


def encode_response(reply: Reply, dialect: Dialect = BEDROCK_CLAUDE) -> bytes:
    """The body of a whole response: as it came, but for what was edited."""
    if reply.body and not reply.is_edited:
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    content = array(encode_block(item, dialect) for item in candidate.turn.items)
    if reply.body:
        return replace_at(reply.body, ("output", "message", "content"), content)
    message = object_of([("role", b'"assistant"'), ("content", content)])
    return object_of(
        [
            ("output", object_of([("message", message)])),
            ("stopReason", encode_finish(candidate.finish)),
            ("usage", encode_usage(reply.usage or Usage())),
        ]
    )
