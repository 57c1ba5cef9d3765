"""The notes of a Converse block: `citationsContent`, words and where they came from.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationsContentBlock.html, checked 2026-11-15.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, array, elements, encode, is_array, members, object_of, read_or_none
from thoughtline.formats.media import own_shape
from thoughtline.values.items import Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes


class Piece(Struct, gc=False):
    text: str = ""


class _Location(Struct, gc=False):
    url: str | None = None


class _Citation(Struct, gc=False, rename="camel"):
    title: str | None = None
    source_content: list[Piece] | None = None
    location: dict[str, _Location] | None = None


_decoder = msgspec.json.Decoder(list[_Citation])


def decode_notes(item: Text) -> Notes:
    """The pages that a block's words came from; places in documents of the request have no address."""
    raws = citations_of(item.raw)
    citations = read_or_none(_decoder, Raw(array(raws))) if raws else []
    if citations is None:
        return own_shape("citations")
    found = [(one, (one.location or {}).get("web", _Location()).url) for one in citations]
    pages = [Citation(url, one.title or "", _quote(one), 0, len(item.text)) for one, url in found if url]
    others = dict.fromkeys(f"citations of kind {next(iter(one.location or ()), '')}" for one, url in found if not url)
    return Notes(tuple(pages), tuple(others)) if found else NO_NOTES


def _quote(citation: _Citation) -> str:
    return "".join(piece.text for piece in citation.source_content or ())


def citations_of(raw: Raw) -> list[Raw]:
    """The citations of a block, unread."""
    if b'"citationsContent"' not in bytes(raw):
        return []
    citations = members(members(raw)["citationsContent"]).get("citations", NULL)
    return elements(citations) if is_array(citations) else []


def cited_block(text: str, citations: list[Raw]) -> Raw:
    """The block that words and citations of a stream would have been."""
    content = object_of([("content", encode([{"text": text}])), ("citations", array(citations))])
    return Raw(object_of([("citationsContent", content)]))
