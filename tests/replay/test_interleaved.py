"""The two kinds of errors, over generated conversations that interleave (`interleaved_conversations.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bench.made_up import row
from tests.replay.interleaved_conversations import EDITS_OF_HISTORY, KINDS, NAMINGS, PLAYED, Counts, play
from tests.written_exchanges import SPEAKERS
from thoughtline import Line

KEEP_EVERY_TURN = frozenset(
    {
        *("different frames", "different frames, text only", "different frames, another date each time"),
        *("different end users", "different end users, text only", "different models", "different tools"),
        *("twins, unique ids", "twins, named sessions", "parallel results, unique ids"),
        *("prompt rewritten, unique ids", "prompt rewritten, named sessions", "prompt rewritten, twins, unique ids"),
        *(f"{edit}, unique ids" for edit in EDITS_OF_HISTORY if edit != "clock in the first message"),
        *("sliding window, named sessions", "one turn edited, named sessions", "one turn deleted, named sessions"),
        *(f"unedited{name}, {ids}" for name in NAMINGS for ids in ("counted ids", "text only")),
        *("first message rewritten, unique ids", "first message rewritten, named sessions"),
        *("long, different frames", "long, different end users", "long, twins, unique ids"),
        "long, first message rewritten, unique ids",
        *("no text beside calls, unique ids", "no text beside calls, named sessions"),
    }
)
"""Kinds whose frame, end user, ids or session identify the conversation of a turn."""


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with Line("memory://") as opened:
        yield opened


@pytest.mark.parametrize("name", KINDS)
def test_whose_thought_a_turn_gets(line: Line, name: str, record_property: Callable[[str, object], None]) -> None:
    """Its own or none; and none is lost if the conversation can be identified."""
    kind = KINDS[name]
    number = list(KINDS).index(name)
    counts = play(kind, PLAYED[number % len(PLAYED)], seed=number, line=line)
    record_property("counts", str(counts))
    assert counts.turns > 0
    assert counts.wrong == 0
    assert not counts.equal + counts.misplaced or kind.loses_records
    if name in KEEP_EVERY_TURN:
        assert counts.not_restored == 0


def test_other_results_are_of_another_conversation(line: Line) -> None:
    """Two conversations differ in one result, two turns back; merged turns and lost records leave nothing else to
    tell them apart."""
    assert play(KINDS["mixed 5"], SPEAKERS["openai_chat"], seed=1, line=line).wrong == 0


def test_names_of_kinds() -> None:
    """Every kind that must keep all turns exists."""
    assert set(KINDS) >= KEEP_EVERY_TURN


def test_a_row_of_the_table() -> None:
    """The bench prints counts and the share that was restored."""
    assert row("twins", Counts(200, 1, 50, 150, 2, 3)).split() == ["twins", "200", "1", "2", "3", "50", "150", "75.00%"]
