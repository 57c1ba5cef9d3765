"""The known word that a wrong one looks most like."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """In whatever case it was written; None if none is near."""
    words = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), words, n=1, cutoff=0.5)
    return words[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to write instead: the nearest word, or all there are."""
    known = list(known)
    near = nearest(word, known)
    return f"did you mean {near}?" if near else f"known: {', '.join(known) or 'none'}"
