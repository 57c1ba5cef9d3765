"""Chat Completions in each provider's variant: decoding requests, encoding answers and streams.

Differences between providers are in a `ChatStyle`: its ids, the place of its reasoning, how its stream is split. The
rows are in `chat_styles.py`. Ollama's own chat, at the end, has `message.thinking`, and one JSON object a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Literal, NamedTuple

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.reading import Json, JsonObject, as_object, call_arguments, canonical, objects, string, text_of
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque")
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("tool", "function")


def problem_of(body: JsonObject) -> str | None:
    """Why this body is not a chat request, with the position."""
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
    return InputMessage(
        "tool" if role in _RESULTS else _ROLES.get(role, "user"),
        index,
        text=_visible(message.get("content")),
        thoughts=_thoughts(message) if role == "assistant" else (),
        calls=tuple(_read_call(call) for call in objects(message.get("tool_calls"))),
        results=(string(message.get("tool_call_id")),) if role in _RESULTS else (),
        raw=message,
    )


def _visible(content: Json) -> str:
    """Text without a `<think>` head or thinking chunks: those are thoughts."""
    text = text_of(content)
    return text.partition("</think>")[2].lstrip("\n") if text.startswith("<think>") else text


def _read_call(call: JsonObject) -> InputCall:
    function = as_object(call.get("function")) or as_object(call.get("custom"))
    arguments = call_arguments(function.get("arguments", function.get("input")))
    name, call_id = string(function.get("name")), string(call.get("id")) or None
    return InputCall(name, arguments, call_id, signature=_google_signature(call))


def _thoughts(message: JsonObject) -> tuple[str, ...]:
    """Every carrier of reasoning that a chat message can have; empty ones don't count, and neither does a copy of
    `reasoning_content` in `reasoning`, as Qwen Code writes it: no server reads both.
    """
    found = [string(message.get(field)) for field in REASONING_FIELDS[:1] + REASONING_FIELDS[2:]]
    details = objects(message.get("reasoning_details"))
    copy = string(message.get("reasoning"))
    found += [canonical(entry) for entry in details] or ([] if copy in found else [copy])
    content = message.get("content")
    text = text_of(content)
    found.append(text.partition("</think>")[0].removeprefix("<think>") if text.startswith("<think>") else "")
    found += [text_of(part.get("thinking")) for part in objects(content) if part.get("type") == "thinking"]
    found += [_google_signature(holder) for holder in (message, *objects(message.get("tool_calls")))]
    return tuple(thought for thought in found if thought)


def _google_signature(holder: JsonObject) -> str:
    """`extra_content.google.thought_signature` of a message or a call."""
    google = as_object(as_object(holder.get("extra_content")).get("google"))
    return string(google.get("thought_signature"))


def offer(body: JsonObject) -> OfferedTools:
    functions = [as_object(tool.get("function")) for tool in objects(body.get("tools"))]
    choice = body.get("tool_choice")
    forced = as_object(as_object(choice).get("function")).get("name")
    named = ((function.get("name"), function.get("parameters")) for function in functions)
    return offered(named, forced, may_call=choice != "none")


_NULL: JsonObject = {"content": None}
_NONE: JsonObject = {}


class ChatStyle(NamedTuple):
    """A provider's variant of chat."""

    reply_id: Callable[[str], str]
    call_id: Callable[[str, str, int], str]
    put_reasoning: Callable[[SimExchange, ModelAnswer, JsonObject], JsonObject]
    no_content: JsonObject = _NULL
    message_extras: JsonObject = _NONE
    choice_extras: JsonObject = _NONE
    reply_extras: JsonObject = _NONE
    chunk_extras: JsonObject = _NONE
    """Members without content that the family's own SDKs require: of a choice, of a whole answer, of a chunk."""
    first_delta: JsonObject | None = None
    """The members next to the role in a separate first chunk; `None` repeats the role in every delta."""
    splits_arguments: bool = True
    usage_in: Literal["last", "own", "asked"] = "last"
    comment: bytes = b""


def chat_wire(style: ChatStyle) -> WireFormat:
    return WireFormat(
        "openai_chat",
        problem_of,
        read,
        offer=offer,
        write=partial(_write, style),
        frames=partial(_frames, style),
        echo=lambda whole: {"messages": [whole["choices"][0]["message"]]},
    )


def _write(style: ChatStyle, exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    content = {"content": answer.text} if answer.text else style.no_content
    message: JsonObject = {"role": "assistant", **content, **style.message_extras}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": style.call_id(answer.id, call.name, number) if answer.has_ids else "",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for number, call in enumerate(answer.calls)
        ]
    message = style.put_reasoning(exchange, answer, message)
    return {
        "id": style.reply_id(answer.id),
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, **style.choice_extras, "finish_reason": answer.finish}],
        **style.reply_extras,
        "usage": {
            "prompt_tokens": answer.usage.input,
            "completion_tokens": answer.usage.output,
            "total_tokens": answer.usage.total,
            "prompt_tokens_details": {"cached_tokens": answer.usage.cached},
            "completion_tokens_details": {"reasoning_tokens": answer.usage.reasoning},
        },
    }


def _frames(style: ChatStyle, exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    (choice,) = whole["choices"]
    usage = {"usage": whole["usage"]}
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"], "model": whole["model"]}
    head |= style.chunk_extras
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, **style.choice_extras, "finish_reason": None}]}
        for delta in _deltas(style, choice["message"], chunk_chars)
    ]
    chunks[-1]["choices"][0]["finish_reason"] = choice["finish_reason"]
    is_asked = as_object(exchange.body.get("stream_options")).get("include_usage") is True
    if style.usage_in == "last":
        chunks[-1] |= usage
    elif style.usage_in == "own" or is_asked:
        chunks.append({**head, "choices": [], **usage})
    comment = [style.comment] if style.comment else []
    return [*comment, *(b"data: " + compact(each) + b"\n\n" for each in chunks), b"data: [DONE]\n\n"]


def _deltas(style: ChatStyle, message: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    """All deltas of a message; the last one is empty, for the finish."""
    role = {"role": "assistant"}
    repeated = role if style.first_delta is None else {}
    if style.first_delta is not None:
        yield {**role, **style.first_delta}
    for delta in (*_thought_deltas(message, chunk_chars), *_word_deltas(message, chunk_chars)):
        yield {**repeated, **delta}
    for delta in _call_deltas(message, chunk_chars, style.splits_arguments):
        yield {**repeated, "tool_calls": [delta]}
    yield dict(repeated)


def _thought_deltas(message: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    """Reasoning, in the provider's place for it."""
    details = objects(message.get("reasoning_details"))
    for field in () if details else REASONING_FIELDS[:3]:
        for piece in pieces_of(string(message.get(field)), chunk_chars):
            yield {field: piece}
    if "reasoning_opaque" in message:
        yield {"reasoning_opaque": message["reasoning_opaque"]}
    for entry in details:
        for text, part in _detail_pieces(entry, chunk_chars):
            shown = {"reasoning": text} if "reasoning" in message else {}
            yield {"content": "", **shown, "reasoning_details": [part]}
    for chunk in objects(message.get("content")):
        for piece in pieces_of(text_of(chunk.get("thinking")), chunk_chars):
            yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}


def _detail_pieces(entry: JsonObject, chunk_chars: int) -> Iterator[tuple[str | None, JsonObject]]:
    """A detail in pieces with one index, each with its visible text; a signature comes separately."""
    field = next((name for name in ("text", "summary") if name in entry), "")
    head = {key: value for key, value in entry.items() if key not in (field, "signature")}
    for piece in pieces_of(string(entry.get(field)), chunk_chars):
        yield piece, {**head, field: piece}
    if "signature" in entry or not field:
        yield None, {**head, **({"signature": entry["signature"]} if field else {})}


def _word_deltas(message: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    # A turn without reasoning has an empty list of details, which its client must send back.
    details: JsonObject = {"reasoning_details": []} if {"reasoning", "reasoning_details"} <= set(message) else {}
    for piece in pieces_of(text_of(message.get("content")), chunk_chars):
        yield {"content": piece, **details}
    if "extra_content" in message:
        yield {"content": "", "extra_content": message["extra_content"]}


def _call_deltas(message: JsonObject, chunk_chars: int, splits_arguments: bool) -> Iterator[JsonObject]:
    """The calls of a message: complete, or opened and then filled."""
    for number, call in enumerate(objects(message.get("tool_calls"))):
        function = call["function"]
        if not splits_arguments:
            yield {"index": number, **call}
            continue
        yield {"index": number, **call, "function": {**function, "arguments": ""}}
        for piece in pieces_of(function["arguments"], chunk_chars):
            yield {"index": number, "function": {"arguments": piece}}


# Ollama


def _read_ollama(body: JsonObject) -> tuple[InputMessage, ...]:
    """Messages are chat's, except for the name of the reasoning field."""
    messages = [{**message, "reasoning_content": string(message.get("thinking"))} for message in body["messages"]]
    return read({"messages": messages})


def _write_ollama(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
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
    problem_of,
    _read_ollama,
    offer=offer,
    write=_write_ollama,
    frames=lambda exchange, whole, size: [compact(line) + b"\n" for line in _lines(whole, size)],
    echo=lambda whole: {"messages": [whole["message"]]},
    stream_type=lambda _: "application/x-ndjson",
)
