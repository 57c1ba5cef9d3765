"""Encodes the items of a turn as one chat message. If it came from a message, only the members that
differ are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import think_tags
from thoughtline.formats.bodies import as_it_came
from thoughtline.formats.cache_marks import with_mark
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    elements,
    encode,
    is_array,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.openai_chat.messages import (
    CARRIERS,
    chunk_carrier,
    decode_call,
    decode_items,
    decode_part,
    message_decoder,
    plain_text,
    text_of,
    with_reasoning,
)
from thoughtline.formats.reasoning_details import encode_detail
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError, ForeignSeal
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    reasoning_of,
)

_FIELDS = (*CARRIERS, "reasoning_opaque")
_IN_CONTENT = ("think_tags", "mistral_chunks", "cohere_chunks")


def encode_message(
    role: str, items: tuple[Item, ...], before: bytes | None, dialect: Dialect, moves_reasoning: bool = False
) -> bytes:
    """A message for the wire. `moves_reasoning` writes reasoning into the dialect's own member, wherever it was."""
    old = decode_items(decode(message_decoder, before), dialect) if before is not None else ()
    if before is not None and old == items and not moves_reasoning:
        return before
    if role == "tool" or any(isinstance(item, ToolResult) for item in items):
        return _encode_tool_result(items, before)
    if before is None:
        return _encode_new(role, items, dialect)
    if old == items[1:] and (restored := with_reasoning(before, items, dialect)) is not None:
        return restored
    changes: list[tuple[str, bytes | None]] = []
    reasoning_differs = moves_reasoning or _thoughts(items) != _thoughts(old)
    if reasoning_differs:
        changes += _reasoning_members(items, before, dialect)
    if (reasoning_differs and _touches_content(old, dialect)) or _contents(items) != _contents(old):
        changes.append(("content", _encode_content(items, before, dialect)))
    if _calls(items) != _calls(old):
        changes.append(("tool_calls", _encode_calls(items, before, dialect)))
    return set_members(before, changes)


def _encode_new(role: str, items: tuple[Item, ...], dialect: Dialect) -> bytes:
    known: list[tuple[str, bytes | None]] = [("role", encode(role))]
    if role == "assistant":
        known += _reasoning_members(items, b"{}", dialect)
    known.append(("content", _encode_content(items, None, dialect, is_asked=role != "assistant")))
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


def _contents(items: tuple[Item, ...]) -> list[Text | Unknown]:
    found = [item for item in items if isinstance(item, (Text, Unknown))]
    return [item for item in found if isinstance(item, Text) or not item.kind.startswith(("refusal", "reasoning."))]


def _thoughts(items: tuple[Item, ...]) -> list[Reasoning | Unknown]:
    """The reasoning, including entries of unknown kinds."""
    found = [item for item in items if isinstance(item, (*REASONING_KINDS, Unknown))]
    return [item for item in found if not isinstance(item, Unknown) or item.kind.startswith("reasoning.")]


def _calls(items: tuple[Item, ...]) -> list[ToolCall]:
    return [item for item in items if isinstance(item, ToolCall)]


def _touches_content(old: tuple[Item, ...], dialect: Dialect) -> bool:
    """Whether reasoning is inside `content`, or is to be written there."""
    return dialect.carrier in _IN_CONTENT or any(map(chunk_carrier, old))


def _reasoning_members(items: tuple[Item, ...], before: bytes, dialect: Dialect) -> list[tuple[str, bytes | None]]:
    """Edits of the reasoning members of a message: the dialect's own is set, all others are removed."""
    present = members(before)
    wanted: dict[str, bytes | None] = {field: None for field in _FIELDS if field in present}
    if "thinking" in wanted and text_of(present["thinking"]) is None:
        del wanted["thinking"]
    reasoning = reasoning_of(items)
    if _thoughts(items):
        wanted |= _written(_thoughts(items), dialect)
    if "extra_content" in present or dialect.carrier == "google_extra":
        wanted["extra_content"] = _message_extra(reasoning, present.get("extra_content"), dialect)
    return list(wanted.items())


def _written(thoughts: list[Reasoning | Unknown], dialect: Dialect) -> dict[str, bytes | None]:
    reasoning = reasoning_of(tuple(thoughts))
    match dialect.carrier:
        case "reasoning_content" | "reasoning" | "thinking":
            return {dialect.carrier: encode(plain_text(reasoning))}
        case "reasoning_details":
            return {"reasoning_details": array(map(encode_detail, thoughts))}
        case "reasoning_text":
            return _written_as_copilot(reasoning, dialect)
        case "think_tags" | "mistral_chunks" | "cohere_chunks" | "google_extra":
            return {}
        case "native" | "none":
            raise EncodeError(f"the dialect {dialect.name} has no place for reasoning")


def _written_as_copilot(reasoning: tuple[Reasoning, ...], dialect: Dialect) -> dict[str, bytes | None]:
    if len(reasoning) != 1:
        raise EncodeError("reasoning_text and reasoning_opaque hold one reasoning item")
    item = reasoning[0]
    if item.format != dialect.reasoning_format:
        raise ForeignSeal(f"{item.format} reasoning can't go to a server that reads {dialect.reasoning_format}")
    match item:
        case ReasoningText():
            opaque = encode(item.signature) if item.signature is not None else None
            return {"reasoning_text": encode(item.text), "reasoning_opaque": opaque}
        case ReasoningEncrypted():
            return {"reasoning_opaque": encode(item.data)}
        case _:
            raise EncodeError(f"reasoning_text can't hold a {type(item).__name__}")


def _message_extra(reasoning: tuple[Reasoning, ...], before: Raw | None, dialect: Dialect) -> bytes | None:
    seals = [item for item in reasoning if isinstance(item, ReasoningEncrypted)]
    if not seals or dialect.carrier != "google_extra":
        return _with_google_seal(before, None)
    if len(reasoning) != 1 or seals[0].format != GOOGLE_GEMINI_V1:
        raise ForeignSeal("extra_content.google holds one Gemini signature and no other reasoning")
    return _with_google_seal(before, seals[0].data)


def _with_google_seal(extra: Raw | None, data: str | None) -> bytes | None:
    """`extra_content` with Google's signature set or removed; everything else in it stays."""
    outer = bytes(extra) if extra is not None and is_given(extra) else b"{}"
    inner = bytes(members(outer).get("google", Raw(b"{}")))
    google = set_members(inner, [("thought_signature", encode(data) if data is not None else None)])
    result = set_members(outer, [("google", google if members(google) else None)])
    return result if members(result) else None


def _encode_content(
    items: tuple[Item, ...], before: bytes | None, dialect: Dialect, *, is_asked: bool = False
) -> bytes:
    """A single text as a string. In input for the model, a text that was created as a part stays one."""
    contents = _contents(items)
    for item in contents:
        if isinstance(item, Text) and item.seal is not None:
            raise ForeignSeal(f"chat content can't hold the seal of {item.seal.format}")
    was_list = before is not None and is_array(members(before).get("content", NULL))
    if dialect.carrier == "think_tags":
        return _encode_tagged(contents, reasoning_of(items), was_list, dialect)
    reasoning = reasoning_of(items) if dialect.carrier in _IN_CONTENT else ()
    in_parts = any(isinstance(item, Unknown) or (is_asked and item.raw) for item in contents)
    if was_list or reasoning or len(contents) > 1 or in_parts:
        ordered = [item for item in items if item in contents or item in reasoning]
        return array(_encode_part(item, dialect) for item in ordered)
    return encode(contents[0].text if contents and isinstance(contents[0], Text) else None)


def _encode_tagged(
    contents: list[Text | Unknown], reasoning: tuple[Reasoning, ...], was_list: bool, dialect: Dialect
) -> bytes:
    """Content with reasoning in tags at the beginning of its text."""
    texts = [item for item in contents if isinstance(item, Text)]
    if not was_list and len(texts) == len(contents):
        text = "".join(item.text for item in texts)
        return encode(think_tags.join(plain_text(reasoning), text) if reasoning else text)
    if not reasoning:
        return array(_encode_part(item, dialect) for item in contents)
    first = texts[0].text if texts and contents[0] is texts[0] else ""
    tagged = Text(think_tags.join(plain_text(reasoning), first))
    rest = contents[1:] if texts and contents[0] is texts[0] else contents
    return array(_encode_part(item, dialect) for item in (tagged, *rest))


def _encode_part(item: Item, dialect: Dialect) -> bytes:
    match item:
        case Unknown():
            return bytes(item.raw)
        case Text() | ReasoningText() if as_it_came(item, decode_part, dialect) == item:
            return bytes(item.raw)
        case Text(seal=None):
            return encode({"type": "text", "text": item.text})
        case ReasoningText(signature=None) if dialect.carrier == "mistral_chunks":
            return encode({"type": "thinking", "thinking": [{"type": "text", "text": item.text}]})
        case ReasoningText(signature=None) if dialect.carrier == "cohere_chunks":
            return encode({"type": "thinking", "thinking": item.text})
        case _:
            raise EncodeError(f"chat content in the dialect {dialect.name} can't hold a {type(item).__name__}")


def mark_part(item: Item, mark: Raw, dialect: Dialect) -> tuple[Item, ...] | None:
    """A part with a mark for prompt caching, as OpenRouter accepts it; a call or a thought can't have one."""
    match item:
        case Text(seal=None) if item.text:
            return (decode_part(with_mark(encode({"type": "text", "text": item.text}), mark), dialect),)
        case ToolResult():
            parts = elements(item.content) if is_array(item.content) else _text_parts(item.content)
            marked = [*parts[:-1], with_mark(parts[-1], mark)] if parts else []
            return (replace(item, content=Raw(array(marked))),) if marked else None
        case Unknown():
            return (replace(item, raw=with_mark(item.raw, mark)),)
        case _:
            return None


def _text_parts(content: Raw) -> list[Raw]:
    return [Raw(object_of([("type", b'"text"'), ("text", content)]))] if bytes(content)[:1] == b'"' else []


def _encode_calls(items: tuple[Item, ...], before: bytes, dialect: Dialect) -> bytes | None:
    calls = _calls(items)
    known = members(before).get("tool_calls", NULL)
    olds = [decode_call(raw) for raw in elements(known)] if is_given(known) else []
    return array(encode_call(call, olds, dialect) for call in calls) if calls else None


def encode_call(call: ToolCall, olds: Sequence[ToolCall], dialect: Dialect) -> bytes:
    """One tool call for the wire: like the matching old one except for its seal, or new."""
    same = (call.name, call.arguments, call.id)
    old = next((old for old in olds if (old.name, old.arguments, old.id) == same), None)
    if old is not None and old.seal == call.seal:
        return bytes(old.raw)
    if call.seal is not None and (dialect.carrier != "google_extra" or call.seal.format != GOOGLE_GEMINI_V1):
        raise ForeignSeal(f"a call in the dialect {dialect.name} can't hold the seal of {call.seal.format}")
    base = bytes(old.raw) if old is not None else _new_call(call)
    if old is None and call.seal is None:
        return base
    extra = _with_google_seal(members(base).get("extra_content"), call.seal.data if call.seal else None)
    return set_members(base, [("extra_content", extra)])


def _new_call(call: ToolCall) -> bytes:
    known: dict[str, object] = {} if call.id is None else {"id": call.id}
    if call.is_custom:
        return encode({**known, "type": "custom", "custom": {"name": call.name, "input": call.arguments}})
    return encode({**known, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
