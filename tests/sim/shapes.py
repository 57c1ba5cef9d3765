"""The shape of an answer: which keys stand where, and which events follow which. Values don't matter."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from thoughtline.formats.aws_event_stream import EventStream

# What a caller put into its request, or a tool's own arguments: not the provider's shape.
FREE = {"tools", "args", "input", "metadata", "text.format", "instructions", "tool_choice", "schema", "logit_bias"}

# The members that carry the conversation, reasoning, ids, calls, the finish and counts of tokens. A simulator need not
# have the others: fingerprints, tiers, times, costs, breakdowns of usage, settings that are repeated.
CARRIES = {
    *("id", "model", "choices", "message", "delta", "role", "content", "text", "tool_calls", "function", "name"),
    *("arguments", "reasoning", "reasoning_content", "reasoning_details", "thinking", "signature", "data", "summary"),
    *("output", "type", "status", "call_id", "encrypted_content", "phase", "item", "part", "input", "usage"),
    *("candidates", "parts", "thought", "thoughtSignature", "functionCall", "args", "usageMetadata", "responseId"),
    *("reasoningContent", "reasoningText", "redactedContent", "toolUse", "toolUseId", "contentBlockIndex", "index"),
    *("finish_reason", "stop_reason", "stopReason", "finishReason", "incomplete_details", "done", "done_reason"),
    *("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "reasoning_tokens"),
    *("promptTokenCount", "candidatesTokenCount", "totalTokenCount", "thoughtsTokenCount", "inputTokens"),
    *("outputTokens", "totalTokens", "prompt_eval_count", "eval_count"),
}
BESIDE = (".reasoning", ".text", ".x_groq")
"""Settings of the request and Groq's own members, next to the answer."""


def carries(path: str) -> bool:
    """Whether a client or the gateway reads this member."""
    return path.rpartition(".")[2] in CARRIES and not path.startswith(BESIDE)


def paths_of(value: Any, prefix: str = "") -> set[str]:
    """Every key by its path; the elements of a list share one, except for the `type` of each."""
    found: set[str] = set()
    if isinstance(value, dict):
        kind = f"<{value['type']}>" if isinstance(value.get("type"), str) else ""
        for key, held in value.items():
            path = f"{prefix}{kind}.{key}"
            found.add(path)
            if key not in FREE:
                found |= paths_of(held, path)
    elif isinstance(value, list):
        for element in value:
            found |= paths_of(element, prefix + "[]")
    return found


def payloads_of(stream: bytes, content_type: str) -> list[Any]:
    """The JSON of each event of a stream, named where its framing names it."""
    if "amazon" in content_type:
        return [
            {"type": message.headers[":event-type"], **json.loads(message.payload)}
            for message in EventStream().feed(stream)
        ]
    text = stream.decode()
    if text.lstrip().startswith("["):
        return list(json.loads(text))
    lines = [line.removeprefix("data:").strip() for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def kind_of(payload: dict[str, Any]) -> str:
    """What an event is: its type, with what it is about; of a chat chunk, the members that say something."""
    if "type" in payload:
        about = payload.get("delta") if isinstance(payload.get("delta"), dict) else {}
        about = about or payload.get("content_block") or payload.get("item") or payload.get("part") or {}
        return f"{payload['type']} {about.get('type', '') or _reasoning_kind(about)}".strip()
    if "candidates" in payload:
        candidate = payload["candidates"][0]
        parts = candidate.get("content", {}).get("parts", [{}])
        return "+".join(_part_kind(part) for part in parts) + (" end" if "finishReason" in candidate else "")
    if "message" in payload:
        keys = [key for key in ("thinking", "content", "tool_calls") if payload["message"].get(key)]
        return "+".join(keys) + (" end" if payload.get("done") else "")
    if not payload.get("choices"):
        return "usage"
    choice = payload["choices"][0]
    delta = choice.get("delta", {})
    keys = [key for key in sorted(delta) if delta[key] and key not in ("role", "channel", "index")]
    return "+".join(keys) + (" end" if choice.get("finish_reason") else "")


def _reasoning_kind(delta: dict[str, Any]) -> str:
    if "reasoningContent" in delta:
        return "reasoning." + "+".join(delta["reasoningContent"])
    return "+".join(delta)


def _part_kind(part: dict[str, Any]) -> str:
    seal = " signed" if "thoughtSignature" in part else ""
    if "functionCall" in part:
        return "call" + seal
    if part.get("thought"):
        return "thought"
    return ("text" if part.get("text") else "empty") + seal


def steps_of(payloads: list[Any]) -> set[tuple[str, str]]:
    """Which kind of event came right after which; repetitions of one kind are one. Pings come at any time."""
    kinds = ["begin", *(kind for kind in map(kind_of, payloads) if kind != "ping"), "end of stream"]
    collapsed = [kind for place, kind in enumerate(kinds) if kinds[place - 1 : place] != [kind]]
    return set(pairwise(collapsed))


def recorded_stream(exchange: dict[str, Any]) -> tuple[bytes, str] | None:
    """The stream of a recorded exchange, with a content type that tells its framing."""
    if "stream_b64" in exchange:
        return base64.b64decode(exchange["stream_b64"]), "application/vnd.amazon.eventstream"
    if isinstance(exchange.get("stream"), str):
        return exchange["stream"].encode(), "text"
    return None


def turns_in(payloads: list[Any]) -> Iterator[list[Any]]:
    """Some fixtures hold several streams one after the other."""
    begun: list[Any] = []
    for payload in payloads:
        if begun and payload.get("type") in ("response.created", "message_start"):
            yield begun
            begun = []
        begun.append(payload)
    yield begun
