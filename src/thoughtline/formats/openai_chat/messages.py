"""One chat message and its items.

Items of a message are in this order: reasoning of its own fields, content, refusal, tool calls. Reasoning is read from
every known carrier; a string that only repeats `reasoning_details` is not a second item.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats import think_tags
from thoughtline.formats.json_text import (
    NULL,
    as_text,
    decode,
    decode_content,
    decode_each,
    decode_kind,
    encode,
    is_array,
    is_given,
    members,
    object_of,
)
from thoughtline.formats.reasoning_details import decode_detail
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError, ForeignSeal
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
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
)

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_FIELD_NAMES = {"reasoning_content": b'"reasoning_content"', "reasoning": b'"reasoning"', "thinking": b'"thinking"'}
_NOT_PLAIN = (*REASONING_KINDS, ToolResult)
_TEXT_KINDS = ("text", "input_text", "output_text")
_PART_KINDS = (*_TEXT_KINDS, "thinking")


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
    """The members of a message that we decode."""

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
    thinking: Raw = NULL
    provider_specific_fields: Raw = NULL
    annotations: Raw = NULL
    citations: Raw = NULL


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
_text_decoder = msgspec.json.Decoder(str)
_part_decoder = msgspec.json.Decoder(_Part)


def decode_items(message: Message, dialect: Dialect) -> tuple[Item, ...]:
    """The items of a message of any role."""
    role = message.role
    if role == "tool" or role == "function":
        return (ToolResult(message.content, message.tool_call_id, message.name),)
    content = decode_content(message.content)
    if role != "assistant":
        if isinstance(content, str):
            return (Text(content),) if content else ()
        return tuple(_decode_parts(content, dialect)) if content else ()
    items = field_reasoning(message, dialect)
    if content:
        if dialect.carrier == "think_tags":
            items += _decode_tagged(content, dialect)
        elif isinstance(content, str):
            items.append(Text(content))
        else:
            items += _decode_parts(content, dialect)
    if message.tool_calls is not None or message.refusal or message.function_call is not NULL:
        items += answer_tail(message)
    return tuple(items)


CARRIERS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "thinking",
    "provider_specific_fields",  # LiteLLM's copy of them
)
_USUAL_CARRIER = CARRIERS[:1]


def carriers_of(message: Message) -> tuple[str, ...]:
    """The members of a message that hold reasoning, or a library's copy of it."""
    if message.role != "assistant":
        return ()
    if (
        message.reasoning is None
        and message.reasoning_details is None
        and message.reasoning_text is None
        and message.thinking is NULL
        and message.provider_specific_fields is NULL
    ):
        return () if message.reasoning_content is None else _USUAL_CARRIER
    return tuple(name for name in CARRIERS if _is_there(message, name))


def _is_there(message: Message, name: str) -> bool:
    return text_of(message.thinking) is not None if name == "thinking" else getattr(message, name) not in (None, NULL)


def text_of(thinking: Raw) -> str | None:
    """`thinking` if it is text: elsewhere it is a switch, or a library's list."""
    return decode(_text_decoder, thinking, "/thinking") if bytes(thinking)[:1] == b'"' else None


def answer_carriers(message: Message, items: Sequence[Item]) -> tuple[str, ...]:
    """The members of an answer that hold reasoning, or the name of its reasoning chunks in the content."""
    values = {
        "reasoning_details": message.reasoning_details,
        "reasoning_text": message.reasoning_text or message.reasoning_opaque,
        "reasoning_content": message.reasoning_content,
        "reasoning": message.reasoning,
        "thinking": text_of(message.thinking) if message.thinking is not NULL else None,
    }
    chunks = filter(None, map(chunk_carrier, items)) if is_array(message.content) else ()
    return (*compress(values, values.values()), *dict.fromkeys(chunks))


def chunk_carrier(item: Item) -> str:
    """How an answer writes reasoning into its content: as Mistral or Cohere does; empty for anything that is not a
    chunk.
    """
    if not isinstance(item, ReasoningText) or not item.raw or item.signature is not None:
        return ""
    written = members(item.raw)
    if bytes(written.get("type", NULL)) != b'"thinking"':
        return ""
    return "mistral_chunks" if is_array(written.get("thinking", NULL)) else "cohere_chunks"


def carrier_among(carriers: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """The one member that identifies where a server keeps reasoning, if an answer has it in several.

    One that can hold seals comes first: the others repeat its readable part.
    """
    for name in ("reasoning_details", "reasoning_text", dialect.carrier):
        if name in carriers:
            return (name,)
    return tuple(carriers[:1])


def answer_tail(message: Message) -> list[Item]:
    """The items after the content of an answer: its refusal and its calls."""
    items: list[Item] = [Unknown("refusal", Raw(encode(message.refusal)))] if message.refusal else []
    if message.tool_calls:
        for call in message.tool_calls:
            items.append(_typed_call(call))
    elif is_given(message.function_call):
        function = decode(_function_decoder, message.function_call, "/function_call")
        if function.name:  # some hosts write an empty one into every message
            items.append(ToolCall(function.name, _arguments(function)))
    return items


def field_reasoning(message: Message, dialect: Dialect) -> list[Item]:
    """The reasoning in members of its own."""
    text = message.reasoning_content or message.reasoning
    if not text and message.thinking is not NULL:
        text = text_of(message.thinking)
    if text is None:
        text = message.reasoning_content  # an empty field is present
    items: list[Item] = [] if text is None else [ReasoningText(text, None, dialect.reasoning_format)]
    if message.reasoning_details:
        details = [decode_detail(raw, f"/reasoning_details/{at}") for at, raw in enumerate(message.reasoning_details)]
        items = [*details] if any(map(_is_readable, details)) else [*items, *details]
    if message.reasoning_text is not None or message.reasoning_opaque is not None:
        items.append(_copilot_pair(message.reasoning_text, message.reasoning_opaque, dialect))
    if message.extra_content is not NULL:
        seal = _google_seal(message.extra_content)
        if seal is not None:
            items.append(ReasoningEncrypted(seal.data, seal.format))
    return items


def _is_readable(item: Item) -> bool:
    match item:
        case ReasoningText():
            return bool(item.text)
        case ReasoningSummary():
            return bool(item.summary)
        case _:
            return False


def _copilot_pair(text: str | None, opaque: str | None, dialect: Dialect) -> Reasoning:
    """Text that the opaque token signs, or only the token."""
    if opaque and not text:
        return ReasoningEncrypted(opaque, dialect.reasoning_format)
    return ReasoningText(text or "", opaque, dialect.reasoning_format)


def _google_seal(extra: Raw) -> Seal | None:
    if not is_given(extra):
        return None
    google = decode(_extra_decoder, extra, "/extra_content").google
    if google is None or not google.thought_signature:
        return None
    return Seal(google.thought_signature, GOOGLE_GEMINI_V1)


def _decode_tagged(content: str | list[Raw], dialect: Dialect) -> list[Item]:
    """Content whose first text may start with reasoning in tags."""
    items: list[Item] = [Text(content)] if isinstance(content, str) else _decode_parts(content, dialect)
    if not items or not isinstance(items[0], Text):
        return items
    reasoning, rest = think_tags.split(items[0].text)
    if reasoning is None:
        return items
    thought: list[Item] = [ReasoningText(reasoning, None, dialect.reasoning_format)]
    return [*thought, *([Text(rest)] if rest else []), *items[1:]]


def _decode_parts(parts: Sequence[Raw], dialect: Dialect) -> list[Item]:
    return [*decode_each(parts, lambda raw: decode_part(raw, dialect), "/content")]


def decode_part(raw: Raw, dialect: Dialect) -> Item:
    """One element of a content list."""
    part = decode_kind(_part_decoder, raw, _PART_KINDS)
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
    """One tool call."""
    return replace(_typed_call(decode(_call_decoder, raw)), raw=raw)


def _typed_call(call: Call) -> ToolCall:
    seal = _google_seal(call.extra_content) if call.extra_content is not NULL else None
    function = call.function
    if function is None:
        custom = call.custom or Function()
        return ToolCall(
            custom.name or "", custom.input or "", call.id, item_id=None, is_custom=call.custom is not None, seal=seal
        )
    arguments = function.arguments
    if not isinstance(arguments, str):
        arguments = _arguments(function)
    return ToolCall(function.name or "", arguments, call.id, item_id=None, is_custom=False, seal=seal)


def _arguments(function: Function) -> str:
    arguments = function.arguments
    return arguments if isinstance(arguments, str) else as_text(object_of((arguments or {}).items()))


# --- reasoning added to the front of a message ------------------------------------------------------------------------


def with_reasoning(before: bytes, items: tuple[Item, ...], dialect: Dialect) -> bytes | None:
    """The message with reasoning added in front of all its members: by far the most common edit, so no member is
    examined.

    None if the message already has reasoning, or the dialect keeps it elsewhere.
    """
    field = _FIELD_NAMES.get(dialect.carrier)
    if field is None or not items or b'"reasoning' in before or b'"thinking"' in before:
        return None
    first = items[0]
    if not isinstance(first, REASONING_KINDS):
        return None
    for item in items[1:]:
        if isinstance(item, _NOT_PLAIN):
            return None
    text = first.text if isinstance(first, ReasoningText) and first.signature is None else plain_text((first,))
    return b"%b,%b:%b}" % (before[: before.rindex(b"}")].rstrip(), field, encode(text))


def plain_text(reasoning: Sequence[Reasoning]) -> str:
    """Reasoning for a field that holds only text."""
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
