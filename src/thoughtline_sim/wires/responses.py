"""The Responses API of OpenAI, Azure, xAI, DeepSeek and Copilot: reading requests, writing answers.

What differs is a `ResponsesStyle`: ids, what a reasoning item holds, the members around an answer. The stream is in
`responses_stream.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_never

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.ledger import StoredResponse
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
    TokenCounts,
    Tool,
)
from thoughtline_sim.wire import (
    Json,
    JsonObject,
    as_object,
    canonical_arguments,
    digest,
    objects,
    string,
    text_of,
)
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.wires.responses_stream import StreamManners, frames_of

MODEL_ITEMS = ("reasoning", "function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


class ResponsesStyle(NamedTuple):
    """A provider's way with Responses."""

    item_id: Callable[[str, str, int], str]
    """From the kind of item (`rs`, `fc`, `msg`), the answer's digits and the item's number."""
    reply_id: Callable[[str], str]
    call_id: Callable[[str, int], str]
    reasoning: Callable[[SimExchange, ModelAnswer, str, Think | Redacted], JsonObject]
    around: Callable[[SimExchange, ModelAnswer], JsonObject]
    usage: Callable[[TokenCounts], JsonObject]
    has_phase: bool = False
    manners: StreamManners = StreamManners()
    keeps: bool = True
    """Whether answers can be stored at all."""


def problem_of(body: JsonObject) -> str | None:
    given = body.get("input")
    if isinstance(given, str) or (given is None and "previous_response_id" in body):
        return None
    if not isinstance(given, list) or len(objects(given)) != len(given):
        return "Invalid type for 'input': expected one of a string or an array of objects."
    return None


def items_of(body: JsonObject) -> list[JsonObject]:
    """The input as items; a string is a user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return objects(given)


def kind_of(item: JsonObject) -> str:
    """A message may leave its type out."""
    return string(item.get("type")) or ("message" if "role" in item else "item_reference")


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_item(index, item) for index, item in enumerate(items_of(body)))


def _read_item(index: int, item: JsonObject) -> InputMessage:
    kind = kind_of(item)
    if kind == "reasoning":
        return InputMessage("assistant", index, "", _thoughts(item), raw=item)
    if kind in MODEL_ITEMS:
        arguments = canonical_arguments(item.get("arguments", item.get("input")))
        call = InputCall(string(item.get("name")), arguments, string(item.get("call_id")))
        return InputMessage("assistant", index, calls=(call,), raw=item)
    if kind in _RESULTS:
        return InputMessage("tool", index, results=(string(item.get("call_id")),), raw=item)
    if is_hosted(item):
        return InputMessage("assistant", index, raw=item)
    roles: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "system"}
    return InputMessage(roles.get(string(item.get("role")), "user"), index, text_of(item.get("content")), raw=item)


def is_hosted(item: JsonObject) -> bool:
    """Whether an item is a call of a tool that the provider runs itself."""
    return kind_of(item).endswith("_call") and kind_of(item) not in MODEL_ITEMS


def _thoughts(item: JsonObject) -> tuple[str, ...]:
    """The ciphertext is what must come back; without one, the text, or the id of what is kept."""
    held = string(item.get("encrypted_content")) or text_of(item.get("content")) or text_of(item.get("summary"))
    return (held or string(item.get("id")),) if held or item.get("id") else ()


def offer(body: JsonObject) -> OfferedTools:
    tools = tuple(
        Tool(string(tool.get("name")), as_object(tool.get("parameters")))
        for tool in objects(body.get("tools"))
        if tool.get("type") == "function" and string(tool.get("name"))
    )
    choice = body.get("tool_choice")
    return OfferedTools(tools, string(as_object(choice).get("name")) or None, choice != "none")


def is_stored(exchange: SimExchange) -> bool:
    return exchange.body.get("store") is not False


def wants_ciphertext(exchange: SimExchange) -> bool:
    included = exchange.body.get("include")
    asked = isinstance(included, list) and "reasoning.encrypted_content" in included
    return asked or not is_stored(exchange)


def responses_wire(style: ResponsesStyle) -> WireFormat:
    def write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
        return _write(exchange, answer, style)

    def frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
        return frames_of(whole, chunk_chars, style.manners)

    return WireFormat("openai_responses", problem_of, read, offer, write, frames, _echo, lambda _: "text/event-stream")


def _echo(whole: JsonObject) -> JsonObject:
    return {"input": whole["output"]}


def _write(exchange: SimExchange, answer: ModelAnswer, style: ResponsesStyle) -> JsonObject:
    output = _items(exchange, answer, style)
    whole = {
        **style.around(exchange, answer),
        "id": style.reply_id(answer.id),
        "object": "response",
        "created_at": answer.created,
        "status": "incomplete" if answer.finish == "length" else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if answer.finish == "length" else None,
        "model": answer.model,
        "output": output,
        "usage": style.usage(answer.usage),
    }
    before = (*history_of(exchange), *items_of(exchange.body))
    stored = StoredResponse(tuple(output), before, style.keeps and is_stored(exchange))
    exchange.ledger.remember_response(exchange.account, whole["id"], stored)
    return whole


def history_of(exchange: SimExchange) -> tuple[JsonObject, ...]:
    """What `previous_response_id` stands for: all items of the conversation up to that response."""
    name = string(exchange.body.get("previous_response_id"))
    known = exchange.ledger.responses.get((exchange.account, name)) if name else None
    return (*known.before, *known.items) if known and known.is_stored else ()


def _items(exchange: SimExchange, answer: ModelAnswer, style: ResponsesStyle) -> list[JsonObject]:
    output: list[JsonObject] = []
    calls = 0
    for piece in answer.pieces:
        number = len(output)
        match piece:
            case Think() | Redacted():
                output.append(style.reasoning(exchange, answer, style.item_id("rs", answer.id, number), piece))
            case Say():
                output.append(_message(style, style.item_id("msg", answer.id, number), piece, bool(answer.calls)))
            case CallTool():
                call_id = style.call_id(answer.id, calls)
                output.append(_function_call(style.item_id("fc", answer.id, number), call_id, piece))
                calls += 1
            case Hosted():
                letters = "".join(word[0] for word in piece.name.split("_"))
                output.append(_hosted_call(style.item_id(letters, answer.id, number), piece))
            case _:
                assert_never(piece)
    return output


def _hosted_call(item_id: str, piece: Hosted) -> JsonObject:
    action = {"type": "search", **arguments_of(piece)}
    return {"id": item_id, "type": f"{piece.name}_call", "status": "completed", "action": action}


def _message(style: ResponsesStyle, item_id: str, piece: Say, has_calls: bool) -> JsonObject:
    text = {"type": "output_text", "annotations": [], "logprobs": [], "text": piece.text}
    phase = {"phase": "commentary" if has_calls else "final_answer"} if style.has_phase else {}
    head = {"id": item_id, "type": "message", "status": "completed"}
    return {**head, "content": [text], **phase, "role": "assistant"}


def _function_call(item_id: str, call_id: str, call: CallTool) -> JsonObject:
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "arguments": call.arguments,
        "call_id": call_id,
        "name": call.name,
    }


def echoed(exchange: SimExchange, name: str, default: Json) -> Json:
    """A setting of the request, told back in the answer."""
    value = exchange.body.get(name)
    return default if value is None else value


def uuid_of(*parts: str) -> str:
    digits = digest(*parts) + digest("more", *parts)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
