"""One part of a Gemini content and its item, in both directions.

A `thoughtSignature` is a member next to the payload of a part of any kind: on a call or on text it is that item's seal.
Both spellings that Google's servers accept, camelCase and snake_case, are read; a part keeps its own.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats.bodies import as_it_came, require_own
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    decode,
    encode,
    members,
    object_of,
    set_members,
)
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.items import Item, ReasoningText, Seal, Text, ToolCall, ToolResult, Unknown

_SIGNATURES = ("thoughtSignature", "thought_signature")
_NOT_A_KIND = frozenset({"thought", "videoMetadata", "video_metadata", "partMetadata", *_SIGNATURES})


class Call(Struct, gc=False, rename="camel"):
    name: str | None = None
    args: Raw = NULL
    id: str | None = None
    partial_args: list[Raw] | None = None
    will_continue: bool | None = None


class _Result(Struct, gc=False):
    name: str | None = None
    response: Raw = NULL
    id: str | None = None


class Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    snake_signature: str | None = field(default=None, name="thought_signature")
    function_call: Call | None = None
    snake_call: Call | None = field(default=None, name="function_call")
    function_response: _Result | None = None
    snake_result: _Result | None = field(default=None, name="function_response")

    @property
    def signature(self) -> str | None:
        """The signature; an empty one counts as none."""
        return self.thought_signature or self.snake_signature or None

    @property
    def call(self) -> Call | None:
        return self.function_call or self.snake_call


part_decoder = msgspec.json.Decoder(Part)


def decode_part(raw: Raw, dialect: Dialect) -> Item:
    return typed_part(decode(part_decoder, raw), raw, dialect)


def typed_part(part: Part, raw: Raw, dialect: Dialect) -> Item:
    signature = part.signature
    seal = Seal(signature, dialect.reasoning_format) if signature is not None else None
    call = part.call
    if call is not None:
        return ToolCall(call.name or "", arguments_text(call.args), call.id, seal=seal, raw=raw)
    result = part.function_response or part.snake_result
    if result is not None:
        return ToolResult(result.response, result.id, result.name, raw)
    kind = "" if part.text is not None else _kind_of(raw)
    if part.thought and not kind:
        return ReasoningText(part.text or "", signature, dialect.reasoning_format, raw=raw)
    if part.text is not None:
        return Text(part.text, seal, raw=raw)
    return Unknown(kind, raw, seal)


def _kind_of(raw: Raw) -> str:
    return next((key for key in members(raw) if key not in _NOT_A_KIND), "")


def encode_part(item: Item, dialect: Dialect) -> bytes:
    """One part for the wire: its own JSON, with the current seal, if it came from there; else a new one."""
    before = as_it_came(item, decode_part, dialect)
    if before == item:
        return bytes(item.raw)
    require_own(item, dialect)
    if before is not None and _unsigned(before) == _unsigned(item):
        return _with_signature(item.raw, _signature_of(item))
    match item:
        case Text():
            part = encode({"text": item.text})
        case ReasoningText():
            part = encode({"text": item.text, "thought": True})
        case ToolCall(is_custom=False):
            known = [("name", encode(item.name)), ("args", arguments_object(item.arguments))]
            call = object_of([("id", encode(item.id) if item.id else None), *known])
            part = object_of([("functionCall", call)])
        case ToolResult():
            part = _encode_result(item)
        case _:
            raise EncodeError(f"Gemini's parts can't hold a {type(item).__name__}")
    return _with_signature(Raw(part), _signature_of(item))


def _encode_result(item: ToolResult) -> bytes:
    response = bytes(item.content) if bytes(item.content)[:1] == b"{" else object_of([("result", item.content)])
    return function_response(item.call_id, item.name, response)


def function_response(call_id: str | None, name: str | None, response: bytes, parts: bytes | None = None) -> bytes:
    named = [("id", encode(call_id) if call_id else None), ("name", encode(name or ""))]
    return object_of([("functionResponse", object_of([*named, ("response", response), ("parts", parts)]))])


def _unsigned(item: Item) -> Item:
    match item:
        case Text() | ToolCall() | Unknown():
            return msgspec.structs.replace(item, seal=None)
        case ReasoningText():
            return msgspec.structs.replace(item, signature=None)
        case _:
            return item


def _signature_of(item: Item) -> str | None:
    if isinstance(item, ReasoningText):
        return item.signature
    return item.seal.data if isinstance(item, (Text, ToolCall, Unknown)) and item.seal else None


def _with_signature(raw: Raw, signature: str | None) -> bytes:
    present = [name for name in _SIGNATURES if name in members(raw)]
    if signature is None:
        return set_members(raw, [(name, None) for name in present]) if present else bytes(raw)
    return set_members(raw, [(name, encode(signature)) for name in present or _SIGNATURES[:1]])
