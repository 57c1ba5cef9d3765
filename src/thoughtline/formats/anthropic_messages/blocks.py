"""One content block and the item it is, in both directions."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.conversation import as_it_came, require_own
from thoughtline.formats.json_text import NULL, arguments_object, arguments_text, decode_kind, encode, object_of
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.values.items import (
    UNKNOWN_FORMAT,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)


class _Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NULL
    tool_use_id: str | None = None
    content: Raw = NULL


_decoder = msgspec.json.Decoder(_Block)
_decode = _decoder.decode
KNOWN_BLOCKS = ("text", "thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result")


def decode_block(raw: Raw, dialect: Dialect) -> Item:
    """One block as a typed item."""
    try:
        return _typed(_decode(raw), raw, dialect)  # called for every item of every edited turn: no detour
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    block = decode_kind(_decoder, raw, KNOWN_BLOCKS)
    return Unknown(block, raw) if isinstance(block, str) else _typed(block, raw, dialect)


def _typed(block: _Block, raw: Raw, dialect: Dialect) -> Item:
    match block.type:
        case "text" if block.text is not None:
            return Text(block.text, None, None, raw)
        case "thinking":
            return ReasoningText(block.thinking or "", block.signature, dialect.reasoning_format, raw=raw)
        case "redacted_thinking":
            return ReasoningEncrypted(block.data or "", dialect.reasoning_format, raw=raw)
        case "reasoning":
            # No block of Anthropic's: other proxies write it for reasoning of chat models, in `text`.
            return ReasoningText(block.text or block.thinking or "", None, UNKNOWN_FORMAT, raw=raw)
        case "tool_use":
            return ToolCall(
                block.name or "",
                arguments_text(block.input),
                block.id,
                item_id=None,
                is_custom=False,
                seal=None,
                raw=raw,
            )
        case "tool_result":
            return ToolResult(block.content, block.tool_use_id, None, raw)
        case _:
            return Unknown(block.type, raw)


def decode_blocks(content: str | list[Raw] | None, dialect: Dialect) -> tuple[Item, ...]:
    """The content of a message: a string, or a list of blocks."""
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    items = []
    for position, raw in enumerate(content):
        try:
            items.append(_typed(_decode(raw), raw, dialect))
        except (msgspec.DecodeError, UnicodeDecodeError):
            items.append(_decode_at(raw, dialect, position))
    return tuple(items)


def _decode_at(raw: Raw, dialect: Dialect, position: int) -> Item:
    """A block of a kind we don't know, or one with a problem whose place is wanted."""
    try:
        return decode_block(raw, dialect)
    except DecodeError as error:
        raise error.within(f"/content/{position}") from None


def encode_block(item: Item, dialect: Dialect) -> bytes:
    """One block for the wire: its own JSON if it came from there and says the same, else made new."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if item.raw and as_it_came(item, decode_block, dialect) == item:
        return bytes(item.raw)
    match item:
        case Text(seal=None):
            return encode({"type": "text", "text": item.text})
        case ReasoningText():
            require_own(item, dialect)
            signed = {} if item.signature is None else {"signature": item.signature}
            return encode({"type": "thinking", "thinking": item.text, **signed})
        case ReasoningEncrypted():
            require_own(item, dialect)
            return encode({"type": "redacted_thinking", "data": item.data})
        case ToolCall(seal=None, is_custom=False):
            known = [("type", b'"tool_use"'), ("id", encode(item.id or "")), ("name", encode(item.name))]
            return object_of([*known, ("input", arguments_object(item.arguments))])
        case ToolResult():
            known = [("type", b'"tool_result"'), ("tool_use_id", encode(item.call_id or ""))]
            return object_of([*known, ("content", item.content)])
        case Text() | ToolCall(is_custom=False):
            raise ForeignSeal(f"a {type(item).__name__} block can't hold a seal")
        case _:
            raise EncodeError(f"Anthropic's content can't hold a {type(item).__name__}")
