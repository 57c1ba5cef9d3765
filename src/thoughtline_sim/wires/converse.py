"""Bedrock's Converse, and its InvokeModel for Claude: Messages, each event of a stream in base64 inside its framing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_event, encode_message
from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import Hosted, Thought
from thoughtline_sim.reading import Json, JsonObject, as_object, objects, string
from thoughtline_sim.values import InputMessage, ModelAnswer
from thoughtline_sim.wires import messages
from thoughtline_sim.wires.messages import STOPS, BlockPlace, MessagesStyle, events_of, messages_wire, written_blocks
from thoughtline_sim.writing import compact, pieces_of


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
    return messages.read({"messages": [claude_message(message) for message in objects(body.get("messages"))]})


def claude_message(message: JsonObject) -> JsonObject:
    """A message in Claude's own format."""
    return {"role": message.get("role"), "content": [_claude_block(block) for block in objects(message.get("content"))]}


def _claude_block(block: JsonObject) -> JsonObject:
    reasoning = as_object(block.get("reasoningContent"))
    if "redactedContent" in reasoning:
        return {"type": "redacted_thinking", "data": _unwrapped(reasoning["redactedContent"])}
    if "reasoningContent" in block:
        text = as_object(reasoning.get("reasoningText"))
        return {"type": "thinking", **{"thinking" if key == "text" else key: value for key, value in text.items()}}
    if "toolUse" in block:
        call = as_object(block["toolUse"])
        return {"type": "tool_use", **call, "id": call.get("toolUseId")}
    if "toolResult" in block:
        result = as_object(block["toolResult"])
        return {"type": "tool_result", **result, "tool_use_id": result.get("toolUseId")}
    return {"type": "text", **block}


def _unwrapped(value: Json) -> Json:
    """The blob is base64 of a base64 text."""
    try:
        return base64.b64decode(string(value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return value


def offer(body: JsonObject) -> OfferedTools:
    settings = as_object(body.get("toolConfig"))
    specs = [as_object(tool.get("toolSpec")) for tool in objects(settings.get("tools"))]
    forced = as_object(as_object(settings.get("toolChoice")).get("tool")).get("name")
    return offered(((spec.get("name"), as_object(spec.get("inputSchema")).get("json")) for spec in specs), forced)


def converse_wire(claude: MessagesStyle) -> WireFormat:
    """Claude signs here as it does at Anthropic; its style says how."""
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


def _plain(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """Models without signatures; Nova does not show its reasoning."""
    return {"type": "thinking", "thinking": "[REDACTED]" if "nova" in answer.model else piece.text}


def _block(block: JsonObject) -> JsonObject:
    """A block of Claude's own format in Amazon's."""
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
    headers = {":content-type": "application/json", ":message-type": "event"}
    events = _events(whole, chunk_chars)
    return [encode_message({":event-type": name, **headers}, compact(body)) for name, body in events]


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


# InvokeModel


_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def invoke_wire(style: MessagesStyle) -> WireFormat:
    return messages_wire(style)._replace(
        format="bedrock_invoke", frames=_invoke_frames, stream_type=lambda exchange: CONTENT_TYPE
    )


def _invoke_frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    """No pings, metrics at the end, padding of varying length (recorded)."""
    frames = []
    for number, event in enumerate(events_of(whole, chunk_chars)):
        if event["type"] == "ping":
            continue
        if event["type"] == "message_stop":
            event["amazon-bedrock-invocationMetrics"] = {"inputTokenCount": whole["usage"]["input_tokens"]}
        held = base64.b64encode(compact(event)).decode()
        frames.append(encode_event("chunk", compact({"bytes": held, "p": _PADDING[: number * 7 % 62]})))
    return frames
