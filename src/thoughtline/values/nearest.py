"""The known word closest to a wrong one, and the legal value closest to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def nearest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Ignores case; None if no word is close enough. `cutoff` is how close: 1 is the word itself."""
    words = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), words, n=1, cutoff=cutoff)
    return words[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to write instead: the nearest word, or all of them."""
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
"""Words for the effort of thinking, of all providers, from least to most."""

_RANK_OF = {word: rank for rank, words in enumerate(_RANKS) for word in words}
_MODEL_DECIDES = ("auto", "default")


def rank_of(word: object) -> int | None:
    """The rank of an effort: 0 is nothing, 6 the most; None for any other word."""
    if isinstance(word, bool):
        return 3 if word else 0
    return _RANK_OF.get(word.lower()) if isinstance(word, str) else None


def nearest_value(value: Any, legal: Sequence[Any]) -> Any:
    """The legal value closest to one that is not legal; None if there is none like it.

    Of two equally close values the higher one is taken. Thinking that was on is not switched off. A misspelled word
    counts as the closest known one.
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
    """The next usual word after one that a server rejects without naming others: up from the least, down from the most.

    Few models know `minimal`, so the next word after nothing is `low`.
    """
    rank = rank_of(word) or 0
    nearby = _RANKS[max(rank + 1, 2) if rank <= 3 else rank - 1][0]
    return nearby.upper() if word.isupper() else nearby
