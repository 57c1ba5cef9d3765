"""Requests and whole responses of Converse; finish reasons and usage."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bedrock_converse.blocks import decode_blocks, encode_block
from thoughtline.formats.bodies import FinishWords, UsageMembers, encode_conversation, thinking_switch
from thoughtline.formats.end_users import NamesUser, end_user_of, member_of
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
    those_given,
)
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.items import Role
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Reply, Transcript, Turn, Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


class _Message(Struct, gc=False):
    role: str = ""
    content: list[Raw] | None = None


class _Request(NamesUser, gc=False, kw_only=True, rename="camel"):
    messages: list[_Message]
    system: list[Raw] | None = None
    tool_config: Raw = NULL
    additional_model_request_fields: Raw = NULL
    request_metadata: Raw = NULL
    prompt_variables: Raw = NULL


class _Output(Struct, gc=False):
    message: _Message | None = None


class _Response(Struct, gc=False, rename="camel"):
    output: _Output | None = None
    stop_reason: str | None = None
    usage: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
_response_decoder = msgspec.json.Decoder(_Response)


def decode_request(body: bytes, dialect: Dialect = BEDROCK_CLAUDE) -> Transcript:
    """A Converse request as typed turns. The model and streaming are in the URL."""
    request = decode(_request_decoder, body)
    turns = []
    if request.system:
        turns.append(Turn("system", decode_blocks(request.system, dialect, "/system"), SYSTEM_MEMBER))
    for at, message in enumerate(request.messages):
        items = decode_blocks(message.content or (), dialect, f"/messages/{at}/content")
        turns.append(Turn(_ROLES.get(message.role, "other"), items, at))
    tools = (request.tool_config,) if is_given(request.tool_config) else ()
    switch = thinking_switch(request.additional_model_request_fields)
    metadata = member_of(request.additional_model_request_fields, "metadata")
    return Transcript(
        "bedrock_converse",
        tuple(turns),
        body,
        tools=tools,
        thinking=switch,
        user=end_user_of(request, request.request_metadata, metadata),
        references=those_given(request.prompt_variables),
    )


def encode_request(transcript: Transcript, dialect: Dialect = BEDROCK_CLAUDE) -> bytes:
    """The body of a Converse request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        content = array(encode_block(item, dialect) for item in turn.items)
        if before:
            return [set_members(before, [("content", content)])]
        role = "assistant" if turn.role == "assistant" else "user"
        return [object_of([("role", encode(role)), ("content", content)])]

    def encode_system(turn: Turn, before: bytes | None) -> bytes:
        return array(encode_block(item, dialect) for item in turn.items)

    return encode_conversation(transcript, "messages", encode_turn, "system", encode_system)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = BEDROCK_CLAUDE) -> Reply:
    response = decode(_response_decoder, body)
    message = response.output.message if response.output else None
    if message is None:
        return Reply("bedrock_converse", (), body, error=Raw(body))
    items = decode_blocks(message.content or (), dialect, "/output/message/content")
    candidate = Candidate(Turn("assistant", items), 0, FINISH.decode(response.stop_reason))
    usage = USAGE.decode(response.usage) if is_given(response.usage) else None
    return Reply("bedrock_converse", (candidate,), body, usage=usage)


def encode_response(reply: Reply, dialect: Dialect = BEDROCK_CLAUDE) -> bytes:
    """The body of a whole response: unchanged except for the edits."""
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
            ("stopReason", FINISH.encode(candidate.finish)),
            ("usage", encode_usage(reply.usage or Usage())),
        ]
    )


# --- finish reasons and usage -----------------------------------------------------------------------------------------


FINISH = FinishWords(
    known={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter",
    },
    written={
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
    },
)
USAGE = UsageMembers(
    "/usage",
    input="inputTokens cacheReadInputTokens cacheWriteInputTokens",
    output="outputTokens",
    cached="cacheReadInputTokens",
    cache_written="cacheWriteInputTokens",
)


def encode_usage(usage: Usage) -> bytes:
    fresh = max(0, usage.input - usage.cached - usage.cache_written)
    known = {"inputTokens": fresh, "outputTokens": usage.output, "cacheReadInputTokens": usage.cached}
    written = {"cacheWriteInputTokens": usage.cache_written} if usage.cache_written else {}
    return encode({**known, **written, "totalTokens": usage.input + usage.output})
