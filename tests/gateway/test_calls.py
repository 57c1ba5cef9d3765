"""An exchange is short: so many Python functions are called for it, and no more. `bench/calls.py` tells which; 17 are
the HTTP client's own. A body that comes in a second packet costs up to six more."""

from __future__ import annotations

from bench.calls import counted


def test_a_request_with_nothing_to_restore() -> None:
    """4 kB of chat, answered whole."""
    assert counted(turns=0).total() <= 300


def test_restored_turns() -> None:
    """Each of twenty that were restored in the request before, too, costs a few more; the first ones most."""
    assert counted(turns=20).total() <= 300 + 20 * 10
    assert counted(turns=40).total() - counted(turns=20).total() <= 20 * 5


def test_a_piece_of_a_stream() -> None:
    """From the upstream to the client, read beside that."""
    assert counted(turns=0, chunks=200).total() - counted(turns=0, chunks=100).total() <= 9 * 100
