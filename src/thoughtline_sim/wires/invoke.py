"""Bedrock's InvokeModel for Claude: Messages, each event of a stream in base64 inside Amazon's framing."""

from __future__ import annotations

import base64

from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_event
from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.reading import JsonObject
from thoughtline_sim.wires.messages import MessagesStyle, events_of, messages_wire
from thoughtline_sim.writing import compact

_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def invoke_wire(style: MessagesStyle) -> WireFormat:
    return messages_wire(style)._replace(
        format="bedrock_invoke", frames=_frames, stream_type=lambda exchange: CONTENT_TYPE
    )


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
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
