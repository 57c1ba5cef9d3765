"""The notes of a chat answer: `annotations`, and the list of addresses that some hosts put beside it."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, is_given
from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed, together

_EMPTY = (b"[]", b"null", b"{}")
OWN_CITATIONS = "citations in a shape of their own"


class _Page(Struct, gc=False):
    url: str
    title: str | None = None
    content: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class _Annotation(Struct, gc=False):
    type: str = ""
    url_citation: _Page | None = None


class _Annotated(Struct, gc=False):
    annotations: Raw = NULL


class _History(Struct, gc=False):
    messages: list[_Annotated] | None = None


_annotations_decoder = msgspec.json.Decoder(list[_Annotation])
_addresses_decoder = msgspec.json.Decoder(list[str])
_history_decoder = msgspec.json.Decoder(_History)


def decode_notes(annotations: Raw, citations: Raw) -> Notes:
    """The notes of a whole answer. `citations` is a list of addresses (xAI, Perplexity), or a host's own (Cohere)."""
    if annotations is NULL and citations is NULL:
        return NO_NOTES
    return with_addresses(decode_annotations(annotations), citations)


def decode_annotations(raw: Raw) -> Notes:
    """The pages of `annotations`, by their places in the content; OpenRouter adds what the page says."""
    if not is_given(raw):
        return NO_NOTES
    try:
        found = _annotations_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Notes(others=("annotations in a shape of their own",))
    pages = tuple(_typed(one.url_citation) for one in found if one.url_citation is not None)
    others = dict.fromkeys(f"annotations of kind {one.type}" for one in found if one.url_citation is None)
    return Notes(pages, tuple(others))


def _typed(page: _Page) -> Citation:
    return Citation(page.url, page.title or "", page.content or "", *placed(page.start_index, page.end_index))


def with_addresses(told: Notes, raw: Raw) -> Notes:
    """These notes, and the pages of a list of addresses that they don't name."""
    if not is_given(raw):
        return told
    try:
        addresses = _addresses_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return together((told, Notes(others=(OWN_CITATIONS,))))
    known = {one.url for one in told.citations}
    return together((told, Notes(tuple(Citation(url) for url in addresses if url not in known))))


def encode_annotations(citations: tuple[Citation, ...]) -> bytes:
    return encode([{"type": "url_citation", "url_citation": _shaped(one)} for one in citations])


def _shaped(one: Citation) -> dict[str, object]:
    page: dict[str, object] = {"url": one.url, "title": one.title}
    page |= {"start_index": one.start, "end_index": one.end} if one.start is not None else {}
    return page | ({"content": one.quote} if one.quote else {})


def noted_places(body: bytes) -> tuple[str, ...]:
    """Where a history has annotations."""
    if b'"annotations"' not in body:
        return ()
    try:
        told = _history_decoder.decode(body).messages or ()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    return tuple(f"/messages/{at}/annotations" for at, one in enumerate(told) if bytes(one.annotations) not in _EMPTY)
