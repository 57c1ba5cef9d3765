"""Notes on the words of an answer, by places in them."""

from __future__ import annotations

import pytest

from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed, together

SEEN = Citation("https://a.example", "A", "warm", 2, 5)
NOWHERE = Citation("https://b.example")


def test_notes_move_with_their_words() -> None:
    """A citation without a place stays without one; other notes have no place."""
    moved = Notes((SEEN, NOWHERE), ("logprobs",)).moved(10)
    assert moved == Notes((Citation("https://a.example", "A", "warm", 12, 15), NOWHERE), ("logprobs",))


@pytest.mark.parametrize(
    ("start", "end", "is_within"), [(2, 5, True), (0, 9, True), (3, 5, False), (2, 4, False), (6, 9, False)]
)
def test_whose_words_are_cited(start: int, end: int, is_within: bool) -> None:
    """All of them are between the two positions."""
    assert SEEN.is_within(start, end) == is_within
    assert not NOWHERE.is_within(start, end)


def test_notes_together() -> None:
    """In order, each once; nothing of nothing."""
    other = Citation("https://a.example", "A", "warm", 7, 9)
    pieces = [Notes((SEEN,), ("a",)), NO_NOTES, Notes((other, SEEN), ("b", "a"))]
    assert together(pieces) == Notes((SEEN, other), ("a", "b"))
    assert together([NO_NOTES]) is NO_NOTES
    assert [bool(notes) for notes in (NO_NOTES, Notes((SEEN,)), Notes(others=("a",)))] == [False, True, True]


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 3), (4, 3), (-1, 3), (None, 3), (3, None)])
def test_a_place_that_is_none(start: int | None, end: int | None) -> None:
    """Hosts that know no place write zeros, and some write worse."""
    assert placed(start, end) == (None, None)
    assert placed(0, 3) == (0, 3)
