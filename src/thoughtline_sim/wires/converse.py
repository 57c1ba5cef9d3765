"""Bedrock's Converse, and its binary stream."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_message
from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.values import Hosted, InputCall, InputMessage, ModelAnswer, Redacted, Role, Think
from thoughtline_sim.wire import (
    JsonObject,
    as_object,
    canonical,
    canonical_arguments,
    compact,
    objects,
    pieces_of,
    string,
)
from thoughtline_sim.wires.messages import STOPS, BlockPlace, MessagesStyle, written_blocks


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
    thoughts = tuple(canonical(block["reasoningContent"]) for block in blocks if "reasoningContent" in block)
    calls = [as_object(block["toolUse"]) for block in blocks if "toolUse" in block]
    results = [as_object(block["toolResult"]) for block in blocks if "toolResult" in block]
    return InputMessage(
        role,
        index,
        text="".join(string(block.get("text")) for block in blocks),
        thoughts=thoughts if role == "assistant" else (),
        calls=tuple(
            InputCall(string(call.get("name")), canonical_arguments(call.get("input")), string(call.get("toolUseId")))
            for call in calls
        ),
        results=tuple(string(result.get("toolUseId")) for result in results),
        raw=message,
    )


def offer(body: JsonObject) -> OfferedTools:
    settings = as_object(body.get("toolConfig"))
    specs = [as_object(tool.get("toolSpec")) for tool in objects(settings.get("tools"))]
    forced = as_object(as_object(settings.get("toolChoice")).get("tool")).get("name")
    return offered(((spec.get("name"), as_object(spec.get("inputSchema")).get("json")) for spec in specs), forced)


def converse_wire(claude: MessagesStyle) -> WireFormat:
    """Claude signs here as it does at home; its style says how."""
    return WireFormat(
        "bedrock_converse",
        problem_of,
        read,
        offer=offer,
        write=partial(_write, claude),
        frames=_frames,
        echo=lambda whole: {"messages": [whole["output"]["message"]]},
        stream_type=lambda _: CONTENT_TYPE,
    )


def is_claude(model: str) -> bool:
    return "claude" in model


def _write(claude: MessagesStyle, exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    style = claude if is_claude(answer.model) else claude._replace(thinking=_plain)
    answer = replace(answer, pieces=tuple(piece for piece in answer.pieces if not isinstance(piece, Hosted)))
    blocks = [_block(block) for block in written_blocks(style, exchange, answer)]
    return {
        "metrics": {"latencyMs": 1000},
        "output": {"message": {"content": blocks, "role": "assistant"}},
        "stopReason": STOPS[answer.finish],
        "usage": {
            "inputTokens": answer.usage.input,
            "outputTokens": answer.usage.output,
            "totalTokens": answer.usage.total,
        },
    }


def _plain(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Think | Redacted) -> JsonObject:
    """Models that sign nothing; Nova does not show what it thinks."""
    return {"type": "thinking", "thinking": "[REDACTED]" if "nova" in answer.model else piece.text}


def _block(block: JsonObject) -> JsonObject:
    """A block of Claude's own wire in Amazon's."""
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "tool_use":
            return {"toolUse": {"input": block["input"], "name": block["name"], "toolUseId": block["id"]}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": base64.b64encode(block["data"].encode()).decode()}}
        case _:
            signature = {"signature": block["signature"]} if "signature" in block else {}
            return {"reasoningContent": {"reasoningText": {**signature, "text": block["thinking"]}}}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    return [_frame(name, body) for name, body in _events(whole, chunk_chars)]


def _frame(name: str, body: JsonObject) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, compact(body))


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
    yield "metadata", {"metrics": whole["metrics"], "usage": whole["usage"]}


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
