"""One chat message and its items, in both directions.

Items of a message stand in this order: reasoning of its own fields, content, refusal, tool calls. Reasoning is read
from every carrier there is; a string that merely repeats what `reasoning_details` says is not a second item.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.formats import think_tags
from thoughtline.formats.json_text import NULL, array, decode, decode_content, decode_kind, elements, encode, is_given, members, object_of, set_members
from thoughtline.formats.reasoning_details import decode_detail, encode_detail
from thoughtline.items import (
    GOOGLE_GEMINI_V1,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Role,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    reasoning_of,
)
from thoughtline.providers import Dialect

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque")
_TEXT_KINDS = ("text", "input_text", "output_text")
_PART_KINDS = (*_TEXT_KINDS, "thinking")
_IN_CONTENT = ("think_tags", "mistral_chunks", "cohere_chunks")


class _Google(Struct, gc=False):
    thought_signature: str | None = None


class _Extra(Struct, gc=False):
    google: _Google | None = None


class Function(Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None
    input: str | None = None


class Call(Struct, gc=False):
    id: str | None = None
    function: Function | None = None
    custom: Function | None = None
    extra_content: Raw = NULL


class Message(Struct, gc=False):
    """The members of a message that we read."""

    role: str = ""
    content: Raw = NULL
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Raw] | None = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Raw = NULL
    refusal: str | None = None
    extra_content: Raw = NULL
    tool_call_id: str | None = None
    name: str | None = None


class _ThinkingText(Struct, gc=False):
    text: str = ""


class _Part(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | list[_ThinkingText] | None = None


message_decoder = msgspec.json.Decoder(Message)
_extra_decoder = msgspec.json.Decoder(_Extra)
_function_decoder = msgspec.json.Decoder(Function)
_call_decoder = msgspec.json.Decoder(Call)
_part_decoder = msgspec.json.Decoder(_Part)


# --- wire to items ---------------------------------------------------------------------------------------------------


def decode_items(message: Message, dialect: Dialect, place: str = "") -> tuple[Item, ...]:
    """The items of a message of any role."""
    role = message.role
    if role == "tool" or role == "function":
        return (ToolResult(message.content, message.tool_call_id, message.name),)
    content = decode_content(message.content, f"{place}/content")
    if role != "assistant":
        if isinstance(content, str):
            return (Text(content),) if content else ()
        return tuple(_decode_parts(content, dialect, place)) if content else ()
    items = field_reasoning(message, dialect, place)
    if isinstance(content, str):
        if content:
            items += (Text(content),) if dialect.carrier != "think_tags" else _decode_tagged(content, dialect)
    elif content:
        items += _decode_parts(content, dialect, place)
    if message.tool_calls or message.refusal or message.function_call is not NULL:
        items += answer_tail(message, place)
    return tuple(items)


def answer_tail(message: Message, place: str = "") -> list[Item]:
    """What stands after the content of an answer: its refusal and its calls."""
    items: list[Item] = [Unknown("refusal", Raw(encode(message.refusal)))] if message.refusal else []
    if message.tool_calls:
        items += [_typed_call(call, place) for call in message.tool_calls]
    elif is_given(message.function_call):
        function = decode(_function_decoder, message.function_call, f"{place}/function_call")
        if function.name:  # some hosts write an empty one into every message
            items.append(ToolCall(function.name, _arguments(function)))
    return items


def field_reasoning(message: Message, dialect: Dialect, place: str) -> list[Item]:
    """The reasoning that stands in members of its own."""
    text = message.reasoning_content or message.reasoning
    if text is None:
        text = message.reasoning_content  # an empty field is a field that is there
    items: list[Item] = []
    if message.reasoning_details:
        for position, raw in enumerate(message.reasoning_details):
            items.append(decode_detail(raw, f"{place}/reasoning_details/{position}"))
    if text is not None and not (items and any(map(_is_readable, items))):
        items.insert(0, ReasoningText(text, None, dialect.reasoning_format))
    if message.reasoning_text is not None or message.reasoning_opaque is not None:
        items.append(_copilot_pair(message.reasoning_text, message.reasoning_opaque, dialect))
    if message.extra_content is not NULL:
        seal = _google_seal(message.extra_content, f"{place}/extra_content")
        if seal is not None:
            items.append(ReasoningEncrypted(seal.data, seal.format))
    return items


def _is_readable(item: Item) -> bool:
    return bool(isinstance(item, ReasoningText) and item.text or isinstance(item, ReasoningSummary) and item.summary)


def _copilot_pair(text: str | None, opaque: str | None, dialect: Dialect) -> Reasoning:
    if text is None:
        return ReasoningEncrypted(opaque or "", dialect.reasoning_format)
    return ReasoningText(text, opaque, dialect.reasoning_format)


def _google_seal(extra: Raw, place: str) -> Seal | None:
    if not is_given(extra):
        return None
    google = decode(_extra_decoder, extra, place).google
    if google is None or google.thought_signature is None:
        return None
    return Seal(google.thought_signature, GOOGLE_GEMINI_V1)


def _decode_tagged(content: str, dialect: Dialect) -> list[Item]:
    reasoning, rest = think_tags.split(content)
    items: list[Item] = [] if reasoning is None else [ReasoningText(reasoning, None, dialect.reasoning_format)]
    return [*items, Text(rest)] if rest else items


def _decode_parts(parts: Sequence[Raw], dialect: Dialect, place: str) -> list[Item]:
    return [decode_part(raw, dialect, f"{place}/content/{position}") for position, raw in enumerate(parts)]


def decode_part(raw: Raw, dialect: Dialect, place: str = "") -> Item:
    """One element of a content list."""
    part = decode_kind(_part_decoder, raw, _PART_KINDS, place)
    if isinstance(part, str):
        return Unknown(part, raw)
    if part.type in _TEXT_KINDS and part.text is not None:
        return Text(part.text, raw=raw)
    if part.type == "thinking" and part.thinking is not None:
        return ReasoningText(_chunk_text(part.thinking), format=dialect.reasoning_format, raw=raw)
    return Unknown(part.type, raw)


def _chunk_text(thinking: str | list[_ThinkingText]) -> str:
    """The text of a thinking chunk: Cohere writes a string, Mistral a list."""
    return thinking if isinstance(thinking, str) else "".join(piece.text for piece in thinking)


def decode_call(raw: Raw) -> ToolCall:
    """One tool call by itself."""
    return replace(_typed_call(decode(_call_decoder, raw), ""), raw=raw)


def _typed_call(call: Call, place: str) -> ToolCall:
    seal = None
    if call.extra_content is not NULL:
        seal = _google_seal(call.extra_content, f"{place}/tool_calls")
    function = call.function
    if function is None:
        custom = call.custom or Function()
        return ToolCall(custom.name or "", custom.input or "", call.id, None, call.custom is not None, seal)
    return ToolCall(function.name or "", _arguments(function), call.id, None, False, seal)


def _arguments(function: Function) -> str:
    arguments = function.arguments
    return arguments if isinstance(arguments, str) else object_of((arguments or {}).items()).decode()


# --- items to wire ---------------------------------------------------------------------------------------------------


def encode_message(role: str, items: tuple[Item, ...], before: bytes | None, dialect: Dialect) -> bytes:
    """A message for the wire. Where it was on a wire before, only the members that differ are written."""
    if role == "tool" or any(isinstance(item, ToolResult) for item in items):
        return _encode_tool_result(items, before)
    if before is None:
        return _encode_new(role, items, dialect)
    old = decode_items(decode(message_decoder, before), dialect)
    changes: list[tuple[str, bytes | None]] = []
    reasoning_differs = reasoning_of(items) != reasoning_of(old)
    if reasoning_differs:
        changes += _reasoning_members(items, before, dialect)
    if reasoning_differs and _touches_content(old, dialect) or _contents(items) != _contents(old):
        changes.append(("content", _encode_content(items, before, dialect)))
    if _calls(items) != _calls(old):
        changes.append(("tool_calls", _encode_calls(items, before, dialect)))
    return set_members(before, changes)


def _encode_new(role: str, items: tuple[Item, ...], dialect: Dialect) -> bytes:
    known: list[tuple[str, bytes | None]] = [("role", encode(role))]
    if role == "assistant":
        known += _reasoning_members(items, b"{}", dialect)
    known.append(("content", _encode_content(items, None, dialect)))
    known.append(("tool_calls", _encode_calls(items, b"{}", dialect)))
    known += [("refusal", bytes(item.raw)) for item in items if isinstance(item, Unknown) and item.kind == "refusal"]
    return object_of(known)


def _encode_tool_result(items: tuple[Item, ...], before: bytes | None) -> bytes:
    if len(items) != 1 or not isinstance(items[0], ToolResult):
        raise EncodeError("a chat message of role tool holds exactly one tool result")
    result = items[0]
    content = bytes(result.content)
    call_id = encode(result.call_id) if result.call_id is not None else None
    if before is not None:
        return set_members(before, [("tool_call_id", call_id), ("content", content)])
    return object_of([("role", b'"tool"'), ("tool_call_id", call_id), ("content", content)])


def _contents(items: tuple[Item, ...]) -> list[Item]:
    return [item for item in items if isinstance(item, Text) or isinstance(item, Unknown) and item.kind != "refusal"]


def _calls(items: tuple[Item, ...]) -> list[ToolCall]:
    return [item for item in items if isinstance(item, ToolCall)]


def _touches_content(old: tuple[Item, ...], dialect: Dialect) -> bool:
    """Whether reasoning stands, or is to stand, inside `content`."""
    return dialect.carrier in _IN_CONTENT or any(is_chunk(item) for item in old)


def is_chunk(item: Item) -> bool:
    """Whether this reasoning came as a chunk of a content list."""
    if not isinstance(item, ReasoningText) or item.raw is None:
        return False
    return bytes(members(item.raw).get("type", NULL)) == b'"thinking"' and item.signature is None


def _reasoning_members(items: tuple[Item, ...], before: bytes, dialect: Dialect) -> list[tuple[str, bytes | None]]:
    """What the reasoning members of a message become: the dialect's own is set, every other one goes."""
    present = members(before)
    wanted: dict[str, bytes | None] = {field: None for field in _FIELDS if field in present}
    reasoning = reasoning_of(items)
    if reasoning:
        wanted |= _written(reasoning, dialect)
    if "extra_content" in present or dialect.carrier == "google_extra":
        wanted["extra_content"] = _message_extra(reasoning, present.get("extra_content"), dialect)
    return list(wanted.items())


def _written(reasoning: tuple[Reasoning, ...], dialect: Dialect) -> dict[str, bytes | None]:
    match dialect.carrier:
        case "reasoning_content" | "reasoning":
            return {dialect.carrier: encode(plain_text(reasoning))}
        case "reasoning_details":
            return {"reasoning_details": array(map(encode_detail, reasoning))}
        case "reasoning_text":
            return _written_as_copilot(reasoning, dialect)
        case "think_tags" | "mistral_chunks" | "cohere_chunks" | "google_extra":
            return {}
        case "native" | "none":
            raise EncodeError(f"the dialect {dialect.name} has no place for reasoning")


def plain_text(reasoning: Sequence[Reasoning]) -> str:
    """Reasoning for a field that holds text and nothing else."""
    texts = []
    for item in reasoning:
        match item:
            case ReasoningText(signature=None):
                texts.append(item.text)
            case ReasoningSummary():
                texts.append(item.summary)
            case ReasoningText() | ReasoningEncrypted():
                raise ForeignSeal(f"a plain text field can't hold the seal of {item.format} reasoning")
            case ReasoningServerToolCall():
                raise EncodeError("a plain text field can't hold a server tool call")
    return "".join(texts)


def _written_as_copilot(reasoning: tuple[Reasoning, ...], dialect: Dialect) -> dict[str, bytes | None]:
    if len(reasoning) != 1:
        raise EncodeError("reasoning_text and reasoning_opaque hold one reasoning item")
    item = reasoning[0]
    _require_own(item, dialect)
    match item:
        case ReasoningText():
            opaque = encode(item.signature) if item.signature is not None else None
            return {"reasoning_text": encode(item.text), "reasoning_opaque": opaque}
        case ReasoningEncrypted():
            return {"reasoning_opaque": encode(item.data)}
        case _:
            raise EncodeError(f"reasoning_text can't hold a {type(item).__name__}")


def _require_own(item: Reasoning, dialect: Dialect) -> None:
    if item.format != dialect.reasoning_format:
        raise ForeignSeal(f"{item.format} reasoning can't go to a server that reads {dialect.reasoning_format}")


def _message_extra(reasoning: tuple[Reasoning, ...], before: Raw | None, dialect: Dialect) -> bytes | None:
    seals = [item for item in reasoning if isinstance(item, ReasoningEncrypted)]
    if not seals or dialect.carrier != "google_extra":
        return _with_google_seal(before, None)
    if len(reasoning) != 1 or seals[0].format != GOOGLE_GEMINI_V1:
        raise ForeignSeal("extra_content.google holds one Gemini signature and no other reasoning")
    return _with_google_seal(before, seals[0].data)


def _with_google_seal(extra: Raw | None, data: str | None) -> bytes | None:
    """`extra_content` with Google's signature set or taken out, whatever else is in it kept."""
    outer = bytes(extra) if extra is not None and is_given(extra) else b"{}"
    inner = bytes(members(outer).get("google", Raw(b"{}")))
    google = set_members(inner, [("thought_signature", encode(data) if data is not None else None)])
    result = set_members(outer, [("google", google if members(google) else None)])
    return result if members(result) else None


def _encode_content(items: tuple[Item, ...], before: bytes | None, dialect: Dialect) -> bytes:
    contents = _contents(items)
    for item in contents:
        if isinstance(item, Text) and item.seal is not None:
            raise ForeignSeal(f"chat content can't hold the seal of {item.seal.format}")
    reasoning = reasoning_of(items) if dialect.carrier in _IN_CONTENT else ()
    as_list = any(isinstance(item, Unknown) for item in contents) or len(contents) > 1
    if before is not None:
        as_list = as_list or bytes(members(before).get("content", NULL))[:1] == b"["
    if dialect.carrier == "think_tags" and not as_list:
        text = "".join(item.text for item in contents if isinstance(item, Text))
        return encode(think_tags.join(plain_text(reasoning), text) if reasoning else text)
    if as_list or reasoning:
        ordered = [item for item in items if item in contents or item in reasoning]
        return array(_encode_part(item, dialect) for item in ordered)
    return encode(contents[0].text if contents and isinstance(contents[0], Text) else None)


def _encode_part(item: Item, dialect: Dialect) -> bytes:
    match item:
        case Unknown():
            return bytes(item.raw)
        case Text() | ReasoningText() if item.raw is not None and _is_part(item.raw, item, dialect):
            return bytes(item.raw)
        case Text(seal=None):
            return encode({"type": "text", "text": item.text})
        case ReasoningText(signature=None) if dialect.carrier == "mistral_chunks":
            return encode({"type": "thinking", "thinking": [{"type": "text", "text": item.text}]})
        case ReasoningText(signature=None) if dialect.carrier == "cohere_chunks":
            return encode({"type": "thinking", "thinking": item.text})
        case _:
            raise EncodeError(f"chat content in the dialect {dialect.name} can't hold a {type(item).__name__}")


def _is_part(raw: Raw, item: Item, dialect: Dialect) -> bool:
    try:
        return decode_part(raw, dialect) == item
    except DecodeError:
        return False


def _encode_calls(items: tuple[Item, ...], before: bytes, dialect: Dialect) -> bytes | None:
    calls = _calls(items)
    known = members(before).get("tool_calls", NULL)
    olds = [decode_call(raw) for raw in elements(known)] if is_given(known) else []
    return array(encode_call(call, olds, dialect) for call in calls) if calls else None


def encode_call(call: ToolCall, olds: Sequence[ToolCall], dialect: Dialect) -> bytes:
    """One tool call for the wire: as one of the old ones stood there, but for its seal, or new."""
    same = (call.name, call.arguments, call.id)
    old = next((old for old in olds if (old.name, old.arguments, old.id) == same), None)
    if old is not None and old.raw is not None and old.seal == call.seal:
        return bytes(old.raw)
    if call.seal is not None and (dialect.carrier != "google_extra" or call.seal.format != GOOGLE_GEMINI_V1):
        raise ForeignSeal(f"a call in the dialect {dialect.name} can't hold the seal of {call.seal.format}")
    base = bytes(old.raw) if old is not None and old.raw is not None else _new_call(call)
    extra = _with_google_seal(members(base).get("extra_content"), call.seal.data if call.seal else None)
    return set_members(base, [("extra_content", extra)])


def _new_call(call: ToolCall) -> bytes:
    known: dict[str, object] = {} if call.id is None else {"id": call.id}
    if call.is_custom:
        return encode({**known, "type": "custom", "custom": {"name": call.name, "input": call.arguments}})
    return encode({**known, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
