"""Ollama's own chat: `message.thinking`, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.reading import JsonObject, string
from thoughtline_sim.values import InputMessage, ModelAnswer
from thoughtline_sim.wires import chat
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of


def _read(body: JsonObject) -> tuple[InputMessage, ...]:
    """Messages are chat's, but for the name of the reasoning field."""
    messages = [{**message, "reasoning_content": string(message.get("thinking"))} for message in body["messages"]]
    return chat.read({"messages": messages})


def _write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": answer.text}
    if answer.thinking:
        message["thinking"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [
            {
                **({"id": f"call_{digest(answer.id, str(number))[:8]}"} if answer.has_ids else {}),
                "function": {"index": number, "name": call.name, "arguments": arguments_of(call)},
            }
            for number, call in enumerate(answer.calls)
        ]
    return {
        "model": answer.model,
        "created_at": datetime.fromtimestamp(answer.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        "message": message,
        "done": True,
        "done_reason": "length" if answer.finish == "length" else "stop",
        "prompt_eval_count": answer.usage.input,
        "eval_count": answer.usage.output,
    }


def _lines(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    message = whole["message"]
    head = {"model": whole["model"], "created_at": whole["created_at"]}
    empty = {"role": "assistant", "content": ""}
    for piece in pieces_of(string(message.get("thinking")), chunk_chars):
        yield {**head, "message": {**empty, "thinking": piece}, "done": False}
    for piece in pieces_of(message["content"], chunk_chars):
        yield {**head, "message": {**empty, "content": piece}, "done": False}
    for call in message.get("tool_calls", []):
        yield {**head, "message": {**empty, "tool_calls": [call]}, "done": False}
    yield {**whole, "message": empty}


OLLAMA = WireFormat(
    "ollama_chat",
    chat.problem_of,
    _read,
    offer=chat.offer,
    write=_write,
    frames=lambda exchange, whole, size: [compact(line) + b"\n" for line in _lines(whole, size)],
    echo=lambda whole: {"messages": [whole["message"]]},
    stream_type=lambda _: "application/x-ndjson",
)
