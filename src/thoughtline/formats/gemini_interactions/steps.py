"""One step of an interaction and its items, in both directions.

A step of the model is one item: a thought with its signature, text, or a call. Calls of Google's tools and their
results are part of the model's turn, both with signatures. A user's step has an item for each of its contents; contents
may also be elements of the list.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bodies import as_it_came, require_own
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    array,
    decode_kind,
    decode_list,
    encode,
    is_array,
    object_of,
    set_members,
)
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.items import Item, ReasoningText, Role, Seal, Text, ToolCall, ToolResult, Unknown

_CONTENTS = frozenset({"text", "image", "audio", "document", "video"})
"""Kinds of contents, not steps: as elements of the list they are the user's."""

_KNOWN = ("thought", "model_output", "function_call", "function_result", "user_input", "text")


class Content(Struct, gc=False):
    type: str = ""
    text: str | None = None
    call_id: str | None = None
    name: str | None = None
    result: Raw = NULL


class _Kind(Struct, gc=False):
    type: str = ""


class Step(Struct, gc=False):
    type: str = ""
    content: Raw = NULL
    signature: str | None = None
    summary: list[Content] | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw = NULL
    call_id: str | None = None
    result: Raw = NULL
    text: str | None = None


step_decoder = msgspec.json.Decoder(Step)
_content_decoder = msgspec.json.Decoder(Content)
_kind_decoder = msgspec.json.Decoder(_Kind)


def decode_step(raw: Raw, dialect: Dialect) -> tuple[Role, tuple[Item, ...]]:
    """One element of the list: its role and its items."""
    step = decode_kind(step_decoder, raw, _KNOWN)
    if isinstance(step, str):
        return ("user" if step in _CONTENTS else "assistant"), (Unknown(step, raw),)
    seal = Seal(step.signature, dialect.reasoning_format) if step.signature else None
    match step.type:
        case "user_input":
            return "user", _decode_contents(step.content)
        case "thought":
            text = "".join(one.text or "" for one in step.summary or ())
            return "assistant", (ReasoningText(text, step.signature or None, dialect.reasoning_format, raw=raw),)
        case "model_output":
            return "assistant", (Text(_words(step.content), seal, raw=raw),)
        case "function_call":
            call = ToolCall(step.name or "", arguments_text(step.arguments), step.id, seal=seal, raw=raw)
            return "assistant", (call,)
        case "function_result":
            return "tool", (ToolResult(step.result, step.call_id, step.name, raw),)
        case kind if kind in _CONTENTS:
            return "user", (decode_content(raw),)
        case kind:
            return "assistant", (Unknown(kind, raw, seal),)


def decode_content(raw: Raw) -> Item:
    """One content of a user: text, a result, or something else."""
    content = decode_kind(_content_decoder, raw, ("text", "function_result"))
    if isinstance(content, str):
        return Unknown(content, raw)
    match content.type:
        case "text" if content.text is not None:
            return Text(content.text, raw=raw)
        case "function_result":
            return ToolResult(content.result, content.call_id, content.name, raw)
        case kind:
            return Unknown(kind, raw)


def _decode_contents(content: Raw) -> tuple[Item, ...]:
    if not is_array(content):
        return (decode_content(content),) if bytes(content)[:1] == b"{" else ()
    return tuple(decode_content(one) for one in decode_list(content, "/content"))


def _words(content: Raw) -> str:
    return "".join(item.text for item in _decode_contents(content) if isinstance(item, Text))


def _only_item(raw: Raw, dialect: Dialect) -> Item:
    _, items = decode_step(raw, dialect)
    return items[0] if len(items) == 1 else Unknown("", raw)


def encode_step(item: Item, dialect: Dialect) -> bytes:
    """One step of the model, or a result: its own JSON if that is still right, else a new one."""
    if as_it_came(item, _only_item, dialect) == item:
        return bytes(item.raw)
    require_own(item, dialect)
    match item:
        case ReasoningText():
            summary = array([encode({"type": "text", "text": item.text})]) if item.text else None
            signature = encode(item.signature) if item.signature else None
            return object_of([("type", b'"thought"'), ("signature", signature), ("summary", summary)])
        case Text(seal=None):
            content = array([encode({"type": "text", "text": item.text})])
            return object_of([("type", b'"model_output"'), ("content", content)])
        case ToolCall(is_custom=False, seal=None):
            known = [("type", b'"function_call"'), ("id", encode(item.id or "")), ("name", encode(item.name))]
            return object_of([*known, ("arguments", arguments_object(item.arguments))])
        case ToolResult():
            return _encode_result(item)
        case _:
            raise EncodeError(f"a list of steps can't hold a {type(item).__name__}")


def _encode_result(item: ToolResult) -> bytes:
    name = [("name", encode(item.name))] if item.name else []
    known = [("type", b'"function_result"'), ("call_id", encode(item.call_id or "")), *name]
    return object_of([*known, ("result", item.content)])


def encode_content(item: Item) -> bytes:
    """One content of a user."""
    match item:
        case Text() | Unknown() | ToolResult() if item.raw:
            return bytes(item.raw)
        case Text():
            return encode({"type": "text", "text": item.text})
        case ToolResult():
            return _encode_result(item)
        case _:
            raise EncodeError(f"a user's step can't hold a {type(item).__name__}")


def encode_user_step(items: Sequence[Item], before: bytes | None) -> bytes:
    contents = array(encode_content(item) for item in items)
    if before is not None:
        return set_members(before, [("content", contents)])
    return object_of([("type", b'"user_input"'), ("content", contents)])


def is_content(element: bytes) -> bool:
    """Whether an element is a content, not a step."""
    return _kind_decoder.decode(element).type in _CONTENTS
