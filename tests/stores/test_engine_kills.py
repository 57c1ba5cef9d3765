"""Engines that are killed under load: every turn is found again, and missing ones are announced in the meantime."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from bench.engine_kills import Engine, kill
from tests.stores.servers import FailingOver, FailingOverPostgres, Postgres, Valkey

KILLS = 2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


ENGINES = {
    "redis": Valkey,
    "redis fails over": FailingOver,
    "postgres": Postgres,
    "postgres fails over": FailingOverPostgres,
}


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
async def test_nothing_is_lost(make: Callable[[], Engine]) -> None:
    """`python -m bench.engine_kills` does the same a hundred times."""
    engine = make()
    try:
        watch = await kill(engine, KILLS, seed=1)
    finally:
        engine.remove()
    assert watch.saved > 0
    assert (watch.lost, watch.unannounced) == (0, 0)
