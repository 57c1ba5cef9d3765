"""The same load in Anthropic's format, for lanes where client and provider speak differently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bench.load.bodies import MODEL, NUMBER, Conversation, Json, Template, tools

_USAGE: Json = {"input_tokens": 1200, "output_tokens": 150}


def messages_template(conversation: Conversation, is_streaming: bool = False) -> Template:
    """The request that is measured, as a Messages body without any thinking."""
    system, *said = conversation.history(conversation.turns)
    turns = [_translated(message) for message in said]
    turns.append({"role": "user", "content": f"Go on. {NUMBER}"})
    offered = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in tools()]
    body: Json = {"model": MODEL, "max_tokens": 4096, "system": system["content"], "messages": turns, "tools": offered}
    thinking = {"type": "enabled", "budget_tokens": 2048}
    head, tail = msgspec.json.encode({**body, "thinking": thinking, "stream": is_streaming}).split(NUMBER.encode())
    return Template(head, tail)


def _translated(message: Json) -> Json:
    match message["role"]:
        case "assistant":
            call = message["tool_calls"][0]
            asked = {"name": call["function"]["name"], "input": msgspec.json.decode(call["function"]["arguments"])}
            return {"role": "assistant", "content": [{"type": "tool_use", "id": call["id"], **asked}]}
        case "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            return {"role": "user", "content": [block]}
        case _:
            return message


def message(content: list[Json], stop_reason: str | None) -> dict[str, Any]:
    """A whole response."""
    known = {"id": "msg_01A", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return {**known, "stop_reason": stop_reason, "stop_sequence": None, "usage": _USAGE}


MESSAGES_ANSWER = msgspec.json.encode(
    message(
        [
            {"type": "thinking", "thinking": "All is well. " * 30, "signature": "EqQBCgIYAhIM" * 8},
            {"type": "text", "text": "Done. " * 20},
        ],
        "end_turn",
    )
)


def messages_events(count: int) -> list[bytes]:
    """The events of a stream: a block of thinking, then one of text, so many deltas in all."""
    return [_event(kind, members) for kind, members in _events(count)]


def _events(count: int) -> Iterable[tuple[str, Json]]:
    yield "message_start", {"message": message([], None)}
    yield "content_block_start", {"index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}
    for _ in range(count // 2):
        yield "content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": " think"}}
    signature = {"type": "signature_delta", "signature": "EqQBCgIYAhIM" * 8}
    yield "content_block_delta", {"index": 0, "delta": signature}
    yield "content_block_stop", {"index": 0}
    yield "content_block_start", {"index": 1, "content_block": {"type": "text", "text": ""}}
    for _ in range(count - count // 2):
        yield "content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": " words"}}
    yield "content_block_stop", {"index": 1}
    yield "message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": _USAGE}
    yield "message_stop", {}


def _event(kind: str, members: Json) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **members}))
