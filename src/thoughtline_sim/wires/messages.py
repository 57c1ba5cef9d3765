"""Anthropic Messages: reading requests, writing answers and streams.

The genuine API signs its thinking (`rules/anthropic.py` checks it); DeepSeek, Kimi, MiMo and MiniMax speak the same
wire and sign nothing that anybody reads. That difference is a `MessagesStyle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, assert_never

import msgspec

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools
from thoughtline_sim.values import (
    CallTool,
    Hosted,
    InputCall,
    InputMessage,
    ModelAnswer,
    Piece,
    Redacted,
    Role,
    Say,
    Think,
    TokenCounts,
    Tool,
)
from thoughtline_sim.wire import (
    Json,
    JsonObject,
    as_object,
    canonical,
    canonical_arguments,
    compact,
    digest,
    objects,
    pieces_of,
    string,
    text_of,
)

THINKING = ("thinking", "redacted_thinking")
_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


class BlockPlace(NamedTuple):
    """Where a thinking block stands in the answer that is being signed."""

    message_id: str
    number: int
    skeleton: str


class MessagesStyle(NamedTuple):
    """What a server of this wire puts into a thinking block, and how it names things."""

    thinking: Callable[[SimExchange, ModelAnswer, BlockPlace, Think | Redacted], JsonObject]
    call_id: Callable[[str, str, int], str]
    reply_id: Callable[[str], str]
    pieces: Callable[[SimExchange, tuple[Piece, ...]], tuple[Piece, ...]] = lambda exchange, pieces: pieces
    is_genuine: bool = False


def problem_of(body: JsonObject) -> str | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "messages: Field required"
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            return f"messages.{index}.role: Input should be 'user' or 'assistant'"
        content = message.get("content")
        if not isinstance(content, (str, list)):
            return f"messages.{index}.content: Input should be a valid list"
        if isinstance(content, list) and len(objects(content)) != len(content):
            return f"messages.{index}.content: Input should be a valid dictionary"
    return None


def blocks_of(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_message(index, message) for index, message in enumerate(objects(body.get("messages"))))


def _read_message(index: int, message: JsonObject) -> InputMessage:
    blocks = blocks_of(message)
    role: Role = "assistant" if message.get("role") == "assistant" else "user"
    if message.get("role") == "system":
        role = "system"
    results = tuple(string(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result")
    text = text_of([block for block in blocks if block.get("type") == "text"])
    calls = tuple(
        InputCall(string(block.get("name")), canonical_arguments(block.get("input")), string(block.get("id")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    thoughts = tuple(canonical(block) for block in blocks if block.get("type") in THINKING)
    return InputMessage(role, index, text, thoughts if role == "assistant" else (), calls, results, message)


def offer(body: JsonObject) -> OfferedTools:
    tools = tuple(
        Tool(string(tool.get("name")), as_object(tool.get("input_schema")))
        for tool in objects(body.get("tools"))
        if string(tool.get("name")) and "input_schema" in tool
    )
    choice = as_object(body.get("tool_choice"))
    return OfferedTools(tools, string(choice.get("name")) or None, choice.get("type") != "none")


def messages_wire(style: MessagesStyle) -> WireFormat:
    def write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
        return _write(exchange, answer, style)

    return WireFormat(
        "anthropic_messages",
        problem_of,
        read,
        offer,
        write,
        _frames,
        _echo,
        lambda _: "text/event-stream; charset=utf-8",
    )


def _echo(whole: JsonObject) -> JsonObject:
    return {"messages": [{"role": "assistant", "content": whole["content"]}]}


def skeleton_of(blocks: list[JsonObject]) -> str:
    """The kinds of a message's blocks in order: what a thinking block's neighbours were."""
    letters = {"thinking": "t", "redacted_thinking": "r", "tool_use": "u", "text": "x", "server_tool_use": "s"}
    return "".join(letters.get(string(block.get("type")), "o") for block in blocks)


def _write(exchange: SimExchange, answer: ModelAnswer, style: MessagesStyle) -> JsonObject:
    pieces = style.pieces(exchange, answer.pieces)
    kinds = {Think: "t", Redacted: "r", Say: "x", CallTool: "u", Hosted: "so"}
    skeleton = "".join(kinds[type(piece)] for piece in pieces)
    reply_id = style.reply_id(answer.id)
    blocks: list[JsonObject] = []
    thoughts = calls = 0
    for piece in pieces:
        match piece:
            case Think() | Redacted():
                blocks.append(style.thinking(exchange, answer, BlockPlace(reply_id, thoughts, skeleton), piece))
                thoughts += 1
            case Say():
                blocks.append({"type": "text", "text": piece.text})
            case CallTool():
                blocks.append(_tool_use(piece, style.call_id(answer.id, piece.name, calls), style))
                calls += 1
            case Hosted():
                blocks += _server_tool(piece, f"srvtoolu_01{digest(answer.id, 'hosted', str(len(blocks)))[:22]}")
            case _:
                assert_never(piece)
    return _around(exchange, answer, reply_id, blocks, style)


def _around(
    exchange: SimExchange, answer: ModelAnswer, reply_id: str, blocks: list[JsonObject], style: MessagesStyle
) -> JsonObject:
    whole: JsonObject = {
        "model": answer.model,
        "id": reply_id,
        "type": "message",
        "role": "assistant",
        "content": blocks,
        "stop_reason": _STOPS[answer.finish],
        "stop_sequence": None,
        **({"stop_details": None} if style.is_genuine else {}),
        "usage": _usage(answer.usage, style),
    }
    if "input_transformations" in exchange.notes:
        whole["input_transformations"] = exchange.notes["input_transformations"]
    return whole


def _tool_use(call: CallTool, call_id: str, style: MessagesStyle) -> JsonObject:
    block: JsonObject = {"type": "tool_use", "id": call_id, "name": call.name, "input": arguments_of(call)}
    return {**block, "caller": {"type": "direct"}} if style.is_genuine else block


def _server_tool(piece: Hosted, name: str) -> list[JsonObject]:
    """A call of the provider's own tool and its result, which stands right after it."""
    use = {"type": "server_tool_use", "id": name, "name": piece.name, "input": arguments_of(piece)}
    found = [{"type": "web_search_result", "url": "https://example.com", "title": "Found", "encrypted_content": name}]
    return [use, {"type": f"{piece.name}_tool_result", "tool_use_id": name, "content": found}]


def arguments_of(call: CallTool | Hosted) -> Json:
    """The arguments as an object, for wires that have no text for them; what is no object becomes one."""
    try:
        value = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        value = None
    return value if isinstance(value, dict) else {"value": value if value is not None else call.arguments}


def _usage(usage: TokenCounts, style: MessagesStyle) -> JsonObject:
    counts: JsonObject = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": usage.output,
    }
    if not style.is_genuine:
        return {**counts, "service_tier": "standard"}
    return {
        **counts,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
        "inference_geo": "global",
    }


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    events = list(_events(whole, chunk_chars))
    return [_event(event, number) for number, event in enumerate(events)]


def _event(event: JsonObject, number: int) -> bytes:
    """Spaces of varying number before the last brace, as the genuine API pads its lines (recorded)."""
    body = compact(event)
    padded = body[:-1] + b" " * (number * 7 % 13) + b"}"
    return b"event: " + string(event["type"]).encode() + b"\ndata: " + padded + b"\n\n"


def _events(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    usage = whole["usage"]
    start = {key: value for key, value in whole.items() if key != "stop_details"}
    begun = {key: value for key, value in usage.items() if key != "output_tokens_details"}
    start |= {"content": [], "stop_reason": None, "usage": {**begun, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(block, chunk_chars):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    told = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    delta = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in whole}
    yield {"type": "message_delta", "delta": delta, "usage": {key: usage[key] for key in told}}
    yield {"type": "message_stop"}


def _opened(block: JsonObject) -> JsonObject:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case "text":
            return {"type": "text", "text": ""}
        case _:
            return block


def _deltas(block: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    match block["type"]:
        case "thinking":
            for piece in pieces_of(block["thinking"], chunk_chars):
                yield {"type": "thinking_delta", "thinking": piece}
            if block.get("signature"):
                yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for piece in pieces_of(block["text"], chunk_chars):
                yield {"type": "text_delta", "text": piece}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces_of(compact(block["input"]).decode() if block["input"] else "", chunk_chars):
                yield {"type": "input_json_delta", "partial_json": piece}


def _unsigned(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Think | Redacted) -> JsonObject:
    """DeepSeek, MiMo, MiniMax: a signature that is there for the schema and nothing else."""
    return {"type": "thinking", "thinking": piece.text, "signature": place.message_id}


def _decorated(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Think | Redacted) -> JsonObject:
    """Kimi: no magic, 12946 characters whole and 4340 streamed, never read (contracts.md §0.3)."""
    size = 4340 if exchange.is_streaming else 12946
    letters = "".join(digest(answer.id, str(place.number), str(number)) for number in range(size // 24 + 1))
    return {"type": "thinking", "thinking": piece.text, "signature": letters[:size]}


PLAIN = MessagesStyle(
    _unsigned,
    lambda digits, name, number: f"call_{number:02d}_{digest(digits, str(number))}",
    lambda digits: f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}",
)
KIMI = MessagesStyle(
    _decorated, lambda digits, name, number: f"functions.{name}:{number}", lambda digits: f"msg_{digits[:24]}"
)
