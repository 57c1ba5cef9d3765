"""Operations on the tables of a SQLite database: pointers of deleted records, and sessions in time order."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stores.places import SETTINGS, START, Clock, found, sqlite_url, turn, visible
from thoughtline.stores import Filter, durable_store, sqlite_work
from thoughtline.stores.base import MAX_PER_KEY
from thoughtline.stores.sqlite import SqliteStore

LARGE = 40


class Kept:
    """A store, and a direct view of its database."""

    def __init__(self, store: SqliteStore, clock: Clock, path: Path) -> None:
        self.store = store
        self.clock = clock
        self.database = sqlite3.connect(path, isolation_level=None)

    def rows(self, table: str) -> int:
        (count,) = self.database.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)

    async def save(self, *numbers: int, model: str = "deepseek-v4") -> None:
        for number in numbers:
            await self.store.save([turn(number, model=model, session=f"s{number}", shared=("ok",))])
        await self.store.stats()


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    clock, url = Clock(), sqlite_url(tmp_path)
    store = durable_store(url, SETTINGS, clock)
    assert isinstance(store, SqliteStore)
    await store.open()
    made = Kept(store, clock, Path(url.removeprefix("sqlite:///")))
    yield made
    made.database.close()
    await store.close()


async def test_a_deletion_leaves_pointers_to_a_sweep(kept: Kept) -> None:
    """With few deleted records, no sweep runs; their pointers lead nowhere."""
    await kept.save(*range(LARGE))
    before = kept.rows("lookups")
    kept.clock.advance(1)
    assert await kept.store.delete(Filter(session="s3")) == 1
    await kept.store.clean()
    assert (kept.rows("lookups"), kept.rows("records"), kept.rows("gone")) == (before, LARGE - 1, 1)
    assert (await found(kept.store, 3), len(await found(kept.store, 4))) == ((), 1)


async def test_a_sweep_takes_out_the_pointers_of_what_is_gone(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """In as many parts as needed, and no other pointers."""
    monkeypatch.setattr(sqlite_work, "SWEPT", 7)
    await kept.save(*range(LARGE))
    each = kept.rows("lookups") // LARGE
    kept.clock.advance(1)
    for number in range(0, LARGE, 2):
        await kept.store.delete(Filter(session=f"s{number}"))
    await kept.store.clean()
    assert (kept.rows("lookups"), kept.rows("gone")) == (each * LARGE // 2, 0)
    assert [len(await found(kept.store, number)) for number in range(LARGE)] == [0, 1] * (LARGE // 2)


async def test_what_goes_during_a_sweep_is_left_to_the_next(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if another process begins one before this one ends."""
    monkeypatch.setattr(sqlite_work, "SWEPT", 20)
    await kept.save(*range(LARGE))
    afters: list[bytes | None] = []
    for sweep, first in enumerate((0, 10)):
        kept.clock.advance(1)
        for number in range(first, first + 10):
            await kept.store.delete(Filter(session=f"s{number}"))
        assert sqlite_work.begin_sweep(kept.database, sweep)
        afters.append(b"" if sweep else sqlite_work.sweep_some(kept.database, sweep, b""))
    for sweep, after in enumerate(afters):
        more = after
        while more is not None:
            more = sqlite_work.sweep_some(kept.database, sweep, more)
        assert kept.rows("gone") == (0 if sweep else 20)
    pointers = "SELECT count(*) FROM lookups WHERE record NOT IN (SELECT seq FROM records)"
    (without_record,) = kept.database.execute(f"{pointers} AND record NOT IN (SELECT seq FROM gone)").fetchone()
    assert without_record == 0
    await kept.store.clean()
    assert kept.database.execute(pointers).fetchone() == (0,)


async def test_a_number_is_not_given_to_two_records(kept: Kept) -> None:
    """Pointers of the latest record, which is deleted, do not lead to the next one; nor does a sweep remove the next
    one's."""
    await kept.save(1, 2)
    kept.clock.advance(1)
    await kept.store.delete(Filter(session="s2"))
    kept.clock.advance(1)
    await kept.store.save([turn(3, at=START + 2)])
    await kept.store.stats()
    assert kept.database.execute("SELECT seq FROM records ORDER BY seq").fetchall() == [(1,), (3,)]
    await kept.store.clean()
    assert kept.rows("gone") == 0
    assert [len(await found(kept.store, number)) for number in (1, 2, 3)] == [1, 0, 1]


async def test_what_is_gone_hides_nothing_under_a_shared_key(kept: Kept) -> None:
    """However many newer records of the key were deleted."""
    await kept.save(*range(3 * MAX_PER_KEY))
    await kept.save(*range(100, 100 + MAX_PER_KEY + 1), model="another")
    kept.clock.advance(1)
    assert await kept.store.delete(Filter(model="another")) == MAX_PER_KEY + 1
    records = (await kept.store.find("tenant", [visible("ok")]))[visible("ok")]
    assert {record.model for record in records} == {"deepseek-v4"}
    assert len(records) == MAX_PER_KEY


@pytest.mark.parametrize("tenant", [None, "tenant"])
async def test_the_latest_sessions_are_found_without_going_through_all(kept: Kept, tenant: str | None) -> None:
    """A session with several models counts once, with all its records, at the place of its newest."""
    for number in range(20):
        await kept.store.save([turn(number, at=START + number, session=f"s{number}")])
    await kept.store.save([turn(50, at=START + 50, session="s3", model="another")])
    await kept.store.save([turn(51, at=START + 51, session="", model="another")])
    await kept.store.save([turn(52, at=START + 19, session="a")])
    summaries = await kept.store.sessions(tenant, 3)
    assert [(one.session, one.entries) for one in summaries] == [("s3", 2), ("a", 1), ("s19", 1)]
    if tenant is None:
        (plan,) = kept.database.execute(f"EXPLAIN QUERY PLAN {sqlite_work._LATEST}").fetchall()
        assert "scopes_by_time" in plan[3]
