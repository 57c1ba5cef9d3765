"""One content part of the AI SDK and its item, in both directions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bodies import as_it_came, require_own
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    as_text,
    decode_each,
    decode_kind,
    encode,
    object_of,
    read_or_none,
)
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningText, Seal, Text, ToolCall, ToolResult, Unknown

KNOWN_PARTS = ("text", "reasoning", "tool-call", "tool-result")


class _Part(Struct, gc=False, rename="camel"):
    type: str = ""
    text: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: Raw = NULL
    output: Raw = NULL
    provider_options: Raw = NULL


class Output(Struct, gc=False):
    """The output of a tool: a text, JSON, or parts; `error-…` if it failed."""

    type: str = ""
    value: Raw = NULL


_decoder = msgspec.json.Decoder(_Part)
output_decoder = msgspec.json.Decoder(Output)


def decode_part(raw: Raw, dialect: Dialect) -> Item:
    """One part as a typed item."""
    part = decode_kind(_decoder, raw, KNOWN_PARTS)
    if isinstance(part, str):
        return Unknown(part, raw)
    token = _token(part.provider_options)
    seal = Seal(token, dialect.reasoning_format) if token is not None else None
    match part.type:
        case "text" if part.text is not None:
            return Text(part.text, seal, None, raw)
        case "reasoning":
            return ReasoningText(part.text or "", token, dialect.reasoning_format, raw=raw)
        case "tool-call":
            arguments = arguments_text(part.input)
            return ToolCall(part.tool_name or "", arguments, part.tool_call_id, seal=seal, raw=raw)
        case "tool-result":
            return ToolResult(_result(part.output), part.tool_call_id, part.tool_name, raw)
        case _:
            return Unknown(part.type, raw)


def _token(metadata: Raw) -> str | None:
    """The provider's metadata of a part as one token: they are sent back complete or not at all."""
    text = bytes(metadata)
    return as_text(text) if text[:1] == b"{" and text != b"{}" else None


def _result(output: Raw) -> Raw:
    """A text result as its text, any other unchanged."""
    known = read_or_none(output_decoder, output) if bytes(output)[:1] == b"{" else None
    return known.value if known is not None and known.type == "text" and bytes(known.value)[:1] == b'"' else output


def decode_parts(content: str | list[Raw] | None, dialect: Dialect, place: str) -> tuple[Item, ...]:
    """The content of a message: a string, or a list of parts."""
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    return decode_each(content, lambda raw: decode_part(raw, dialect), place)


def encode_part(item: Item, dialect: Dialect) -> bytes:
    """One part for the wire: its own JSON if that is still right, else a new one."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if item.raw and as_it_came(item, decode_part, dialect) == item:
        return bytes(item.raw)
    require_own(item, dialect)
    match item:
        case Text():
            return object_of([("type", b'"text"'), ("text", encode(item.text)), *_options(item.seal)])
        case ReasoningText():
            seal = Seal(item.signature, item.format) if item.signature is not None else None
            return object_of([("type", b'"reasoning"'), ("text", encode(item.text)), *_options(seal)])
        case ToolCall(is_custom=False):
            known = [("type", b'"tool-call"'), ("toolCallId", encode(item.id or "")), ("toolName", encode(item.name))]
            return object_of([*known, ("input", arguments_object(item.arguments)), *_options(item.seal)])
        case ToolResult():
            known = [("type", b'"tool-result"'), ("toolCallId", encode(item.call_id or ""))]
            return object_of([*known, ("toolName", encode(item.name or "")), ("output", _output(item.content))])
        case _:
            raise EncodeError(f"a part of the AI SDK can't hold a {type(item).__name__}")


def _output(content: Raw) -> bytes:
    text = bytes(content)
    return object_of([("type", b'"text"'), ("value", text)]) if text[:1] == b'"' else text


def _options(seal: Seal | None) -> list[tuple[str, bytes]]:
    return [] if seal is None else [("providerOptions", metadata_of(seal.data))]


def metadata_of(token: str) -> bytes:
    """The metadata in a token."""
    text = token.encode()
    if read_or_none(_object_decoder, text) is None:
        raise ForeignSeal("no metadata of a provider's that the AI SDK could carry")
    return text


_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_metadata_decoder = msgspec.json.Decoder(dict[str, dict[str, Raw]])


def merged(metadata: Sequence[Raw]) -> str | None:
    """The metadata of a part that came in pieces: for each provider's member the last value counts."""
    whole: dict[str, dict[str, Raw]] = {}
    for raw in metadata:
        for provider, known in (read_or_none(_metadata_decoder, raw) or {}).items():
            whole.setdefault(provider, {}).update(known)
    given = {provider: known for provider, known in whole.items() if known}
    return encode(given).decode() if given else None
