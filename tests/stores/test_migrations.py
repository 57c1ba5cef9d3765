"""Older layouts are migrated, newer ones refused, and concurrent starts are safe."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from tests.stores.places import SETTINGS, START, Place, found, sqlite_url, turn, wipe
from thoughtline.stores import Filter, Note, durable_store, open_store, postgres_schema, redis, sqlite_schema
from thoughtline.stores.durable import Migration
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import rows_of, split
from thoughtline.values.errors import NewerStore
from thoughtline.values.records import Record

STEPS = [sqlite_schema.MIGRATIONS, postgres_schema.MIGRATIONS, redis.MIGRATIONS]


@pytest.mark.parametrize("migrations", STEPS, ids=["sqlite", "postgres", "redis"])
def test_steps_are_numbered_and_named(migrations: tuple[Migration, ...]) -> None:
    """From one upwards without a gap, each with a unique name."""
    assert [step.number for step in migrations] == list(range(1, len(migrations) + 1))
    assert len({step.name for step in migrations}) == len(migrations)


def _first_sqlite_layout(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    sqlite_schema.migrate(connection, sqlite_schema.MIGRATIONS[:1])
    (row,) = rows_of([record], Packer())
    connection.execute("INSERT INTO scopes (tenant, session, provider, model) VALUES (?, ?, ?, ?)", row.scope)
    connection.execute(
        """INSERT INTO records (identity, scope, created_at, expires_at, chars, size, digests, data)
        VALUES (?, 1, ?, ?, ?, ?, ?, ?)""",
        (row.identity, row.created_at, START + 1000, row.chars, row.size, row.digests, row.data),
    )
    connection.executemany("INSERT INTO lookups VALUES (?, 1)", [(digest,) for digest in split(row.digests)])
    connection.close()


async def _first_postgres_layout(url: str, record: Record) -> None:
    connection = await asyncpg.connect(url)
    await postgres_schema.migrate(connection, postgres_schema.MIGRATIONS[:1])
    (row,) = rows_of([record], Packer())
    scope = await connection.fetchval(
        "INSERT INTO thoughtline.scopes (tenant, session, provider, model) VALUES ($1, $2, $3, $4) RETURNING id",
        *row.scope,
    )
    seq = await connection.fetchval(
        """INSERT INTO thoughtline.records (identity, scope, created_at, expires_at, chars, size, digests, data)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING seq""",
        row.identity, scope, row.created_at, START + 1000, row.chars, row.size, row.digests, row.data,
    )  # fmt: skip  # the columns in one line, as above
    for digest in split(row.digests):
        await connection.execute("INSERT INTO thoughtline.lookups VALUES ($1, $2)", digest, seq)
    await connection.close()


async def _set_layout(place: Place, version: int) -> None:
    if place.url.startswith("sqlite"):
        connection = sqlite3.connect(place.url.removeprefix("sqlite:///"))
        connection.execute("INSERT INTO migrations VALUES (?, 'of the future')", (version,))
        connection.commit()
        connection.close()
    elif place.url.startswith("redis"):
        client = Redis.from_url(place.url.replace("redis-cluster:", "redis:"))
        await client.set(redis.NAMES.layout, version)
        await client.aclose()
    else:
        server = await asyncpg.connect(place.url)
        await server.execute("INSERT INTO thoughtline.migrations VALUES ($1, 'of the future')", version)
        await server.close()


async def test_a_newer_layout_is_refused(shared: Place) -> None:
    """With both versions in the message, and nothing changed."""
    await (await shared.open()).close()
    await _set_layout(shared, 99)
    with pytest.raises(NewerStore, match=r"layout 99.*up to \d"):
        await shared.make().open()
    with pytest.raises(NewerStore):
        await open_store(shared.url, SETTINGS, shared.clock)


async def test_an_older_sqlite_file_is_brought_up_to_date(tmp_path: Path) -> None:
    """In place, without loss."""
    url = sqlite_url(tmp_path)
    _first_sqlite_layout(Path(url.removeprefix("sqlite:///")), turn(1))
    await _check_up_to_date(url)


async def test_an_older_postgres_database_is_brought_up_to_date(postgres_url: str) -> None:
    """In place, without loss."""
    from_empty = await asyncpg.connect(postgres_url)
    await from_empty.execute("DROP SCHEMA IF EXISTS thoughtline CASCADE")
    await from_empty.close()
    await _first_postgres_layout(postgres_url, turn(1))
    await _check_up_to_date(postgres_url)


async def test_a_migration_may_take_longer_than_a_request_may_wait(postgres_url: str) -> None:
    """Other processes that start wait for it: the store's timeout applies only to requests."""
    await wipe(postgres_url)
    settings = replace(SETTINGS, timeout_seconds=2.0)
    other = await asyncpg.connect(postgres_url)
    async with other.transaction():
        await other.execute(f"SELECT pg_advisory_xact_lock({postgres_schema.LOCK + 1})")
        store = durable_store(postgres_url, settings, lambda: START)
        opening = asyncio.create_task(store.open())
        await other.execute("SELECT pg_sleep(2.5)")
        assert not opening.done()
    await other.close()
    await opening
    assert await store.stats()
    await store.close()


async def _check_up_to_date(url: str) -> None:
    store = await open_store(url, SETTINGS, lambda: START)
    assert await found(store, 1) == (turn(1),)
    await store.save([turn(2)])
    before = await store.generation("tenant")
    await store.put_note(Note("learned", "a", b"1", START + 1))
    assert len(await store.notes("learned")) == 1
    assert (await store.stats()).disk_entries == 2
    await store.delete(Filter(call_id="call_1"))
    assert await store.generation("tenant") != before
    await store.close()


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    """All steps are one transaction."""
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    broken = (*sqlite_schema.MIGRATIONS, Migration(7, "broken", ("CREATE TABLE fine (a)", "CREATE NONSENSE")))
    with pytest.raises(sqlite3.OperationalError):
        sqlite_schema.migrate(connection, broken)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    sqlite_schema.migrate(connection)
    connection.close()


OPEN = """
import asyncio, sys
from tests.stores.places import SETTINGS, START, turn
from thoughtline.stores import durable_store
async def main():
    store = durable_store(sys.argv[1], SETTINGS, lambda: START)
    sys.stdin.readline()
    await store.open()
    await store.save([turn(int(sys.argv[2]))])
    await store.close()
asyncio.run(main())
"""


@pytest.mark.parametrize("is_older", [False, True], ids=["new", "older"])
async def test_processes_that_start_at_once(tmp_path: Path, is_older: bool) -> None:
    """Real processes on one file: all of them start, and all of them write."""
    url = sqlite_url(tmp_path)
    if is_older:
        _first_sqlite_layout(Path(url.removeprefix("sqlite:///")), turn(100))
    root = Path(__file__).parents[2]
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, url, str(number)], stdin=subprocess.PIPE, cwd=root)
        for number in range(6)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 6
    store = await open_store(url, SETTINGS, lambda: START)
    assert (await store.stats()).disk_entries == 6 + is_older
    await store.close()
