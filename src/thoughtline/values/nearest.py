"""The known word that a wrong one looks most like, and the legal value that is nearest to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def nearest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """In whatever case it was written; None if none is near. `cutoff` is how near: 1 is the word itself."""
    words = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), words, n=1, cutoff=cutoff)
    return words[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to write instead: the nearest word, or all there are."""
    known = list(known)
    near = nearest(word, known)
    return f"did you mean {near}?" if near else f"known: {', '.join(known) or 'none'}"


_RANKS = (
    ("none", "off", "disabled", "disable", "no_think", "false"),
    ("minimal", "minimum", "min"),
    ("low", "light", "lite"),
    ("medium", "default", "standard", "normal", "auto", "balanced"),
    ("high", "deep"),
    ("xhigh", "extra_high", "extra-high", "very_high"),
    ("max", "maximum", "ultra"),
)
"""Words for how hard to think, of all makers, from the least to the most."""

_RANK_OF = {word: rank for rank, words in enumerate(_RANKS) for word in words}
_MODEL_DECIDES = ("auto", "default")


def rank_of(word: object) -> int | None:
    """How much a word for an effort asks for: 0 is nothing, 6 the most; None for any other word."""
    if isinstance(word, bool):
        return 3 if word else 0
    return _RANK_OF.get(word.lower()) if isinstance(word, str) else None


def nearest_value(value: Any, legal: Sequence[Any]) -> Any:
    """The legal value that is nearest to one that is not; None if there is none like it.

    Of two that are as near the higher one is taken. What was on is not switched off. A word that is spelled wrong means
    the one that it looks like.
    """
    if isinstance(value, bool) or not legal:
        return None
    if isinstance(value, int | float):
        numbers = [one for one in legal if isinstance(one, int | float) and not isinstance(one, bool)]
        return min(numbers, key=lambda one: (abs(one - value), -one), default=None)
    rank, ranks = rank_of(value), {one: rank_of(one) for one in legal if isinstance(one, str | bool)}
    known = {one: of for one, of in ranks.items() if of is not None and (of > 0 or rank == 0)}
    if rank is not None and known:
        return min(known, key=lambda one: (abs(known[one] - rank), -known[one]))
    words = [one for one in legal if isinstance(one, str)]
    if rank is None and isinstance(value, str) and (meant := nearest(value, words, cutoff=0.75)) is not None:
        return meant
    return next((one for one in legal if one in _MODEL_DECIDES), legal[0] if len(legal) == 1 else None)


def next_word(word: str) -> str:
    """The usual word next to one that a server refuses without naming others: up from the least, down from the most.

    Few models know `minimal`, so what is above nothing is `low`.
    """
    rank = rank_of(word) or 0
    nearby = _RANKS[max(rank + 1, 2) if rank <= 3 else rank - 1][0]
    return nearby.upper() if word.isupper() else nearby
