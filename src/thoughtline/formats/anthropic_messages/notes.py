"""The notes of a text block: `citations`, which are about all of its words."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import encode
from thoughtline.values.items import Text, Unknown
from thoughtline.values.notes import NO_NOTES, Citation, Notes


class _Citation(Struct, gc=False):
    type: str = ""
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None


class _Cited(Struct, gc=False):
    citations: list[_Citation] | None = None


class _Wish(Struct, gc=False):
    enabled: bool = False


class _Wishing(Struct, gc=False):
    citations: _Wish | None = None


_cited_decoder = msgspec.json.Decoder(_Cited)
_wishing_decoder = msgspec.json.Decoder(_Wishing)


def decode_notes(item: Text) -> Notes:
    """The pages that a block's words came from; places in documents of the request have no address."""
    if b'"citations"' not in bytes(item.raw):
        return NO_NOTES
    try:
        found = _cited_decoder.decode(item.raw).citations or ()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Notes(others=("citations in a shape of their own",))
    size = len(item.text)
    pages = [Citation(one.url, one.title or "", one.cited_text or "", 0, size) for one in found if one.url]
    others = dict.fromkeys(f"citations of kind {one.type}" for one in found if not one.url)
    return Notes(tuple(pages), tuple(others))


def encode_noted(text: str, notes: Notes) -> Text:
    """A block of words with the pages they came from."""
    told = [
        {
            "type": "web_search_result_location",
            "url": one.url,
            "title": one.title,
            "cited_text": one.quote,
            "encrypted_index": "",
        }
        for one in notes.citations
    ]
    return Text(text, raw=Raw(encode({"type": "text", "text": text, "citations": told})))


def wants_citations(item: Unknown) -> bool:
    """Whether a document asks that words be cited from it."""
    if b'"citations"' not in bytes(item.raw):
        return False
    try:
        wish = _wishing_decoder.decode(item.raw).citations
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return wish is not None and wish.enabled
