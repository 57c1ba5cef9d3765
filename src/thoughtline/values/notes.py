"""Notes on an answer's text: its sources.

Formats keep such notes on text items (Messages, Responses) or on the whole answer (chat, Gemini). Here they are one
value, with positions in the text: of one item, or of the whole answer joined.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Citation(Struct, frozen=True, gc=False):
    """A cited page. `quote` is the page's text; `start` and `end` are characters of the answer's text,
    None if unknown.
    """

    url: str
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None

    def moved(self, by: int) -> Citation:
        """The same in a longer text, in which its own begins there."""
        if self.start is None or self.end is None:
            return self
        return Citation(self.url, self.title, self.quote, self.start + by, self.end + by)

    def is_within(self, start: int, end: int) -> bool:
        """Whether its range is between these two positions."""
        return self.start is not None and self.end is not None and start <= self.start and self.end <= end


class Notes(Struct, frozen=True, gc=False):
    """The notes of an item or of an answer. `others` names notes that only their own format can express."""

    citations: tuple[Citation, ...] = ()
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.citations or self.others)

    def moved(self, by: int) -> Notes:
        """The same for a longer text, in which this text begins there."""
        return Notes(tuple([one.moved(by) for one in self.citations]), self.others) if self.citations else self


NO_NOTES = Notes()


def together(pieces: Iterable[Notes]) -> Notes:
    """All these notes in one; duplicates for the same range count once."""
    citations: dict[Citation, None] = {}
    others: dict[str, None] = {}
    for piece in pieces:
        citations |= dict.fromkeys(piece.citations)
        others |= dict.fromkeys(piece.others)
    return Notes(tuple(citations), tuple(others)) if citations or others else NO_NOTES


def placed(start: int | None, end: int | None) -> tuple[int, int] | tuple[None, None]:
    """A range in the text, if it is valid: hosts without positions write zeros."""
    return (start, end) if start is not None and end is not None and 0 <= start < end else (None, None)
