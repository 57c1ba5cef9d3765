"""Chat Completions, as each of its providers speaks it: reading requests, writing answers and streams.

What differs between providers is a `ChatStyle`: the members around an answer, where its reasoning stands, and how its
stream is cut. The rows are in `chat_styles.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role, TokenCounts, Tool
from thoughtline_sim.wire import (
    Json,
    JsonObject,
    as_object,
    canonical,
    canonical_arguments,
    compact,
    objects,
    pieces_of,
    string,
    text_of,
)

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


_NONE: JsonObject = {}


class ChatStyle(NamedTuple):
    """A provider's way with chat."""

    reply_id: Callable[[str], str]
    call_id: Callable[[str, str, int], str]
    usage: Callable[[TokenCounts], JsonObject]
    put_reasoning: Callable[[SimExchange, ModelAnswer, JsonObject], JsonObject]
    deltas: Callable[[JsonObject, int, ChatStyle], Iterator[JsonObject]]
    no_content: Json = None
    leaves_out_content: bool = False
    calls_have_index: bool = False
    message_extras: JsonObject = _NONE
    choice_extras: JsonObject = _NONE
    whole_extras: Callable[[ModelAnswer], JsonObject] = lambda answer: {}
    chunk_extras: Callable[[ModelAnswer], JsonObject] = lambda answer: {}
    first_delta: JsonObject | None = None
    delta_extras: JsonObject = _NONE
    think_extras: JsonObject = _NONE
    say_extras: JsonObject = _NONE
    last_delta: JsonObject = _NONE
    role_in_first_delta: bool = False
    says_null_finish: bool = True
    splits_arguments: bool = True
    usage_in: Literal["last", "own", "asked"] = "last"
    last_extras: Callable[[ModelAnswer, JsonObject], JsonObject] = lambda answer, usage: {}
    comment: bytes = b""
    ends_with_done: bool = True


def problem_of(body: JsonObject) -> str | None:
    """What keeps this body from being a chat request, told by its place."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "messages: expected an array"
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return f"messages[{index}]: expected an object with a role"
        if not isinstance(message.get("content"), (str, list, type(None))):
            return f"messages[{index}].content: expected a string or an array"
        calls = message.get("tool_calls")
        if calls is not None and (not isinstance(calls, list) or len(objects(calls)) != len(calls)):
            return f"messages[{index}].tool_calls: expected an array of objects"
    return None


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_message(index, message) for index, message in enumerate(objects(body.get("messages"))))


def _read_message(index: int, message: JsonObject) -> InputMessage:
    role = string(message.get("role"))
    calls = tuple(_read_call(call) for call in objects(message.get("tool_calls")))
    is_result = role in ("tool", "function")
    return InputMessage(
        _ROLES.get(role, "user"),
        index,
        _visible(message.get("content")),
        _thoughts(message) if role == "assistant" else (),
        calls,
        (string(message.get("tool_call_id")),) if is_result else (),
        message,
    )


def _visible(content: Json) -> str:
    """Words without a `<think>` head or thinking chunks: those are thoughts."""
    text = text_of(content)
    return text.partition("</think>")[2].lstrip("\n") if text.startswith("<think>") else text


def _read_call(call: JsonObject) -> InputCall:
    function = as_object(call.get("function")) or as_object(call.get("custom"))
    arguments = canonical_arguments(function.get("arguments", function.get("input")))
    return InputCall(string(function.get("name")), arguments, string(call.get("id")) or None)


def _thoughts(message: JsonObject) -> tuple[str, ...]:
    """Every carrier of reasoning that a chat message can have; an empty one carries none, and neither does a copy of
    `reasoning_content` in `reasoning`, as Qwen Code writes one: no server reads both."""
    found = [string(message.get(field)) for field in REASONING_FIELDS[:1] + REASONING_FIELDS[2:]]
    details = objects(message.get("reasoning_details"))
    copy = string(message.get("reasoning"))
    found += [canonical(entry) for entry in details] or ([] if copy in found else [copy])
    content = message.get("content")
    text = text_of(content)
    found.append(text.partition("</think>")[0].removeprefix("<think>") if text.startswith("<think>") else "")
    for part in objects(content):
        if part.get("type") == "thinking":
            thinking = part.get("thinking")
            found.append(thinking if isinstance(thinking, str) else text_of(thinking))
    found += [google_signature(holder) for holder in (message, *objects(message.get("tool_calls")))]
    return tuple(thought for thought in found if thought)


def google_signature(holder: JsonObject) -> str:
    """`extra_content.google.thought_signature` of a message or a call."""
    google = as_object(as_object(holder.get("extra_content")).get("google"))
    return string(google.get("thought_signature"))


def offer(body: JsonObject) -> OfferedTools:
    functions = [as_object(tool.get("function")) for tool in objects(body.get("tools"))]
    tools = tuple(
        Tool(string(function.get("name")), as_object(function.get("parameters")))
        for function in functions
        if string(function.get("name"))
    )
    choice = body.get("tool_choice")
    forced = string(as_object(as_object(choice).get("function")).get("name")) or None
    return OfferedTools(tools, forced, choice != "none")


def chat_wire(style: ChatStyle) -> WireFormat:
    """The wire of one provider."""

    def write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
        return _write(exchange, answer, style)

    def frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
        return _frames(exchange, whole, chunk_chars, style)

    return WireFormat("openai_chat", problem_of, read, offer, write, frames, _echo, lambda _: "text/event-stream")


def _echo(whole: JsonObject) -> JsonObject:
    return {"messages": [whole["choices"][0]["message"]]}


def _write(exchange: SimExchange, answer: ModelAnswer, style: ChatStyle) -> JsonObject:
    message: JsonObject = {"role": "assistant"}
    if answer.text or not style.leaves_out_content:
        message["content"] = answer.text or style.no_content
    message |= style.message_extras
    if answer.calls:
        message["tool_calls"] = [
            _call(number, style, answer, style.call_id(answer.id, call.name, number))
            for number, call in enumerate(answer.calls)
        ]
    message = style.put_reasoning(exchange, answer, message)
    choice = {"index": 0, "message": message, **style.choice_extras, "finish_reason": answer.finish}
    if "native_finish_reason" in choice:
        choice["native_finish_reason"] = answer.finish
    return {
        "id": style.reply_id(answer.id),
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [choice],
        "usage": style.usage(answer.usage),
        **style.whole_extras(answer),
    }


def _call(number: int, style: ChatStyle, answer: ModelAnswer, call_id: str) -> JsonObject:
    call = answer.calls[number]
    head: JsonObject = {"index": number} if style.calls_have_index else {}
    function = {"name": call.name, "arguments": call.arguments}
    return {**head, "id": call_id if answer.has_ids else "", "type": "function", "function": function}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int, style: ChatStyle) -> list[bytes]:
    choice = whole["choices"][0]
    answer = _shell(whole)
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"], "model": whole["model"]}
    extras = style.chunk_extras(answer)

    def chunk(delta: JsonObject, finish: str | None = None, more: JsonObject | None = None) -> JsonObject:
        part: JsonObject = {"index": 0, "delta": delta, **style.choice_extras}
        if finish is not None or style.says_null_finish:
            part["finish_reason"] = finish
        if "native_finish_reason" in part:
            part["native_finish_reason"] = finish
        return {**head, **extras, "choices": [part], **(more or {})}

    deltas = list(style.deltas(choice["message"], chunk_chars, style))
    if style.role_in_first_delta and deltas:
        deltas[0] = {**deltas[0], "role": "assistant"}
    chunks = [chunk(delta) for delta in deltas]
    closing = style.last_extras(answer, whole["usage"])
    if style.usage_in == "last":
        closing = {**closing, "usage": whole["usage"]}
    chunks.append(chunk({**style.delta_extras, **style.last_delta}, choice["finish_reason"], closing))
    asked = as_object(exchange.body.get("stream_options")).get("include_usage") is True
    if style.usage_in == "own" or (style.usage_in == "asked" and asked):
        chunks.append({**head, **extras, "choices": [], "usage": whole["usage"]})
    done = [b"data: [DONE]\n\n"] if style.ends_with_done else []
    comment = [style.comment] if style.comment else []
    return [*comment, *(b"data: " + compact(each) + b"\n\n" for each in chunks), *done]


def _shell(whole: JsonObject) -> ModelAnswer:
    return ModelAnswer(whole["id"], whole["model"], whole["created"], (), "stop", TokenCounts(0, 0, 0))


def field_deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    """First the role, then reasoning, then words, then calls: the order of all who keep reasoning in a field."""
    if style.first_delta is not None:
        yield dict(style.first_delta)
    for field in ("reasoning_content", "reasoning", "reasoning_text"):
        for piece in pieces_of(string(message.get(field)), chunk_chars):
            yield {**style.delta_extras, **style.think_extras, field: piece}
    if "reasoning_opaque" in message:
        yield {**style.delta_extras, "reasoning_opaque": message["reasoning_opaque"]}
    for piece in pieces_of(text_of(message.get("content")), chunk_chars):
        yield {**style.delta_extras, **style.say_extras, "content": piece}
    yield from call_deltas(message, chunk_chars, style)


def call_deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    """The calls of a message: whole, or opened and then filled."""
    for number, call in enumerate(objects(message.get("tool_calls"))):
        first = {"index": number, **{key: value for key, value in call.items() if key != "index"}}
        function = call["function"]
        if not style.splits_arguments:
            yield {**style.delta_extras, "tool_calls": [first]}
            continue
        opened = {**first, "function": {"name": function["name"], "arguments": ""}}
        yield {**style.delta_extras, "tool_calls": [opened]}
        for piece in pieces_of(function["arguments"], chunk_chars):
            yield {**style.delta_extras, "tool_calls": [{"index": number, "function": {"arguments": piece}}]}
