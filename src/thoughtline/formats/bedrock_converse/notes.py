"""The notes of a Converse block: `citationsContent`, words and where they came from.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationsContentBlock.html, checked 2026-11-15.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import array, elements, encode, members, object_of
from thoughtline.values.items import Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes


class Piece(Struct, gc=False):
    text: str = ""


class _Page(Struct, gc=False):
    url: str | None = None


class _Citation(Struct, gc=False, rename="camel"):
    title: str | None = None
    source_content: list[Piece] | None = None
    location: dict[str, Raw] | None = None


class _Content(Struct, gc=False):
    citations: list[_Citation] | None = None


class _Block(Struct, gc=False, rename="camel"):
    citations_content: _Content | None = None


_decoder = msgspec.json.Decoder(_Block)
_page_decoder = msgspec.json.Decoder(_Page)


def decode_notes(item: Text) -> Notes:
    """The pages that a block's words came from; places in documents of the request have no address."""
    if b'"citationsContent"' not in bytes(item.raw):
        return NO_NOTES
    try:
        content = _decoder.decode(item.raw).citations_content or _Content()
        found = [(one, _address(one)) for one in content.citations or ()]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Notes(others=("citations in a shape of their own",))
    size = len(item.text)
    pages = [Citation(url, one.title or "", _quote(one), 0, size) for one, url in found if url]
    others = dict.fromkeys(f"citations of kind {next(iter(one.location or ()), '')}" for one, url in found if not url)
    return Notes(tuple(pages), tuple(others))


def _address(citation: _Citation) -> str | None:
    web = (citation.location or {}).get("web")
    return _page_decoder.decode(web).url if web is not None else None


def _quote(citation: _Citation) -> str:
    return "".join(piece.text for piece in citation.source_content or ())


def citations_of(raw: Raw) -> list[Raw]:
    """The citations of a block, unread."""
    if b'"citationsContent"' not in bytes(raw):
        return []
    return elements(members(members(raw)["citationsContent"]).get("citations", Raw(b"[]")))


def cited_block(text: str, citations: list[Raw]) -> Raw:
    """The block that words and citations of a stream would have been."""
    content = object_of([("content", encode([{"text": text}])), ("citations", array(citations))])
    return Raw(object_of([("citationsContent", content)]))
