"""Lists of citations, as far as formats write them alike: pages by their address, and kinds that nobody else has."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import is_given
from thoughtline.formats.media import read_or_none
from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed


class _Page(Struct, gc=False):
    url: str
    title: str | None = None
    content: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class _Citation(Struct, gc=False):
    """One of chat (a page inside), of Responses (the page itself) or of Messages (with what the page says)."""

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
    """The pages of a list. `name` is what the format calls them, for kinds and shapes that only it has."""
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
    """Notes of a format that cites all the words of a block."""
    return Notes(tuple(Citation(one.url, one.title, one.quote, 0, len(text)) for one in notes.citations), notes.others)
