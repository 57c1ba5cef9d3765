"""Messages and bodies of Ollama's chat."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats import think_tags
from thoughtline.formats.bodies import (
    FinishWords,
    as_it_came,
    encode_conversation,
    encode_plain_system,
    text_member,
    thinking_switch,
)
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    array,
    as_text,
    decode,
    decode_each,
    encode,
    is_given,
    members,
    object_of,
    of_upstream,
    set_members,
)
from thoughtline.providers import OLLAMA, Dialect
from thoughtline.values.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningText, Role, Text, ToolCall, ToolResult, Unknown, reasoning_of
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Finish, Reply, Transcript, Turn, Usage

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_FINISH = FinishWords({"stop": "stop", "length": "length"}, {})


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: Raw = NULL


class _Call(Struct, gc=False):
    function: _Function | None = None
    id: str | None = None


class _Message(Struct, gc=False):
    role: str = ""
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Raw] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    images: list[Raw] | None = None


class _Request(NamesUser, gc=False, kw_only=True):
    messages: list[_Message] | None = None
    prompt: str | None = None
    system: str | None = None
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    images: list[Raw] | None = None
    think: Raw = NULL


class Response(Struct, gc=False):
    """A whole response or one line of a stream; `response` and `thinking` are those of `/api/generate`."""

    message: _Message | None = None
    response: str | None = None
    thinking: str | None = None
    model: str | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
response_decoder = msgspec.json.Decoder(Response)
_call_decoder = msgspec.json.Decoder(_Call)
_message_decoder = msgspec.json.Decoder(_Message)


# --- messages --------------------------------------------------------------------------------------------------------


def _decode_items(message: _Message, dialect: Dialect) -> tuple[Item, ...]:
    if message.role == "tool":
        return (ToolResult(Raw(encode(message.content or "")), message.tool_call_id, message.tool_name),)
    items: list[Item] = []
    if message.thinking is not None:
        items.append(ReasoningText(message.thinking, None, dialect.reasoning_format))
    content = message.content
    if content and message.role == "assistant" and dialect.carrier == "think_tags":
        thought, content = think_tags.split(content)
        items += [] if thought is None else [ReasoningText(thought, None, dialect.reasoning_format)]
    if content:
        items.append(Text(content))
    items += [Unknown("image", raw) for raw in message.images or ()]
    return (*items, *decode_each(message.tool_calls or (), decode_call, "/tool_calls"))


def decode_call(raw: Raw) -> ToolCall:
    call = decode(_call_decoder, raw)
    function = call.function or _Function()
    return ToolCall(function.name or "", arguments_text(function.arguments), call.id, raw=raw)


def encode_message(turn: Turn, before: bytes | None, dialect: Dialect) -> bytes:
    if turn.role == "tool":
        return _encode_result(turn.items, before)
    old = _parted(_decode_items(decode(_message_decoder, before), dialect)) if before is not None else (None, None)
    others, calls = _parted(turn.items)
    changes: list[tuple[str, bytes | None]] = [] if before is not None else [("role", encode(turn.role))]
    if others != old[0]:
        changes += _texts(turn.items, dialect)
    if calls != old[1]:
        changes.append(("tool_calls", array(_encode_call(call, dialect) for call in calls) if calls else None))
    return set_members(before if before is not None else b"{}", changes)


def _parted(items: tuple[Item, ...]) -> tuple[list[Item], list[ToolCall]]:
    """The items other than calls, and the calls."""
    calls = [item for item in items if isinstance(item, ToolCall)]
    return [item for item in items if not isinstance(item, ToolCall)], calls


def _texts(items: tuple[Item, ...], dialect: Dialect) -> list[tuple[str, bytes | None]]:
    thought = _thinking(items)
    content = "".join(item.text for item in items if isinstance(item, Text))
    images = [item.raw for item in items if isinstance(item, Unknown) and item.kind == "image"]
    for item in items:
        if isinstance(item, Text) and item.seal is not None:
            raise ForeignSeal(f"an Ollama message can't hold the seal of {item.seal.format}")
        if isinstance(item, ToolResult) or (isinstance(item, Unknown) and item.kind != "image"):
            raise EncodeError(f"an Ollama message can't hold a {type(item).__name__}")
    if thought is not None and dialect.carrier == "think_tags":
        content, thought = think_tags.join(thought, content), None
    return [
        ("content", encode(content)),
        ("thinking", encode(thought) if thought is not None else None),
        ("images", array(images) if images else None),
    ]


def _thinking(items: tuple[Item, ...]) -> str | None:
    reasoning = reasoning_of(items)
    for item in reasoning:
        if not isinstance(item, ReasoningText) or item.signature is not None:
            raise ForeignSeal(f"Ollama's thinking is plain text and can't hold {item.format} reasoning")
    return "".join(item.text for item in reasoning if isinstance(item, ReasoningText)) if reasoning else None


def _encode_call(call: ToolCall, dialect: Dialect) -> bytes:
    if call.seal is not None:
        raise ForeignSeal(f"an Ollama call can't hold the seal of {call.seal.format}")
    if as_it_came(call, lambda raw, _: decode_call(raw), dialect) == call:
        return bytes(call.raw)
    function = object_of([("name", encode(call.name)), ("arguments", arguments_object(call.arguments))])
    return object_of([("id", encode(call.id) if call.id else None), ("function", function)])


def _encode_result(items: tuple[Item, ...], before: bytes | None) -> bytes:
    if len(items) != 1 or not isinstance(items[0], ToolResult):
        raise EncodeError("an Ollama message of role tool holds exactly one tool result")
    result = items[0]
    text = bytes(result.content)
    content = text if text[:1] == b'"' else encode(as_text(text))
    base = before if before is not None else b'{"role":"tool"}'
    name = encode(result.name) if result.name is not None else None
    return set_members(base, [("content", content), ("tool_name", name)])


# --- bodies ----------------------------------------------------------------------------------------------------------


def decode_request(body: bytes, dialect: Dialect = OLLAMA) -> Transcript:
    """A request as typed turns. Ollama streams by default."""
    request = decode(_request_decoder, body)
    turns = []
    for at, message in enumerate(request.messages or ()):
        try:
            turns.append(Turn(_ROLES.get(message.role, "other"), _decode_items(message, dialect), at))
        except DecodeError as error:
            raise error.within(f"/messages/{at}") from None
    if request.messages is None:
        turns += _decode_prompt(request)
    tools, switch = tuple(request.tools or ()), thinking_switch(request.think)
    return Transcript(
        "ollama_chat",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=request.stream is not False,
        tools=tools,
        thinking=switch,
        user=end_user_of(request),
    )


def _decode_prompt(request: _Request) -> list[Turn]:
    """A request to `/api/generate`; without a prompt it only loads the model."""
    system = [Turn("system", (Text(request.system),), SYSTEM_MEMBER)] if request.system else []
    images = tuple(Unknown("image", raw) for raw in request.images or ())
    if request.prompt is None:
        return system
    return [*system, Turn("user", (Text(request.prompt), *images), 0)]


def encode_request(transcript: Transcript, dialect: Dialect = OLLAMA) -> bytes:
    """The body of a request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        return [encode_message(turn, before, dialect)]

    prompted = text_member(transcript, "prompt", "images")
    return encode_conversation(prompted, "messages", encode_turn, "system", encode_plain_system)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = OLLAMA) -> Reply:
    response = decode(response_decoder, body)
    if is_given(response.error):
        return Reply("ollama_chat", (), body, id=None, model=response.model, usage=None, error=response.error.copy())
    message = message_of(response)
    try:
        decoded = _decode_items(message, dialect)
    except DecodeError as error:
        raise error.within("/message") from None
    items = tuple(item for item in decoded if not isinstance(item, ReasoningText) or item.text)
    candidate = Candidate(Turn("assistant", items), 0, finish_of(response, items))
    return Reply("ollama_chat", (candidate,), body, id=None, model=response.model, usage=usage_of(response))


def message_of(response: Response) -> _Message:
    message = response.message or _Message("assistant", response.response, response.thinking)
    message.role = "assistant"
    return message


def finish_of(response: Response, items: Sequence[Item]) -> Finish | None:
    if not response.done:
        return None
    return _FINISH.decode(response.done_reason or "stop", items)


def usage_of(response: Response) -> Usage | None:
    if response.prompt_eval_count is None and response.eval_count is None:
        return None
    return Usage(response.prompt_eval_count or 0, response.eval_count or 0)


def encode_response(reply: Reply, dialect: Dialect = OLLAMA) -> bytes:
    """The body of a whole response: unchanged except for the edits."""
    if reply.body and (not reply.is_edited or decode_response(reply.body, dialect).candidates == _plain(reply)):
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    known = members(reply.body) if reply.body else {}
    if "response" in known:
        texts = dict(_texts(candidate.turn.items, dialect))
        return set_members(reply.body, [("response", texts["content"]), ("thinking", texts["thinking"])])
    before = known.get("message")
    message = encode_message(candidate.turn, bytes(before) if before is not None else None, dialect)
    if known:
        return set_members(reply.body, [("message", message)])
    return line_of(reply.model, message, candidate.finish, reply.usage, reply.created)


def _plain(reply: Reply) -> tuple[Candidate, ...]:
    """The candidates without the marker of an edit."""
    return tuple(replace(one, turn=replace(one.turn, is_edited=False, original=None)) for one in reply.candidates)


def line_of(model: str | None, message: bytes, finish: Finish | None, usage: Usage | None, created: int) -> bytes:
    at = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    known: list[tuple[str, bytes | None]] = [("model", encode(model or "")), ("created_at", encode(at))]
    known += [("message", message), ("done", encode(finish is not None))]
    if finish is not None:
        known.append(("done_reason", encode("length" if finish.reason == "length" else "stop")))
    if usage is not None:
        known += [("prompt_eval_count", encode(usage.input)), ("eval_count", encode(usage.output))]
    return object_of(known)
