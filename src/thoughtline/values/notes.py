"""What an answer says about its own words: where they came from, and how likely their tokens were.

Formats keep such notes on the words themselves (Messages, Responses) or beside the answer (chat, Gemini, Ollama). Here
they are one value, by places in the words: of one item, or of all the words of an answer joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

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


class Token(Struct, frozen=True, gc=False):
    """A token, its log probability, and the likeliest ones in its place. `data` are its bytes, where they are told."""

    text: str
    logprob: float
    data: tuple[int, ...] | None = None
    top: tuple[Token, ...] = ()

    @property
    def spelled(self) -> bytes:
        """What it is of the words: some are pieces of a character."""
        return bytes(self.data) if self.data is not None else self.text.encode()


class Notes(Struct, frozen=True, gc=False):
    """The notes of an item or of an answer. `others` names notes that only their own format has a word for."""

    citations: tuple[Citation, ...] = ()
    tokens: tuple[Token, ...] = ()
    others: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.citations or self.tokens or self.others)

    def of_words(self, words: str) -> Notes:
        """The same with the tokens of these words alone: local servers list those of thinking and of calls too."""
        if not self.tokens:
            return self
        tokens = run_of(self.tokens, words)
        lost = () if len(tokens) == len(self.tokens) else ("probabilities of tokens that are no words",)
        return Notes(self.citations, tokens, tuple(dict.fromkeys((*self.others, *lost))))

    def moved(self, by: int) -> Notes:
        """The same for a longer text, of which these words are a part that begins there."""
        return Notes(tuple(one.moved(by) for one in self.citations), self.tokens, self.others)


NO_NOTES = Notes()


def together(pieces: Iterable[Notes]) -> Notes:
    """All these notes in one; what is said twice of the same words counts once."""
    found = [piece for piece in pieces if piece]
    if not found:
        return NO_NOTES
    citations = dict.fromkeys(one for piece in found for one in piece.citations)
    others = dict.fromkeys(one for piece in found for one in piece.others)
    return Notes(tuple(citations), tuple(token for piece in found for token in piece.tokens), tuple(others))


def run_of(tokens: tuple[Token, ...], words: str) -> tuple[Token, ...]:
    """The tokens that spell these words; all of them if they can't be told apart."""
    spelled = [token.spelled for token in tokens]
    start = b"".join(spelled).rfind(words.encode())
    if not words or start < 0:
        return tokens if words else ()
    ends = list(accumulate(map(len, spelled), initial=0))
    end = start + len(words.encode())
    return tokens[ends.index(start) : ends.index(end)] if start in ends and end in ends else tokens


def placed(start: int | None, end: int | None) -> tuple[int, int] | tuple[None, None]:
    """A place in words, if it is one: hosts that know none write zeros."""
    return (start, end) if start is not None and end is not None and 0 <= start < end else (None, None)
