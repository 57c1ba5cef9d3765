"""Records that a durable store acknowledged shortly before it failed are written again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.stores.places import SETTINGS, found, turn, until_settled
from tests.stores.servers import Valkey
from thoughtline.stores import Filter, LayeredStore, Saved, open_store
from thoughtline.stores.acknowledged import MOST, SECONDS, Acknowledged

QUICK = replace(SETTINGS, timeout_seconds=1.0)


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    """A server that the test may stop."""
    made = Valkey()
    yield made
    made.remove()


async def opened(url: str) -> LayeredStore:
    store = await open_store(url, QUICK, time.time)
    assert isinstance(store, LayeredStore)
    return store


def come_back_empty(server: Valkey) -> None:
    """Come back like a replica that takes over before it received anything."""
    for path in Path(server._folder).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    server.start()


async def test_a_replica_that_takes_over_without_the_latest_turns_gets_them(valkey: Valkey) -> None:
    """They were acknowledged as durable. Another process finds them; those deleted in the meantime stay deleted."""
    here, there = await opened(valkey.url), await opened(valkey.url)
    for number in range(3):
        record = turn(number, session=f"session {number}", at=time.time())
        assert await here.save([record]) is Saved.DURABLE
    await here.delete(Filter(session="session 1"))
    valkey.stop()
    assert await here.save([turn(3, at=time.time())]) is Saved.IN_MEMORY
    come_back_empty(valkey)
    await until_settled(here)
    for store in (there, here):
        assert [bool(await found(store, number)) for number in range(4)] == [True, False, True, True]
    for store in (here, there):
        await store.close()


def test_only_the_latest_are_doubted() -> None:
    """Only those of the last seconds before the failure, up to a limit."""
    kept = Acknowledged()
    kept.add([turn(0)], 0.0)
    kept.add([turn(number) for number in range(1, MOST + 2)], SECONDS / 2)
    assert kept.doubted(1) == []
    kept.doubt(SECONDS + 1)
    assert kept.doubted(2) == [turn(2), turn(3)]
    kept.settle(kept.doubted(MOST))
    assert kept.doubted(1) == []


def test_what_is_old_is_not_doubted() -> None:
    """A failure long after the last save makes no record doubtful."""
    kept = Acknowledged()
    kept.add([turn(0)], 0.0)
    kept.doubt(SECONDS + 1)
    assert kept.doubted(1) == []


def test_what_is_deleted_while_it_is_written_again() -> None:
    """It is removed from the doubtful records, and the rest is settled."""
    kept = Acknowledged()
    kept.add([turn(number, session=f"s{number}") for number in range(3)], 1.0)
    kept.doubt(1.0)
    batch = kept.doubted(3)
    kept.drop_fitting(Filter(session="s1"))
    kept.settle(batch)
    assert kept.doubted(1) == []
