"""The notes of a chat answer: `annotations`, and the list of URLs that some hosts add."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, is_given, read_or_none
from thoughtline.formats.media import decode_citations, own_shape
from thoughtline.values.notes import Citation, Notes, together

OWN_CITATIONS = own_shape("citations")
_EMPTY = (b"[]", b"null", b"{}")


class _Annotated(Struct, gc=False):
    annotations: Raw = NULL


class _History(Struct, gc=False):
    messages: list[_Annotated] | None = None


_addresses_decoder = msgspec.json.Decoder(list[str])
_history_decoder = msgspec.json.Decoder(_History)


def decode_annotations(raw: Raw) -> Notes:
    """The pages of `annotations`, by position in the content; OpenRouter adds a quote of the page."""
    return decode_citations(raw, "annotations")


def with_addresses(notes: Notes, raw: Raw) -> Notes:
    """These notes, with the missing pages from a list of URLs (xAI, Perplexity); Cohere's list is of its own kind."""
    if not is_given(raw):
        return notes
    addresses = read_or_none(_addresses_decoder, raw)
    if addresses is None:
        return together((notes, OWN_CITATIONS))
    known = {one.url for one in notes.citations}
    return together((notes, Notes(tuple(Citation(url) for url in addresses if url not in known))))


def encode_annotations(citations: tuple[Citation, ...]) -> bytes:
    return encode([{"type": "url_citation", "url_citation": _shaped(one)} for one in citations])


def _shaped(one: Citation) -> dict[str, object]:
    page: dict[str, object] = {"url": one.url, "title": one.title}
    page |= {"start_index": one.start, "end_index": one.end} if one.start is not None else {}
    return page | ({"content": one.quote} if one.quote else {})


def noted_places(body: bytes) -> tuple[str, ...]:
    """The positions of annotations in a history."""
    history = read_or_none(_history_decoder, Raw(body)) if b'"annotations"' in body else None
    messages = (history.messages if history is not None else None) or ()
    noted = [at for at, one in enumerate(messages) if bytes(one.annotations) not in _EMPTY]
    return tuple(f"/messages/{at}/annotations" for at in noted)
