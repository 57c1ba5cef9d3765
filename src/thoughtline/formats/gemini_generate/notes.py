"""The notes of a candidate: `groundingMetadata` and `citationMetadata`.

Google counts positions in bytes of a part (https://ai.google.dev/api/generate-content#Segment, checked 2026-11-15); in
a stream, where parts are pieces, in bytes of the whole text. A segment quotes its text, so a position can be checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, is_given, members, object_of
from thoughtline.values.items import Item, Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed, together

_NOTED = ("groundingChunks", "groundingSupports")
_NOTHING = (b"null", b"{}", b"[]")


class _Page(Struct, gc=False):
    uri: str = ""
    title: str | None = None


class _Segment(Struct, gc=False, rename="camel"):
    start_index: int = 0
    end_index: int | None = None
    part_index: int = 0
    text: str | None = None


class _Support(Struct, gc=False, rename="camel"):
    segment: _Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class _Grounding(Struct, gc=False, rename="camel"):
    grounding_chunks: list[dict[str, Raw]] | None = None
    grounding_supports: list[_Support] | None = None


class _Source(Struct, gc=False, rename="camel"):
    uri: str | None = None
    title: str | None = None
    start_index: int = 0
    end_index: int | None = None


class _Sources(Struct, gc=False, rename="camel"):
    citation_sources: list[_Source] | None = None
    citations: list[_Source] | None = None


_grounding_decoder = msgspec.json.Decoder(_Grounding)
_sources_decoder = msgspec.json.Decoder(_Sources)
_page_decoder = msgspec.json.Decoder(_Page)


class Noting(Struct, gc=False, rename="camel"):
    """The members of a candidate that are notes, not decoded."""

    grounding_metadata: Raw = NULL
    citation_metadata: Raw = NULL
    url_context_metadata: Raw = NULL

    @property
    def has_notes(self) -> bool:
        return (
            self.grounding_metadata is not NULL
            or self.citation_metadata is not NULL
            or self.url_context_metadata is not NULL
        )


def decode_notes(noting: Noting, items: Sequence[Item]) -> Notes:
    """The notes of an answer, with positions in its joined text."""
    if not noting.has_notes:
        return NO_NOTES
    found: list[Notes] = []
    try:
        if is_given(noting.grounding_metadata):
            found.append(_decode_grounding(noting.grounding_metadata, items))
        if is_given(noting.citation_metadata):
            found.append(_decode_sources(noting.citation_metadata, items))
    except (msgspec.DecodeError, UnicodeDecodeError):
        found.append(Notes(others=("notes in a shape of their own",)))
    if is_given(noting.url_context_metadata):
        found.append(Notes(others=("urlContextMetadata",)))
    return together(found)


def _decode_grounding(raw: Raw, items: Sequence[Item]) -> Notes:
    grounding = _grounding_decoder.decode(raw)
    chunks, supports = grounding.grounding_chunks or (), grounding.grounding_supports or ()
    pages = [_page_decoder.decode(chunk["web"]) if "web" in chunk else _Page() for chunk in chunks]
    names = [name for name, value in members(raw).items() if name not in _NOTED and bytes(value) not in _NOTHING]
    others = [f"groundingMetadata.{name}" for name in names]
    others += [f"groundingChunks of kind {kind}" for chunk in chunks for kind in chunk if kind != "web"]
    if b'"confidenceScores"' in bytes(raw):
        others.append("groundingSupports' confidenceScores")
    words = _Words(items)
    cited = [
        Citation(pages[at].uri, pages[at].title or "", "", *words.place(support.segment or _Segment()))
        for support in supports
        for at in support.grounding_chunk_indices or ()
        if 0 <= at < len(pages) and pages[at].uri
    ]
    named = {one.url for one in cited}
    cited += [Citation(page.uri, page.title or "") for page in pages if page.uri and page.uri not in named]
    return Notes(tuple(cited), tuple(dict.fromkeys(others)))


def _decode_sources(raw: Raw, items: Sequence[Item]) -> Notes:
    sources = _sources_decoder.decode(raw)
    found = [*(sources.citation_sources or ()), *(sources.citations or ())]
    words = _Words(items)
    cited = [
        Citation(one.uri, one.title or "", "", *words.place(_Segment(one.start_index, one.end_index)))
        for one in found
        if one.uri
    ]
    others = () if len(cited) == len(found) else ("citationMetadata without an address",)
    return Notes(tuple(cited), others)


class _Words:
    """The text of an answer: all parts joined, and the start of each part."""

    def __init__(self, items: Sequence[Item]) -> None:
        texts = {at: item.text.encode() for at, item in enumerate(items) if isinstance(item, Text)}
        self._bases = dict(zip(texts, accumulate(map(len, texts.values()), initial=0), strict=False))
        self._data = b"".join(texts.values())

    def place(self, segment: _Segment) -> tuple[int, int] | tuple[None, None]:
        """The position of a segment in characters of the whole text; none if its quote is not there."""
        if segment.end_index is None:
            return None, None
        for base in (self._bases.get(segment.part_index, 0), 0):
            start, end = base + segment.start_index, base + segment.end_index
            if 0 <= start < end <= len(self._data) and self._is_there(start, end, segment.text):
                return self._characters(start), self._characters(end)
        return self._found(segment.text)

    def _is_there(self, start: int, end: int, text: str | None) -> bool:
        try:
            found = self._data[start:end].decode()
        except UnicodeDecodeError:
            return False
        return text is None or found == text

    def _found(self, text: str | None) -> tuple[int, int] | tuple[None, None]:
        """The position of a text that occurs exactly once."""
        data = (text or "").encode()
        if not data or self._data.count(data) != 1:
            return None, None
        start = self._characters(self._data.index(data))
        return placed(start, start + len(text or ""))

    def _characters(self, place: int) -> int:
        return len(self._data[:place].decode(errors="ignore"))


def encode_notes(notes: Notes, items: Sequence[Item]) -> list[tuple[str, bytes]]:
    """The members of a candidate for these notes. Positions are those in its parts."""
    return [("groundingMetadata", _encode_grounding(notes.citations, items))] if notes.citations else []


def _encode_grounding(citations: tuple[Citation, ...], items: Sequence[Item]) -> bytes:
    titles = {one.url: one.title for one in reversed(citations)}
    urls = list(dict.fromkeys(one.url for one in citations))
    chunks = [{"web": {"uri": url} | ({"title": titles[url]} if titles[url] else {})} for url in urls]
    segments: dict[tuple[int, int], list[int]] = {}
    for one in citations:
        if one.start is not None and one.end is not None:
            segments.setdefault((one.start, one.end), []).append(urls.index(one.url))
    supports = [
        {"segment": segment, "groundingChunkIndices": indices}
        for (start, end), indices in segments.items()
        if (segment := _segment(start, end, items)) is not None
    ]
    return object_of([("groundingChunks", encode(chunks)), ("groundingSupports", encode(supports))])


def _segment(start: int, end: int, items: Sequence[Item]) -> dict[str, object] | None:
    """The part that contains this range, and the range in it; None if it spans several."""
    base = 0
    for at, item in enumerate(items):
        text = item.text if isinstance(item, Text) else ""
        if base <= start and end <= base + len(text):
            before, words = text[: start - base].encode(), text[start - base : end - base]
            part = {"partIndex": at} if at else {}
            place = {"startIndex": len(before), "endIndex": len(before) + len(words.encode())}
            return {**part, **place, "text": words}
        base += len(text)
    return None
