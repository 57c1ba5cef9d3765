"""What was done about a request: notes of turns in a chain that requests share, and counts."""

from __future__ import annotations

import math

import pytest

from thoughtline.values.outcome import Counts, NoteChain, TurnNote, chained, counts_of, replay_words


def test_a_chain_is_all_that_was_put_into_it_in_order() -> None:
    """However it was put in; what shares its beginning stays as it was; and it is never deep."""
    chain: NoteChain | None = None
    before: list[NoteChain] = []
    for at in range(3000):
        chain = chained(chain, (TurnNote(at, "restored" if at % 3 else "missing", "no_record"),))
        assert chain is not None
        before.append(chain)
    assert chained(chain, ()) is chain
    assert [note.at for note in before[-1]] == list(range(3000))
    assert [note.at for note in before[1000]] == list(range(1001))
    assert before[-1].missed == 1000
    depth, link = 0, chain
    while link is not None:
        depth, link = depth + 1, link.before
    assert depth <= math.log2(3000) + 1


def test_a_turn_that_had_no_reasoning_misses_none() -> None:
    chain = chained(None, (TurnNote(0, "blank", "had_none"), TurnNote(1, "blank", "no_record"), TurnNote(2, "kept")))
    assert chain is not None
    assert chain.missed == 1


@pytest.mark.parametrize(
    ("store", "is_unread", "end"),
    [
        ("ok", False, ""),
        ("down", False, ", store=down"),
        ("ok", True, ", unread=1"),
        ("slow", True, ", unread=1, store=slow"),
    ],
)
def test_the_header_says_what_was_done(store: str, is_unread: bool, end: str) -> None:
    """Every count by its name, and how the store is unless it is well."""
    counts = Counts(restored=2, healed=1)
    said = replay_words(counts_of(counts), store, is_unread).decode()
    assert said == f"restored=2, inherited=0, blank=0, stripped=0, missing=0, healed=1, checkpoints=0{end}"
    assert [f"{name}={count}" for name, count in counts.counted.items()] == said.split(", ")[:7]
