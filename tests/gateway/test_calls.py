"""An exchange is short: so many Python functions are called for it, and no more. `bench/calls.py` tells which."""

from __future__ import annotations

import pytest

from bench.calls import counted


def test_a_request_with_nothing_to_restore() -> None:
    """4 kB of chat, answered whole."""
    assert counted(turns=0).total() <= 370


@pytest.mark.parametrize("most", [9])
def test_a_piece_of_a_stream(most: int) -> None:
    """From the upstream to the client, read beside that."""
    assert counted(0, chunks=200).total() - counted(0, chunks=100).total() <= most * 100
