"""Command Code's own API: messages of the AI SDK in an envelope, answered with the SDK's stream parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, Say, Think
from thoughtline_sim.reading import JsonObject, as_object, call_arguments, canonical, objects, string, text_of
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of

_FINISH = {"stop": "stop", "tool_calls": "tool-calls", "length": "length"}
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


def problem_of(params: JsonObject) -> str | None:
    """The required members of the request in the envelope; a rule checks the envelope itself."""
    if not isinstance(params.get("messages"), list):
        return 'Invalid input: expected array, received undefined at "params.messages"'
    return None


def read(params: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_message(index, message) for index, message in enumerate(objects(params.get("messages"))))


def _read_message(index: int, message: JsonObject) -> InputMessage:
    content = message.get("content")
    parts = objects(content) if isinstance(content, list) else [{"type": "text", "text": content}]
    calls = tuple(_read_call(part) for part in parts if part.get("type") == "tool-call")
    results = tuple(string(part.get("toolCallId")) for part in parts if part.get("type") == "tool-result")
    thoughts = tuple(_thought(part) for part in parts if part.get("type") == "reasoning")
    role = _ROLES.get(string(message.get("role")), "user")
    words = text_of([part for part in parts if part.get("type") == "text"])
    return InputMessage(role, index, words, thoughts=thoughts, calls=calls, results=results, raw=message)


def _read_call(part: JsonObject) -> InputCall:
    signature = canonical(part["providerOptions"]) if part.get("providerOptions") else ""
    arguments = call_arguments(part.get("input"))
    return InputCall(string(part.get("toolName")), arguments, string(part.get("toolCallId")), signature)


def _thought(part: JsonObject) -> str:
    """Its text, and its provider's metadata."""
    options = part.get("providerOptions")
    return string(part.get("text")) + (canonical(options) if options else "")


def offer(params: JsonObject) -> OfferedTools:
    choice = as_object(params.get("tool_choice"))
    tools = ((one.get("name"), one.get("input_schema")) for one in objects(params.get("tools")))
    return offered(tools, choice.get("name") if choice.get("type") == "tool" else None)


def _write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    return {
        "content": list(_parts(exchange, answer)),
        "finishReason": _FINISH[answer.finish],
        "usage": {
            "inputTokens": answer.usage.input,
            "inputTokenDetails": {"cacheReadTokens": answer.usage.cached},
            "outputTokens": answer.usage.output,
            "outputTokenDetails": {"reasoningTokens": answer.usage.reasoning},
            "totalTokens": answer.usage.total,
        },
    }


def _parts(exchange: SimExchange, answer: ModelAnswer) -> Iterator[JsonObject]:
    for number, piece in enumerate(answer.pieces):
        match piece:
            case Think() | Redacted():
                yield {"type": "reasoning", "text": piece.text, **_metadata(exchange, piece.text)}
            case Say():
                yield {"type": "text", "text": piece.text}
            case CallTool():
                name = f"call_{digest(answer.id, str(number))}"
                call = {"toolCallId": name, "toolName": piece.name, "input": arguments_of(piece)}
                yield {"type": "tool-call", **call}
            case Hosted():
                continue  # it runs no tools of its own
            case _:
                assert_never(piece)


def _metadata(exchange: SimExchange, text: str) -> JsonObject:
    """Claude's signature, as the AI SDK's provider for Anthropic sends it."""
    if "claude" not in exchange.model:
        return {}
    bound = ("command-code", exchange.model, exchange.account)
    signature = exchange.mint.seal({"thinking": digest(text)}, bound, ANTHROPIC)
    return {"providerOptions": {"anthropic": {"signature": signature}}}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    return [compact(event) + b"\n" for event in _events(whole, chunk_chars)]


def _events(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    yield {"type": "start"}
    yield {"type": "start-step", "request": {}, "warnings": []}
    for number, part in enumerate(whole["content"]):
        if part["type"] == "tool-call":
            yield from _call_events(part, chunk_chars)
            continue
        kind, name = part["type"], f"{part['type']}-{number}"
        yield {"type": f"{kind}-start", "id": name}
        for piece in pieces_of(part["text"], chunk_chars):
            yield {"type": f"{kind}-delta", "id": name, "text": piece}
        if "providerOptions" in part:  # as `@ai-sdk/anthropic` does: a delta of its own, without text
            yield {"type": f"{kind}-delta", "id": name, "text": "", "providerMetadata": part["providerOptions"]}
        yield {"type": f"{kind}-end", "id": name}
    reason, usage = whole["finishReason"], whole["usage"]
    yield {"type": "finish-step", "finishReason": reason, "usage": usage, "response": {"id": "gen-1"}}
    yield {"type": "finish", "finishReason": reason, "totalUsage": usage}
    yield {"type": "provider-metadata", "providerMetadata": {}}


def _call_events(part: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    name = part["toolCallId"]
    yield {"type": "tool-input-start", "id": name, "toolName": part["toolName"]}
    for piece in pieces_of(compact(part["input"]).decode(), chunk_chars):
        yield {"type": "tool-input-delta", "id": name, "delta": piece}
    yield {"type": "tool-input-end", "id": name}
    yield part


COMMAND_CODE = WireFormat(
    "command_code_generate",
    problem_of,
    read,
    offer=offer,
    write=_write,
    frames=_frames,
    echo=lambda whole: {"messages": [{"role": "assistant", "content": whole["content"]}]},
    # Seen with this content type, with `application/json` and as NDJSON: always lines of JSON.
    stream_type=lambda _: "text/event-stream",
)
