"""What an answer says about its own words: where they came from.

Formats keep such notes on the words themselves (Messages, Responses) or beside the answer (chat, Gemini). Here
they are one value, by places in the words: of one item, or of all the words of an answer joined.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Citation(Struct, frozen=True, gc=False):
    """A page that words came from. `quote` is what the page says; `start` and `end` are characters of the words, None
    where nobody said which ones."""

    url: str
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None

    def moved(self, by: int) -> Citation:
        """The same in a longer text, of which its own begins there."""
        if self.start is None or self.end is None:
            return self
        return Citation(self.url, self.title, self.quote, self.start + by, self.end + by)

    def is_within(self, start: int, end: int) -> bool:
        """Whether its words stand between these two places."""
        return self.start is not None and self.end is not None and start <= self.start and self.end <= end


class Notes(Struct, frozen=True, gc=False):
    """The notes of an item or of an answer. `others` names notes that only their own format has a word for."""

    citations: tuple[Citation, ...] = ()
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.citations or self.others)

    def moved(self, by: int) -> Notes:
        """The same for a longer text, of which these words are a part that begins there."""
        return Notes(tuple([one.moved(by) for one in self.citations]), self.others) if self.citations else self


NO_NOTES = Notes()


def together(pieces: Iterable[Notes]) -> Notes:
    """All these notes in one; what is said twice of the same words counts once."""
    citations: dict[Citation, None] = {}
    others: dict[str, None] = {}
    for piece in pieces:
        citations |= dict.fromkeys(piece.citations)
        others |= dict.fromkeys(piece.others)
    return Notes(tuple(citations), tuple(others)) if citations or others else NO_NOTES


def placed(start: int | None, end: int | None) -> tuple[int, int] | tuple[None, None]:
    """A place in words, if it is one: hosts that know none write zeros."""
    return (start, end) if start is not None and end is not None and 0 <= start < end else (None, None)
