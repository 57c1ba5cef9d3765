"""One content block of Converse and its item, in both directions; its notes."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bodies import as_it_came, require_own
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    array,
    decode,
    decode_each,
    elements,
    encode,
    is_array,
    members,
    object_of,
    read_or_none,
)
from thoughtline.formats.media import own_shape
from thoughtline.providers import Dialect
from thoughtline.values.errors import EncodeError, ForeignSeal
from thoughtline.values.items import (
    CACHE_POINT,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.notes import NO_NOTES, Citation, Notes


class _ReasoningText(Struct, gc=False):
    text: str | None = None
    signature: str | None = None


class ReasoningMember(Struct, gc=False, rename="camel"):
    """In a whole response one of the first two members. In a stream: text, a signature or a blob, each separately."""

    reasoning_text: _ReasoningText | None = None
    redacted_content: str | None = None
    text: str | None = None
    signature: str | None = None


class ToolUse(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    name: str | None = None
    input: Raw = NULL
    type: str | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the client runs it; a tool that Amazon runs is no call for the client (API reference of
        `ToolUseBlock`, read 2026-11-15).
        """
        return self.type != "server_tool_use"


class _ToolResult(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    content: Raw = NULL


class _Piece(Struct, gc=False):
    text: str = ""


class _Cited(Struct, gc=False):
    content: list[_Piece] | None = None


class _Block(Struct, gc=False, rename="camel"):
    text: str | None = None
    reasoning_content: ReasoningMember | None = None
    tool_use: ToolUse | None = None
    tool_result: _ToolResult | None = None
    citations_content: _Cited | None = None


_block_decoder = msgspec.json.Decoder(_Block)


def decode_block(raw: Raw, dialect: Dialect) -> Item:
    block = decode(_block_decoder, raw)
    if block.reasoning_content is not None:
        return _decode_reasoning(block.reasoning_content, raw, dialect)
    if block.tool_use is not None and block.tool_use.is_ours:
        use = block.tool_use
        return ToolCall(use.name or "", arguments_text(use.input), use.tool_use_id, raw=raw)
    if block.tool_result is not None:
        return ToolResult(block.tool_result.content, block.tool_result.tool_use_id, raw=raw)
    if block.text is not None:
        return Text(block.text, raw=raw)
    if block.citations_content is not None:
        return Text("".join(piece.text for piece in block.citations_content.content or ()), raw=raw)
    return Unknown(next(iter(members(raw)), ""), raw)


def _decode_reasoning(reasoning: ReasoningMember, raw: Raw, dialect: Dialect) -> Item:
    if reasoning.reasoning_text is not None:
        text = reasoning.reasoning_text
        return ReasoningText(text.text or "", text.signature, dialect.reasoning_format, raw=raw)
    if reasoning.redacted_content is not None:
        return ReasoningEncrypted(unwrap(reasoning.redacted_content), dialect.reasoning_format, raw=raw)
    return Unknown("reasoningContent", raw)


def unwrap(blob: str) -> str:
    """The token inside a `redactedContent`: Converse encodes Claude's own base64 text a second time, like any blob."""
    try:
        token = base64.b64decode(blob, validate=True).decode("ascii")
    except ValueError:  # not base64, or not of a text
        return blob
    return token if token.isprintable() else blob


def wrap(token: str) -> str:
    """The blob for a token; a blob without a token inside stays as it is."""
    return base64.b64encode(token.encode()).decode()


def decode_blocks(blocks: Sequence[Raw], dialect: Dialect, place: str) -> tuple[Item, ...]:
    return decode_each(blocks, lambda raw: decode_block(raw, dialect), place)


def encode_block(item: Item, dialect: Dialect) -> bytes:
    """One block for the wire: its own JSON if that is still right, else a new one."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if as_it_came(item, decode_block, dialect) == item:
        return bytes(item.raw)
    match item:
        case Text(seal=None):
            return encode({"text": item.text})
        case ReasoningText():
            require_own(item, dialect)
            signed = {} if item.signature is None else {"signature": item.signature}
            return encode({"reasoningContent": {"reasoningText": {"text": item.text, **signed}}})
        case ReasoningEncrypted():
            require_own(item, dialect)
            return encode({"reasoningContent": {"redactedContent": wrap(item.data)}})
        case ToolCall(seal=None, is_custom=False):
            known = [("toolUseId", encode(item.id or "")), ("name", encode(item.name))]
            return object_of([("toolUse", object_of([*known, ("input", arguments_object(item.arguments))]))])
        case ToolResult():
            return object_of([("toolResult", _encode_result(item))])
        case Text() | ToolCall(is_custom=False):
            raise ForeignSeal(f"a Converse block can't hold the seal of a {type(item).__name__}")
        case _:
            raise EncodeError(f"Converse content can't hold a {type(item).__name__}")


class _CachePoint(Struct, gc=False):
    type: str = "default"
    ttl: str | None = None


class _PointBlock(Struct, gc=False, rename="camel"):
    cache_point: _CachePoint | None = None


_point_decoder = msgspec.json.Decoder(_PointBlock)
_mark_decoder = msgspec.json.Decoder(_CachePoint)


def mark_of(item: Item) -> Raw | None:
    """The `cachePoint` as a mark of Anthropic's form."""
    if not isinstance(item, Unknown) or item.kind != CACHE_POINT:
        return None
    block = read_or_none(_point_decoder, item.raw)
    ttl = block.cache_point.ttl if block is not None and block.cache_point is not None else None
    return Raw(encode({"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})))


def cache_point(mark: Raw) -> Raw:
    """A mark of Anthropic's form as a `cachePoint` block."""
    known = read_or_none(_mark_decoder, mark)
    ttl = known.ttl if known is not None else None
    return Raw(encode({CACHE_POINT: {"type": "default"} | ({"ttl": ttl} if ttl else {})}))


def mark_block(item: Item, mark: Raw, dialect: Dialect) -> tuple[Item, ...] | None:
    """A block followed by a mark for prompt caching; thinking can't have one."""
    return None if isinstance(item, REASONING_KINDS) else (item, Unknown(CACHE_POINT, cache_point(mark)))


def _encode_result(item: ToolResult) -> bytes:
    content = bytes(item.content)
    if content[:1] == b'"':
        content = array([object_of([("text", content)])])
    elif content[:1] == b"{":
        content = array([object_of([("json", content)])])
    return object_of([("toolUseId", encode(item.call_id or "")), ("content", content)])


# --- notes: `citationsContent`, text and its sources ------------------------------------------------------------------
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationsContentBlock.html, checked 2026-11-15.


class _Location(Struct, gc=False):
    url: str | None = None


class _Citation(Struct, gc=False, rename="camel"):
    title: str | None = None
    source_content: list[_Piece] | None = None
    location: dict[str, _Location] | None = None


_citations_decoder = msgspec.json.Decoder(list[_Citation])


def decode_notes(item: Text) -> Notes:
    """The pages that a block's text cites; places in documents of the request have no URL."""
    raws = citations_of(item.raw)
    citations = read_or_none(_citations_decoder, Raw(array(raws))) if raws else []
    if citations is None:
        return own_shape("citations")
    found = [(one, (one.location or {}).get("web", _Location()).url) for one in citations]
    pages = [Citation(url, one.title or "", _quote(one), 0, len(item.text)) for one, url in found if url]
    others = dict.fromkeys(f"citations of kind {next(iter(one.location or ()), '')}" for one, url in found if not url)
    return Notes(tuple(pages), tuple(others)) if found else NO_NOTES


def _quote(citation: _Citation) -> str:
    return "".join(piece.text for piece in citation.source_content or ())


def citations_of(raw: Raw) -> list[Raw]:
    if b'"citationsContent"' not in bytes(raw):
        return []
    citations = members(members(raw)["citationsContent"]).get("citations", NULL)
    return elements(citations) if is_array(citations) else []


def cited_block(text: str, citations: list[Raw]) -> Raw:
    """The block for text and citations that came in a stream."""
    content = object_of([("content", encode([{"text": text}])), ("citations", array(citations))])
    return Raw(object_of([("citationsContent", content)]))
