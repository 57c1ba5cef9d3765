"""Pictures, files, tool results and citations, as far as formats have them in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, as_text, decode_content, is_given, members, read_or_none
from thoughtline.values.items import Unknown
from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed
from thoughtline.values.options import JsonPart, Media, MediaKind, ResultContent, ResultPart

DecodeMedia = Callable[[Unknown], Media | str | None]
EncodeMedia = Callable[[Media], Unknown | None]


def media_at(kind: MediaKind, url: str, detail: str | None = None) -> Media:
    """Media by URL, which may contain the data (`data:`)."""
    media_type, data = split_data_url(url)
    return Media(kind, url=url, detail=detail) if data is None else Media(kind, media_type, data=data, detail=detail)


def split_data_url(url: str) -> tuple[str, str | None]:
    """Media type and base64 text of a `data:` URL; no text for any other URL."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma or not head.endswith(";base64"):
        return "", None
    return head.removeprefix("data:").removesuffix(";base64").split(";")[0], data


def data_url(media: Media) -> str:
    """The URL of media: their own, or one with their bytes."""
    return media.url if media.url is not None else f"data:{media.media_type};base64,{media.data or ''}"


# --- results of tools -------------------------------------------------------------------------------------------------


def decode_parts(content: Raw, decode_media: DecodeMedia) -> tuple[ResultPart, ...]:
    """A result that is text, or a list of parts of which some are media."""
    parts = decode_content(content)
    if parts is None or isinstance(parts, str):
        return (parts or "",)
    return tuple(_decode_part(raw, decode_media) for raw in parts)


def _decode_part(raw: Raw, decode_media: DecodeMedia) -> ResultPart:
    text = members(raw).get("text", NULL) if bytes(raw)[:1] == b"{" else NULL
    if bytes(text)[:1] == b'"':
        return msgspec.json.decode(text, type=str)
    return decode_media(Unknown("", raw)) or as_text(raw)


class SplitResult(NamedTuple):
    """A result for a format: its text and JSON, one part a line; media that the format can hold, as its JSON; and the
    remaining media.
    """

    text: str
    held: list[Raw]
    rest: tuple[Media, ...]


def split_result(content: ResultContent, encode_media: EncodeMedia) -> SplitResult:
    texts: list[str] = []
    held: list[Raw] = []
    rest: list[Media] = []
    for part in content.parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, JsonPart):
            texts.append(as_text(part.value))
        elif (encoded := encode_media(part)) is not None:
            held.append(encoded.raw)
        else:
            rest.append(part)
    return SplitResult("\n".join(texts), held, tuple(rest))


def no_media(media: Media) -> None:
    """For a format that can't hold media in results."""


def failed(text: str) -> str:
    """The text of a failed tool, for a format without a member for that."""
    return f"Error: {text}"


# --- citations: pages by their URL, and kinds that only one format has ------------------------------------------------


class _Page(Struct, gc=False):
    url: str
    title: str | None = None
    content: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class _Citation(Struct, gc=False):
    """A citation of chat (a page inside), of Responses (the page itself) or of Messages (with a quote)."""

    type: str = ""
    url_citation: _Page | None = None
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start_index: int | None = None
    end_index: int | None = None

    def typed(self) -> Citation | None:
        page = self.url_citation
        if page is not None:
            place = placed(page.start_index, page.end_index)
            return Citation(page.url, page.title or "", page.content or "", *place)
        if not self.url:
            return None
        return Citation(self.url, self.title or "", self.cited_text or "", *placed(self.start_index, self.end_index))


_list_decoder = msgspec.json.Decoder(list[_Citation])


def decode_citations(raw: Raw, name: str) -> Notes:
    """The pages of a list. `name` is the format's name for it, used for kinds and shapes that only this format has."""
    if not is_given(raw):
        return NO_NOTES
    listed = read_or_none(_list_decoder, raw)
    if listed is None:
        return own_shape(name)
    found = [(one, one.typed()) for one in listed]
    others = dict.fromkeys(f"{name} of kind {one.type}" for one, page in found if page is None)
    return Notes(tuple(page for _, page in found if page is not None), tuple(others))


def own_shape(name: str) -> Notes:
    return Notes(others=(f"{name} in a shape of their own",))


def of_all(notes: Notes, text: str) -> Notes:
    """Notes of a format that cites the whole text of a block."""
    return Notes(tuple(Citation(one.url, one.title, one.quote, 0, len(text)) for one in notes.citations), notes.others)
