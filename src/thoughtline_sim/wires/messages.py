"""Anthropic Messages: decoding requests, encoding answers and streams.

The genuine API signs its thinking (`rules/anthropic.py` checks it); DeepSeek, Kimi, MiMo and MiniMax speak the same
format without signatures that matter. That difference is a `MessagesStyle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, assert_never

import msgspec

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import CallTool, Hosted, Piece, Redacted, Say, Think, Thought
from thoughtline_sim.reading import Json, JsonObject, as_object, call_arguments, canonical, objects, string, text_of
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role
from thoughtline_sim.writing import compact, digest, pieces_of, uuid_of

THINKING = ("thinking", "redacted_thinking")
STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system"}


class BlockPlace(NamedTuple):
    """The position of a thinking block in the answer that is being signed."""

    message_id: str
    number: int
    skeleton: str


class MessagesStyle(NamedTuple):
    """A server's content of a thinking block, and its names."""

    thinking: Callable[[SimExchange, ModelAnswer, BlockPlace, Thought], JsonObject]
    call_id: Callable[[str, str, int], str]
    reply_id: Callable[[str], str]
    pieces: Callable[[SimExchange, tuple[Piece, ...]], tuple[Piece, ...]] = lambda exchange, pieces: pieces
    leading: Callable[[SimExchange], tuple[list[JsonObject], bool]] = lambda exchange: ([], False)
    """Blocks that the provider puts before the model's, and whether the answer ends with them."""


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
    role = _ROLES.get(string(message.get("role")), "user")
    thoughts = tuple(canonical(block) for block in blocks if block.get("type") in THINKING)
    return InputMessage(
        role,
        index,
        text=text_of([block for block in blocks if block.get("type") == "text"]),
        thoughts=thoughts if role == "assistant" else (),
        calls=tuple(
            InputCall(string(block.get("name")), call_arguments(block.get("input")), string(block.get("id")))
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        results=tuple(string(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"),
        raw=message,
    )


def offer(body: JsonObject) -> OfferedTools:
    tools = [tool for tool in objects(body.get("tools")) if "input_schema" in tool]
    choice = as_object(body.get("tool_choice"))
    named = ((tool.get("name"), tool["input_schema"]) for tool in tools)
    return offered(named, choice.get("name"), may_call=choice.get("type") != "none")


def messages_wire(style: MessagesStyle) -> WireFormat:
    return WireFormat(
        "anthropic_messages",
        problem_of,
        read,
        offer=offer,
        write=partial(_write, style),
        frames=_frames,
        echo=lambda whole: {"messages": [{"role": "assistant", "content": whole["content"]}]},
        stream_type=lambda _: "text/event-stream; charset=utf-8",
    )


def skeleton_of(blocks: list[JsonObject]) -> str:
    """The kinds of a message's blocks in order: the neighbours of a thinking block."""
    letters = {"thinking": "t", "redacted_thinking": "r", "tool_use": "u", "text": "x", "server_tool_use": "s"}
    return "".join(letters.get(string(block.get("type")), "o") for block in blocks)


def _write(style: MessagesStyle, exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    leading, is_all = style.leading(exchange)
    return {
        "model": answer.model,
        "id": style.reply_id(answer.id),
        "type": "message",
        "role": "assistant",
        "content": leading if is_all else [*leading, *written_blocks(style, exchange, answer)],
        "stop_reason": "compaction" if is_all else STOPS[answer.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": answer.usage.input,
            "output_tokens": answer.usage.output,
            "output_tokens_details": {"thinking_tokens": answer.usage.reasoning},
        },
        **exchange.notes,
    }


def written_blocks(style: MessagesStyle, exchange: SimExchange, answer: ModelAnswer) -> list[JsonObject]:
    """The content of an answer."""
    pieces = style.pieces(exchange, answer.pieces)
    kinds = {Think: "t", Redacted: "r", Say: "x", CallTool: "u", Hosted: "so"}
    place = BlockPlace(style.reply_id(answer.id), 0, "".join(kinds[type(piece)] for piece in pieces))
    blocks: list[JsonObject] = []
    calls = 0
    for piece in pieces:
        match piece:
            case Think() | Redacted():
                blocks.append(style.thinking(exchange, answer, place, piece))
                place = place._replace(number=place.number + 1)
            case Say():
                blocks.append({"type": "text", "text": piece.text})
            case CallTool():
                call_id = style.call_id(answer.id, piece.name, calls)
                blocks.append({"type": "tool_use", "id": call_id, "name": piece.name, "input": arguments_of(piece)})
                calls += 1
            case Hosted():
                blocks += _server_tool(piece, f"srvtoolu_01{digest(answer.id, 'hosted', str(len(blocks)))[:22]}")
            case _:
                assert_never(piece)
    return blocks


def _server_tool(piece: Hosted, name: str) -> list[JsonObject]:
    """A call of the provider's own tool followed by its result."""
    use = {"type": "server_tool_use", "id": name, "name": piece.name, "input": arguments_of(piece)}
    found = [{"type": "web_search_result", "url": "https://example.com", "title": "Found", "encrypted_content": name}]
    return [use, {"type": f"{piece.name}_tool_result", "tool_use_id": name, "content": found}]


def arguments_of(call: CallTool | Hosted) -> Json:
    """The arguments as an object, for formats that have no text for them; other values are wrapped in one."""
    try:
        value = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        value = None
    return value if isinstance(value, dict) else {"value": value if value is not None else call.arguments}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    """Spaces of varying number before the last brace, as the genuine API pads its lines (recorded)."""
    frames = []
    for number, event in enumerate(events_of(whole, chunk_chars)):
        padded = compact(event)[:-1] + b" " * (number * 7 % 13) + b"}"
        frames.append(b"event: " + event["type"].encode() + b"\ndata: " + padded + b"\n\n")
    return frames


def events_of(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    begun: JsonObject = {"content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": {**whole, **begun}}
    for index, block in enumerate(whole["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(block, chunk_chars):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _opened(block: JsonObject) -> JsonObject:
    """A block as it is announced, without the content of its deltas. A signed compaction comes complete."""
    if block["type"] == "compaction":
        return block if "signature" in block else {**block, "content": None}
    empty: JsonObject = {"thinking": "", "signature": "", "text": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


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
        case "compaction" if "signature" not in block:
            yield {"type": "compaction_delta", "content": block["content"]}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces_of(compact(block["input"]).decode() if block["input"] else "", chunk_chars):
                yield {"type": "input_json_delta", "partial_json": piece}


def _unsigned(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """DeepSeek, MiMo, MiniMax: a signature only for the schema."""
    return {"type": "thinking", "thinking": piece.text, "signature": place.message_id}


def _decorated(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """Kimi: no prefix, 12946 characters whole and 4340 streamed, never read."""
    size = 4340 if exchange.is_streaming else 12946
    letters = "".join(digest(answer.id, str(place.number), str(number)) for number in range(size // 24 + 1))
    return {"type": "thinking", "thinking": piece.text, "signature": letters[:size]}


PLAIN = MessagesStyle(
    _unsigned, lambda digits, name, number: f"call_{number:02d}_{digest(digits, str(number))}", uuid_of
)
KIMI = MessagesStyle(
    _decorated, lambda digits, name, number: f"functions.{name}:{number}", lambda digits: f"msg_{digits[:24]}"
)


def _hidden(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """Meta: unreadable reasoning."""
    return {"type": "redacted_thinking", "data": digest(answer.id, str(place.number)) * 4}


META = PLAIN._replace(thinking=_hidden)
