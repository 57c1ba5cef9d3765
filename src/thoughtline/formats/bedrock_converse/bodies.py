"""Requests and whole responses of Converse, and their content blocks; why a turn ended and what it cost."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bedrock_converse.notes import Piece
from thoughtline.formats.bodies import (
    FinishWords,
    UsageMembers,
    as_it_came,
    encode_conversation,
    require_own,
    thinking_switch,
)
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    array,
    decode,
    decode_each,
    encode,
    is_given,
    members,
    object_of,
    of_upstream,
    replace_at,
    set_members,
)
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.errors import EncodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Role, Text, ToolCall, ToolResult, Unknown
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Reply, Transcript, Turn, Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


class _Message(Struct, gc=False):
    role: str = ""
    content: list[Raw] | None = None


class _Request(Struct, gc=False, rename="camel"):
    messages: list[_Message]
    system: list[Raw] | None = None
    tool_config: Raw = NULL
    additional_model_request_fields: Raw = NULL


class _Output(Struct, gc=False):
    message: _Message | None = None


class _Response(Struct, gc=False, rename="camel"):
    output: _Output | None = None
    stop_reason: str | None = None
    usage: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
_response_decoder = msgspec.json.Decoder(_Response)


def decode_request(body: bytes, dialect: Dialect = BEDROCK_CLAUDE) -> Transcript:
    """A Converse request as typed turns. The model and streaming stand in the address."""
    request = decode(_request_decoder, body)
    turns = []
    if request.system:
        turns.append(Turn("system", decode_blocks(request.system, dialect, "/system"), SYSTEM_MEMBER))
    for at, message in enumerate(request.messages):
        items = decode_blocks(message.content or (), dialect, f"/messages/{at}/content")
        turns.append(Turn(_ROLES.get(message.role, "other"), items, at))
    tools = (request.tool_config,) if is_given(request.tool_config) else ()
    switch = thinking_switch(request.additional_model_request_fields)
    return Transcript(
        "bedrock_converse", tuple(turns), body, model="", is_streaming=False, tools=tools, thinking=switch
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
    """A whole Converse response, errors included."""
    response = decode(_response_decoder, body)
    message = response.output.message if response.output else None
    if message is None:
        return Reply("bedrock_converse", (), body, error=Raw(body))
    items = decode_blocks(message.content or (), dialect, "/output/message/content")
    candidate = Candidate(Turn("assistant", items), 0, FINISH.decode(response.stop_reason))
    usage = USAGE.decode(response.usage) if is_given(response.usage) else None
    return Reply("bedrock_converse", (candidate,), body, usage=usage)


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
            ("stopReason", FINISH.encode(candidate.finish)),
            ("usage", encode_usage(reply.usage or Usage())),
        ]
    )


# --- one content block and the item it is, in both directions ---------------------------------------------------------


class _ReasoningText(Struct, gc=False):
    text: str | None = None
    signature: str | None = None


class ReasoningMember(Struct, gc=False, rename="camel"):
    """Whole: one of the first two. In a stream: text, a signature or a blob, each by itself."""

    reasoning_text: _ReasoningText | None = None
    redacted_content: str | None = None
    text: str | None = None
    signature: str | None = None


class ToolUse(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    name: str | None = None
    input: Raw = NULL
    type: str | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the client runs it; what Amazon runs itself is no call of the client's (API reference of
        `ToolUseBlock`, read 2026-11-15)."""
        return self.type != "server_tool_use"


class _ToolResult(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    content: Raw = NULL


class _Cited(Struct, gc=False):
    content: list[Piece] | None = None


class _Block(Struct, gc=False, rename="camel"):
    text: str | None = None
    reasoning_content: ReasoningMember | None = None
    tool_use: ToolUse | None = None
    tool_result: _ToolResult | None = None
    citations_content: _Cited | None = None


_block_decoder = msgspec.json.Decoder(_Block)


def decode_block(raw: Raw, dialect: Dialect) -> Item:
    """One block as a typed item."""
    block = decode(_block_decoder, raw)
    if block.reasoning_content is not None:
        return _decode_reasoning(block.reasoning_content, raw, dialect)
    if block.tool_use is not None and block.tool_use.is_ours:
        use = block.tool_use
        return ToolCall(use.name or "", arguments_text(use.input), use.tool_use_id, raw=raw)
    if block.tool_result is not None:
        return ToolResult(block.tool_result.content, block.tool_result.tool_use_id, raw=raw)
    if block.text is not None:
        return Text(block.text, raw=raw)
    if block.citations_content is not None:
        return Text("".join(piece.text for piece in block.citations_content.content or ()), raw=raw)
    return Unknown(next(iter(members(raw)), ""), raw)


def _decode_reasoning(reasoning: ReasoningMember, raw: Raw, dialect: Dialect) -> Item:
    if reasoning.reasoning_text is not None:
        text = reasoning.reasoning_text
        return ReasoningText(text.text or "", text.signature, dialect.reasoning_format, raw=raw)
    if reasoning.redacted_content is not None:
        return ReasoningEncrypted(unwrap(reasoning.redacted_content), dialect.reasoning_format, raw=raw)
    return Unknown("reasoningContent", raw)


def unwrap(blob: str) -> str:
    """The token inside a `redactedContent`: Converse encodes Claude's own base64 text once more, as any blob."""
    try:
        token = base64.b64decode(blob, validate=True).decode("ascii")
    except ValueError:  # no base64, or not of a text
        return blob
    return token if token.isprintable() else blob


def wrap(token: str) -> str:
    """The blob for a token; a blob that had no token inside is still itself."""
    return base64.b64encode(token.encode()).decode()


def decode_blocks(blocks: Sequence[Raw], dialect: Dialect, place: str) -> tuple[Item, ...]:
    """The content of a message."""
    return decode_each(blocks, lambda raw: decode_block(raw, dialect), place)


def encode_block(item: Item, dialect: Dialect) -> bytes:
    """One block for the wire: its own JSON if it came from there and says the same, else made new."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if as_it_came(item, decode_block, dialect) == item:
        return bytes(item.raw)
    match item:
        case Text(seal=None):
            return encode({"text": item.text})
        case ReasoningText():
            require_own(item, dialect)
            signed = {} if item.signature is None else {"signature": item.signature}
            return encode({"reasoningContent": {"reasoningText": {"text": item.text, **signed}}})
        case ReasoningEncrypted():
            require_own(item, dialect)
            return encode({"reasoningContent": {"redactedContent": wrap(item.data)}})
        case ToolCall(seal=None, is_custom=False):
            known = [("toolUseId", encode(item.id or "")), ("name", encode(item.name))]
            return object_of([("toolUse", object_of([*known, ("input", arguments_object(item.arguments))]))])
        case ToolResult():
            return object_of([("toolResult", _encode_result(item))])
        case Text() | ToolCall(is_custom=False):
            raise ForeignSeal(f"a Converse block can't hold the seal of a {type(item).__name__}")
        case _:
            raise EncodeError(f"Converse content can't hold a {type(item).__name__}")


def _encode_result(item: ToolResult) -> bytes:
    content = bytes(item.content)
    if content[:1] == b'"':
        content = array([object_of([("text", content)])])
    elif content[:1] == b"{":
        content = array([object_of([("json", content)])])
    return object_of([("toolUseId", encode(item.call_id or "")), ("content", content)])


# --- why a turn ended and what it cost --------------------------------------------------------------------------------


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
)


def encode_usage(usage: Usage) -> bytes:
    known = {"inputTokens": usage.input - usage.cached, "outputTokens": usage.output}
    return encode({**known, "cacheReadInputTokens": usage.cached, "totalTokens": usage.input + usage.output})
