"""Bedrock's Converse, and its binary stream."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_message
from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools
from thoughtline_sim.values import (
    CallTool,
    Hosted,
    InputCall,
    InputMessage,
    ModelAnswer,
    Redacted,
    Role,
    Say,
    Think,
    Tool,
)
from thoughtline_sim.wire import (
    JsonObject,
    as_object,
    canonical,
    canonical_arguments,
    compact,
    digest,
    objects,
    pieces_of,
    string,
)
from thoughtline_sim.wires.messages import BlockPlace, MessagesStyle, arguments_of

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def problem_of(body: JsonObject) -> str | None:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "1 validation error detected: Value at 'messages' failed to satisfy constraint: Member must not be null"
    for index, message in enumerate(messages, 1):
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list) or len(objects(content)) != len(content):
            return f"1 validation error detected: Value at 'messages.{index}.member.content' is not valid"
    return None


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_message(index, message) for index, message in enumerate(objects(body.get("messages"))))


def _read_message(index: int, message: JsonObject) -> InputMessage:
    blocks = objects(message.get("content"))
    role: Role = "assistant" if message.get("role") == "assistant" else "user"
    calls = tuple(
        InputCall(string(call.get("name")), canonical_arguments(call.get("input")), string(call.get("toolUseId")))
        for call in (as_object(block.get("toolUse")) for block in blocks if "toolUse" in block)
    )
    results = tuple(
        string(as_object(block["toolResult"]).get("toolUseId")) for block in blocks if "toolResult" in block
    )
    thoughts = tuple(canonical(block["reasoningContent"]) for block in blocks if "reasoningContent" in block)
    text = "".join(string(block.get("text")) for block in blocks)
    return InputMessage(role, index, text, thoughts if role == "assistant" else (), calls, results, message)


def offer(body: JsonObject) -> OfferedTools:
    settings = as_object(body.get("toolConfig"))
    specs = [as_object(tool.get("toolSpec")) for tool in objects(settings.get("tools"))]
    tools = tuple(
        Tool(string(spec.get("name")), as_object(as_object(spec.get("inputSchema")).get("json")))
        for spec in specs
        if string(spec.get("name"))
    )
    forced = string(as_object(as_object(settings.get("toolChoice")).get("tool")).get("name"))
    return OfferedTools(tools, forced or None)


def converse_wire(style: MessagesStyle) -> WireFormat:
    """Claude signs here as it does at home; `style` says how."""

    def write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
        return _write(exchange, answer, style)

    return WireFormat(
        "bedrock_converse",
        problem_of,
        read,
        offer,
        write,
        _frames,
        _echo,
        lambda _: CONTENT_TYPE,
    )


def is_claude(model: str) -> bool:
    return "claude" in model


def _write(exchange: SimExchange, answer: ModelAnswer, style: MessagesStyle) -> JsonObject:
    kinds = {Think: "t", Redacted: "r", Say: "x", CallTool: "u"}
    pieces = [piece for piece in answer.pieces if not isinstance(piece, Hosted)]
    place = BlockPlace(answer.id, 0, "".join(kinds[type(piece)] for piece in pieces))
    blocks: list[JsonObject] = []
    for piece in pieces:
        blocks.append(_block(exchange, answer, style, place, piece, len(blocks)))
        if isinstance(piece, (Think, Redacted)):
            place = place._replace(number=place.number + 1)
    return {
        "metrics": {"latencyMs": 1000},
        "output": {"message": {"content": blocks, "role": "assistant"}},
        "stopReason": _STOPS[answer.finish],
        "usage": {
            "inputTokens": answer.usage.input,
            "outputTokens": answer.usage.output,
            "totalTokens": answer.usage.total,
            "cacheReadInputTokens": 0,
            "cacheReadInputTokenCount": 0,
            "serverToolUsage": {},
        },
    }


def _block(
    exchange: SimExchange,
    answer: ModelAnswer,
    style: MessagesStyle,
    place: BlockPlace,
    piece: Think | Redacted | Say | CallTool,
    number: int,
) -> JsonObject:
    match piece:
        case Say():
            return {"text": piece.text}
        case CallTool():
            call_id = f"tooluse_{digest(answer.id, str(number))[:22]}"
            return {"toolUse": {"input": arguments_of(piece), "name": piece.name, "toolUseId": call_id}}
        case _ if is_claude(answer.model):
            return {"reasoningContent": _from_anthropic(style.thinking(exchange, answer, place, piece))}
        case _ if "nova" in answer.model:
            return {"reasoningContent": {"reasoningText": {"text": "[REDACTED]"}}}
        case _:
            return {"reasoningContent": {"reasoningText": {"text": piece.text}}}


def _from_anthropic(block: JsonObject) -> JsonObject:
    if block["type"] == "redacted_thinking":
        return {"redactedContent": base64.b64encode(block["data"].encode()).decode()}
    return {"reasoningText": {"signature": block["signature"], "text": block["thinking"]}}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    return [_frame(name, body, number) for number, (name, body) in enumerate(_events(whole, chunk_chars))]


def _frame(name: str, body: JsonObject, number: int) -> bytes:
    """`p` is padding, so that sizes tell nothing (recorded)."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, compact({**body, "p": _PADDING[: 2 + number * 11 % 50]}))


def _events(whole: JsonObject, chunk_chars: int) -> Iterator[tuple[str, JsonObject]]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(whole["output"]["message"]["content"]):
        if "toolUse" in block:
            start = {key: value for key, value in block["toolUse"].items() if key != "input"}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": {"toolUse": start}}
        for delta in _deltas(block, chunk_chars):
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": whole["stopReason"]}
    usage = {key: value for key, value in whole["usage"].items() if not key.startswith("cache")}
    yield "metadata", {"metrics": whole["metrics"], "usage": usage}


def _deltas(block: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    if "toolUse" in block:
        for piece in pieces_of(compact(block["toolUse"]["input"]).decode(), chunk_chars):
            yield {"toolUse": {"input": piece}}
    elif "text" in block:
        for piece in pieces_of(block["text"], chunk_chars):
            yield {"text": piece}
    elif "redactedContent" in block["reasoningContent"]:
        yield {"reasoningContent": block["reasoningContent"]}
    else:
        reasoning = block["reasoningContent"]["reasoningText"]
        for piece in pieces_of(reasoning["text"], chunk_chars):
            yield {"reasoningContent": {"text": piece}}
        if "signature" in reasoning:
            yield {"reasoningContent": {"signature": reasoning["signature"]}}


def _echo(whole: JsonObject) -> JsonObject:
    return {"messages": [whole["output"]["message"]]}
