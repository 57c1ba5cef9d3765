"""Requests and whole responses of the Messages API, and their content blocks; finish reasons and usage."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.bodies import (
    FinishWords,
    UsageMembers,
    as_it_came,
    encode_conversation,
    require_own,
    thinking_switch,
)
from thoughtline.formats.cache_marks import with_mark
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    array,
    decode,
    decode_kind,
    encode,
    is_given,
    members,
    object_of,
    of_upstream,
    read_or_none,
    set_members,
)
from thoughtline.providers import ANTHROPIC, Dialect
from thoughtline.values.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.values.items import (
    REASONING_KINDS,
    UNKNOWN_FORMAT,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Reply, Transcript, Turn, Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class _Message(Struct, gc=False):
    role: str = ""
    content: str | list[Raw] | None = None


class _Request(NamesUser, gc=False, kw_only=True):
    messages: list[_Message]
    system: str | list[Raw] | None = None
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    thinking: Raw = NULL


class _Response(Struct, gc=False):
    content: list[Raw] | None = None
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Raw = NULL
    error: Raw = NULL
    input_transformations: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
_response_decoder = msgspec.json.Decoder(_Response)


def decode_request(body: bytes, dialect: Dialect = ANTHROPIC) -> Transcript:
    """A Messages request as typed turns: one for `system`, one for each message."""
    request = decode(_request_decoder, body)
    turns = []
    if request.system is not None:
        turns.append(Turn("system", _decode_system(request.system, dialect), SYSTEM_MEMBER))
    for at, message in enumerate(request.messages):
        try:
            items = decode_blocks(message.content, dialect)
        except DecodeError as error:
            raise error.within(f"/messages/{at}") from None
        turns.append(Turn(_ROLES.get(message.role, "other"), items, at))
    tools, switch = tuple(request.tools or ()), thinking_switch(request.thinking)
    return Transcript(
        "anthropic_messages",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=bool(request.stream),
        tools=tools,
        thinking=switch,
        user=end_user_of(request),
    )


def _decode_system(system: str | list[Raw], dialect: Dialect) -> tuple[Item, ...]:
    try:
        return decode_blocks(system, dialect)
    except DecodeError as error:
        raise DecodeError(error.problem, "/system" + error.place.removeprefix("/content")) from None


def encode_request(transcript: Transcript, dialect: Dialect = ANTHROPIC) -> bytes:
    """The body of a Messages request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        content = _encode_content(turn.items, dialect)
        if before:
            return [set_members(before, [("content", content)])]
        return [object_of([("role", encode(turn.role)), ("content", content)])]

    def encode_system(turn: Turn, before: bytes | None) -> bytes:
        return _encode_content(turn.items, dialect)

    return encode_conversation(transcript, "messages", encode_turn, "system", encode_system)


def _encode_content(items: tuple[Item, ...], dialect: Dialect) -> bytes:
    if len(items) == 1 and isinstance(items[0], Text) and not items[0].raw and items[0].seal is None:
        return encode(items[0].text)
    return array(encode_block(item, dialect) for item in items)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = ANTHROPIC) -> Reply:
    """A whole Messages response, errors included."""
    response = decode(_response_decoder, body)
    if response.content is None:
        error = response.error.copy() if is_given(response.error) else Raw(body)
        return Reply("anthropic_messages", (), body, id=response.id, model=response.model, usage=None, error=error)
    items = decode_blocks(response.content, dialect)
    candidate = Candidate(Turn("assistant", items), 0, FINISH.decode(response.stop_reason))
    usage = with_dropped(
        USAGE.decode(response.usage) if is_given(response.usage) else None, response.input_transformations
    )
    return Reply("anthropic_messages", (candidate,), body, id=response.id, model=response.model, usage=usage)


def encode_response(reply: Reply, dialect: Dialect = ANTHROPIC) -> bytes:
    """The body of a whole response: unchanged except for the edits."""
    if reply.body and not reply.is_edited:
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    content = array(encode_block(item, dialect) for item in candidate.turn.items)
    if reply.body:
        return set_members(reply.body, [("content", content)])
    return object_of(
        [
            ("id", encode(reply.id or "")),
            ("type", b'"message"'),
            ("role", b'"assistant"'),
            ("model", encode(reply.model or "")),
            ("content", content),
            ("stop_reason", FINISH.encode(candidate.finish)),
            ("stop_sequence", b"null"),
            ("usage", encode_usage(reply.usage)),
        ]
    )


# --- one content block and its item, in both directions ---------------------------------------------------------------


class _Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NULL
    tool_use_id: str | None = None
    content: Raw = NULL


_decoder = msgspec.json.Decoder(_Block)
_decode = _decoder.decode
KNOWN_BLOCKS = ("text", "thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result")


def decode_block(raw: Raw, dialect: Dialect) -> Item:
    """One block as a typed item."""
    try:
        return _typed(_decode(raw), raw, dialect)  # called for every item of every edited turn: the direct way
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    block = decode_kind(_decoder, raw, KNOWN_BLOCKS)
    return Unknown(block, raw) if isinstance(block, str) else _typed(block, raw, dialect)


def _typed(block: _Block, raw: Raw, dialect: Dialect) -> Item:
    match block.type:
        case "text" if block.text is not None:
            return Text(block.text, None, None, raw)
        case "thinking":
            return ReasoningText(block.thinking or "", block.signature, dialect.reasoning_format, raw=raw)
        case "redacted_thinking":
            return ReasoningEncrypted(block.data or "", dialect.reasoning_format, raw=raw)
        case "reasoning":
            # Not a block of Anthropic: other proxies write it for the reasoning of chat models, in `text`.
            return ReasoningText(block.text or block.thinking or "", None, UNKNOWN_FORMAT, raw=raw)
        case "tool_use":
            return ToolCall(
                block.name or "",
                arguments_text(block.input),
                block.id,
                item_id=None,
                is_custom=False,
                seal=None,
                raw=raw,
            )
        case "tool_result":
            return ToolResult(block.content, block.tool_use_id, None, raw)
        case _:
            return Unknown(block.type, raw)


def decode_blocks(content: str | list[Raw] | None, dialect: Dialect) -> tuple[Item, ...]:
    """The content of a message: a string, or a list of blocks."""
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    items = []
    for position, raw in enumerate(content):
        try:
            items.append(_typed(_decode(raw), raw, dialect))
        except (msgspec.DecodeError, UnicodeDecodeError):
            items.append(_decode_at(raw, dialect, position))
    return tuple(items)


def _decode_at(raw: Raw, dialect: Dialect, position: int) -> Item:
    """A block of an unknown kind, or an invalid one that needs its position in the error."""
    try:
        return decode_block(raw, dialect)
    except DecodeError as error:
        raise error.within(f"/content/{position}") from None


def encode_block(item: Item, dialect: Dialect) -> bytes:
    """One block for the wire: its own JSON if that is still right, else a new one."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if item.raw and as_it_came(item, decode_block, dialect) == item:
        return bytes(item.raw)
    match item:
        case Text(seal=None):
            return encode({"type": "text", "text": item.text})
        case ReasoningText():
            require_own(item, dialect)
            signed = {} if item.signature is None else {"signature": item.signature}
            return encode({"type": "thinking", "thinking": item.text, **signed})
        case ReasoningEncrypted():
            require_own(item, dialect)
            return encode({"type": "redacted_thinking", "data": item.data})
        case ToolCall(seal=None, is_custom=False):
            known = [("type", b'"tool_use"'), ("id", encode(item.id or "")), ("name", encode(item.name))]
            return object_of([*known, ("input", arguments_object(item.arguments))])
        case ToolResult():
            known = [("type", b'"tool_result"'), ("tool_use_id", encode(item.call_id or ""))]
            return object_of([*known, ("content", item.content)])
        case Text() | ToolCall(is_custom=False):
            raise ForeignSeal(f"a {type(item).__name__} block can't hold a seal")
        case _:
            raise EncodeError(f"Anthropic's content can't hold a {type(item).__name__}")


def mark_block(item: Item, mark: Raw, dialect: Dialect) -> tuple[Item, ...] | None:
    """A block with a mark for prompt caching. Thinking can't have one, nor can empty text."""
    if isinstance(item, REASONING_KINDS) or (isinstance(item, Text) and not item.text):
        return None
    return (decode_block(with_mark(encode_block(item, dialect), mark), dialect),)


# --- finish reasons and usage -----------------------------------------------------------------------------------------


FINISH = FinishWords(
    known={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "other",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    },
    written={
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    },
)
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
USAGE = UsageMembers(
    "/usage",
    input=" ".join(_INPUT),  # Anthropic counts cached input separately; here it is part of the input
    output="output_tokens",
    reasoning="output_tokens_details.thinking_tokens",
    cached="cache_read_input_tokens",
    cache_written="cache_creation_input_tokens",
)


class _Transformation(Struct):
    type: str = ""
    path: str = ""


_transformations = msgspec.json.Decoder(list[_Transformation])
_MAX_DROPPED = 64


def with_dropped(usage: Usage | None, transformations: Raw) -> Usage | None:
    """The usage with the thinking that the provider reports as dropped. It only does so for requests with the beta
    `thinking-binding-controls-2026-08-01` (Anthropic docs, Preserved thinking, 2026-09-26).
    """
    listed = read_or_none(_transformations, transformations) if is_given(transformations) else None
    dropped = [f"/{one.path.replace('.', '/')}" for one in listed or () if one.type == "thinking_dropped"]
    return replace(usage or Usage(), dropped=tuple(dropped[:_MAX_DROPPED])) if dropped else usage


def together(begun: Raw, ended: Raw) -> Raw:
    """The usage of a stream: the input from its start, everything else from its end. Some servers send the input only
    at the start, others write zeros into one of the two.
    """
    if bytes(begun)[:1] != b"{" or bytes(ended)[:1] != b"{":
        return ended
    first, last = members(begun), members(ended)
    kept = [
        (name, first[name]) for name in _INPUT if name in first and _count(first[name]) > _count(last.get(name, NULL))
    ]
    rest = [(name, value) for name, value in first.items() if name not in last and name not in _INPUT]
    return Raw(set_members(ended, [(name, bytes(value)) for name, value in (*kept, *rest)]))


def _count(raw: Raw) -> int:
    text = bytes(raw)
    return int(text) if text.isdigit() and len(text) < 19 else 0


def encode_usage(usage: Usage | None) -> bytes:
    usage = usage or Usage()
    return encode(
        {
            "input_tokens": max(0, usage.input - usage.cached - usage.cache_written),
            "output_tokens": usage.output,
            "cache_creation_input_tokens": usage.cache_written,
            "cache_read_input_tokens": usage.cached,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
        }
    )
