"""The notes of a text block: `citations`, which refer to its whole text."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, read_or_none
from thoughtline.formats.media import decode_citations, of_all
from thoughtline.values.items import Text, Unknown
from thoughtline.values.notes import NO_NOTES, Notes


class _Wish(Struct, gc=False):
    enabled: bool = False


class _Cited(Struct, gc=False):
    citations: Raw = NULL


_cited_decoder = msgspec.json.Decoder(_Cited)
_wish_decoder = msgspec.json.Decoder(_Wish)


def _citations_of(item: Text | Unknown) -> Raw:
    return _cited_decoder.decode(item.raw).citations if b'"citations"' in bytes(item.raw) else NULL


def decode_notes(item: Text) -> Notes:
    """The pages that a block's text cites; places in documents of the request have no URL."""
    citations = _citations_of(item)
    return of_all(decode_citations(citations, "citations"), item.text) if citations is not NULL else NO_NOTES


def encode_noted(text: str, notes: Notes) -> Text:
    """A text block with the pages it cites."""
    kind = "web_search_result_location"
    citations = [
        {"type": kind, "url": one.url, "title": one.title, "cited_text": one.quote, "encrypted_index": ""}
        for one in notes.citations
    ]
    return Text(text, raw=Raw(encode({"type": "text", "text": text, "citations": citations})))


def wants_citations(item: Unknown) -> bool:
    """Whether a document asks for citations."""
    wish = read_or_none(_wish_decoder, _citations_of(item))
    return wish is not None and wish.enabled
