"""An exchange is short: limits on the Python function calls for it. `bench/calls.py` lists them; 17 are the HTTP
client's own. A body in a second packet costs up to six more."""

from __future__ import annotations

import pytest

from bench.calls import counted, counted_grown, counted_translated


def test_a_request_with_nothing_to_restore() -> None:
    """4 kB of chat, answered whole."""
    assert counted(turns=0).total() <= 300


def test_restored_turns() -> None:
    """Each of twenty that the previous request had restored, too, costs a few more; the first ones most."""
    assert counted(turns=20).total() <= 300 + 20 * 10
    assert counted(turns=40).total() - counted(turns=20).total() <= 20 * 5


def test_a_piece_of_a_stream() -> None:
    """From the upstream to the client, with a copy read."""
    assert counted(turns=0, chunks=200).total() - counted(turns=0, chunks=100).total() <= 9 * 100


@pytest.mark.parametrize(
    ("kind", "most"),
    [("chat", 750), ("cleared", 4200), ("clock", 1800), ("window", 1700), ("edited", 800), ("bare", 1200)],
)
def test_a_conversation_that_grew(kind: str, most: int) -> None:
    """With two hundred turns, one of them new, whatever its client did to the others."""
    assert counted_grown(kind, 200).total() <= most


@pytest.mark.parametrize(("keeps_thinking", "most"), [(False, 1750), (True, 2300)])
def test_a_translated_conversation_that_grew(keeps_thinking: bool, most: int) -> None:
    """Only what is new of it is translated, whether its client has lost the thinking or sends it back."""
    assert counted_translated(200, keeps_thinking=keeps_thinking).total() <= most
