"""Engines that stop, full disks, locked files: requests continue, and the store recovers by itself."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, found, lineage, sqlite_url, turn, until_settled
from tests.stores.servers import Postgres, Valkey
from thoughtline.stores import Filter, LayeredStore, Saved, Store, StoreSettings, durable_store, open_store
from thoughtline.values.errors import StoreUnavailable

QUICK = replace(SETTINGS, timeout_seconds=1.0)
NOBODY = 65534


def clock() -> float:
    return START


async def layered(url: str, settings: StoreSettings = QUICK) -> LayeredStore:
    store = await open_store(url, settings, clock)
    assert isinstance(store, LayeredStore)
    return store


async def is_written(url: str, count: int, others: int = 0) -> bool:
    """Whether another process finds all of them, without memory in front, and at most this many others."""
    store = durable_store(url, SETTINGS, clock)
    await store.open()
    answer = await store.find("tenant", [lineage(number) for number in range(count)])
    entries = (await store.stats()).disk_entries
    await store.close()
    return all(answer.values()) and entries == count + others


@pytest.fixture(params=[Valkey, Postgres], ids=["redis", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Valkey | Postgres]:
    """A server that the test may stop."""
    made = request.param()
    yield made
    made.remove()


async def test_a_server_stops_and_starts_under_load(server: Valkey | Postgres) -> None:
    """Every save returns, every find answers, and saves in the meantime are written when the server is back."""
    store = await layered(server.url, SETTINGS)
    outcomes: list[Saved] = []

    async def save_and_find(first: int, last: int) -> None:
        for number in range(first, last):
            outcomes.append(await store.save([turn(number)]))
            assert await found(store, number) == (turn(number),)

    async def stop_and_start(first: int) -> None:
        load = [asyncio.create_task(save_and_find(first + 50 * n, first + 50 * (n + 1))) for n in range(4)]
        await asyncio.to_thread(server.stop)
        await asyncio.gather(*load)
        assert await store.save([turn(first + 200)]) is Saved.IN_MEMORY
        assert await found(store, first) == (turn(first),)
        assert (await store.stats()).waiting > 0
        await asyncio.to_thread(server.start)
        await until_settled(store)

    await save_and_find(0, 10)
    await stop_and_start(10)
    await stop_and_start(211)
    assert outcomes[:10] == [Saved.DURABLE] * 10
    stats = await store.stats()
    assert stats.failures > 0
    assert (stats.waiting, stats.lost, stats.total_entries) == (0, 0, 412)
    assert await store.save([turn(412)]) is Saved.DURABLE
    assert await is_written(server.url, 413)
    await store.close()


async def test_a_server_that_is_not_there_yet(server: Valkey | Postgres) -> None:
    """A start before it is no error; when it comes up, earlier saves are written."""
    url = server.url
    server.stop()
    store = await layered(url, SETTINGS)
    assert await store.save([turn(0)]) is Saved.IN_MEMORY
    assert await found(store, 0) == (turn(0),)
    assert "redis" in str((await store.stats()).last_failure) or "postgres" in str((await store.stats()).last_failure)
    server.start()
    await until_settled(store)
    assert await is_written(url, 1)
    await store.close()


class Cutter:
    """Forwards bytes to a server; on command it cuts a connection in the middle of a query, or stops all traffic."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._server: asyncio.Server | None = None
        self.cuts = 0
        self.flows = asyncio.Event()
        self.flows.set()
        self.port = 0

    @property
    def url(self) -> str:
        path = "" if self._parts.scheme == "redis" else "/postgres"
        name = "" if self._parts.scheme == "redis" else "postgres@"
        return f"{self._parts.scheme}://{name}127.0.0.1:{self.port}{path}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._parts.scheme == "redis":
            return await asyncio.open_connection(self._parts.hostname, self._parts.port)
        folder = parse_qs(self._parts.query)["host"][0]
        return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await self._connect()
        back = asyncio.create_task(self._copy(above, writer))
        while data := await reader.read(65536):
            await self.flows.wait()
            below.write(data)
            if self.cuts > 0:
                self.cuts -= 1
                break
        back.cancel()
        writer.transport.abort()
        below.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)


@asynccontextmanager
async def cutter(url: str) -> AsyncIterator[Cutter]:
    made = Cutter(url)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("engine", ["redis", "postgres"])
async def test_a_connection_cut_in_the_middle(engine: str, request: pytest.FixtureRequest) -> None:
    """Whether or not the server received it: in the end each turn is there once."""
    server = Valkey() if engine == "redis" else Postgres()
    request.addfinalizer(server.remove)
    async with cutter(server.url) as between:
        store = await layered(between.url)
        for number in range(30):
            between.cuts = number % 3
            await store.save([turn(number)])
            between.cuts = number % 3
            assert await found(store, number) == (turn(number),)
        between.cuts = 0
        await until_settled(store)
        assert await is_written(server.url, 30)
        assert (await store.stats()).lost == 0
        await store.close()


@pytest.mark.parametrize("engine", ["redis", "postgres"])
async def test_a_server_that_answers_no_more(engine: str, request: pytest.FixtureRequest) -> None:
    """A find waits for a limited time; then memory answers alone, until the server answers again."""
    server = Valkey() if engine == "redis" else Postgres()
    request.addfinalizer(server.remove)
    elsewhere = await layered(server.url)
    await elsewhere.save([turn(1)])
    await elsewhere.close()
    async with cutter(server.url) as between:
        store = await layered(between.url)
        await store.save([turn(0)])
        between.flows.clear()
        assert await found(store, 1) == ()
        assert "too long" in str((await store.stats()).last_failure) or "Timeout" in str(
            (await store.stats()).last_failure
        )
        failures = (await store.stats()).failures
        for _ in range(1000):
            assert await found(store, 1) == ()
        assert await found(store, 0) == (turn(0),)
        assert await store.save([turn(2)]) is Saved.IN_MEMORY
        between.flows.set()
        await until_settled(store)
        assert await found(store, 1) == (turn(1),)
        assert await is_written(server.url, 3)
        assert failures > 0
        await store.close()


@contextmanager
def quota(bytes_per_file: int) -> Iterator[None]:
    """Limit the size of this process's files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_per_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def fill(store: Store, thought: str, saved: list[int]) -> None:
    """Save until it fails."""
    for number in range(9000, 9100):
        await store.save([turn(number, thought=thought)])
        saved.append(number)


async def test_a_full_disk(tmp_path: Path) -> None:
    """Acknowledged turns are still found, new ones are kept in memory, and written when there is room again."""
    url = sqlite_url(tmp_path)
    store = await layered(url)
    await store.save([turn(0)])
    count = 1
    saved: list[int] = []
    thought = os.urandom(20_000).hex()
    with quota(400_000):
        while await store.save([turn(count, thought=thought)]) is Saved.DURABLE:
            count += 1
        assert await found(store, count) == (turn(count, thought=thought),)
        other = durable_store(url, QUICK, clock)
        await other.open()
        answer = await other.find("tenant", [lineage(number) for number in range(count + 1)])
        assert [bool(records) for records in answer.values()] == [True] * count + [False]
        with pytest.raises(StoreUnavailable):
            await fill(other, thought, saved)
    await until_settled(store)
    assert await is_written(url, count + 1, others=len(saved))
    await other.close()
    await store.close()


async def test_a_locked_database(tmp_path: Path) -> None:
    """Finds and saves continue: a process's own file has a separate lock."""
    url = sqlite_url(tmp_path)
    store = await layered(url)
    await store.save([turn(0)])
    with locked(url):
        assert await store.save([turn(1)]) is Saved.DURABLE
        assert [len(await found(store, number)) for number in range(2)] == [1, 1]
    assert await is_written(url, 2)
    await store.close()


@contextmanager
def locked(*urls: str) -> Iterator[None]:
    """Lock these files, like another process that is writing."""
    with ExitStack() as lockers:
        for url in urls:
            locker = lockers.enter_context(
                closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None))
            )
            locker.execute("BEGIN IMMEDIATE")
        yield


async def test_a_locked_database_and_file(tmp_path: Path) -> None:
    """Finds continue, saves wait in memory, and are written when the lock is released."""
    url = sqlite_url(tmp_path)
    store = await layered(url)
    await store.save([turn(0)])
    (own,) = (str(path)[:-4] for path in (tmp_path / "deep").glob("*-arrivals-*-wal"))
    locks = ExitStack()
    locks.enter_context(locked(url, own))
    assert await store.save([turn(1)]) is Saved.IN_MEMORY
    assert await found(store, 0) == (turn(0),)
    assert await found(store, 1) == (turn(1),)
    assert "locked" in str((await store.stats()).last_failure)
    locks.close()
    await until_settled(store)
    assert await is_written(url, 2)
    await store.close()


RECOVERING = """
import fcntl, sys
with open(sys.argv[1] + "-shm", "r+b", buffering=0) as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 3, 120)
    index.write(bytes(96))
    print("begun", flush=True)
    sys.stdin.read()
"""
"""Locks of a process that reads the log after another one was killed: the index is invalid, and only this process may
write it (SQLite's "WAL-mode File Format", 2.3: the locks for writing and recovering are bytes 120 and 122)."""


async def test_a_log_that_is_read_after_a_crash(tmp_path: Path) -> None:
    """A find waits for that process, but the event loop does not; the same for a store that is opened then."""
    url = sqlite_url(tmp_path)
    store, other = (durable_store(url, SETTINGS, clock) for _ in range(2))
    await store.open()
    await store.save([turn(0)])
    command = [sys.executable, "-c", RECOVERING, url.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        finding, opening = asyncio.create_task(found(store, 0)), asyncio.create_task(other.open())
        await asyncio.sleep(0)
        assert not finding.done()
        process.stdin.close()
        assert await finding == (turn(0),)
        await opening
    assert await found(other, 0) == (turn(0),)
    await store.close()
    await other.close()


@contextmanager
def without_privileges() -> Iterator[Path]:
    """A folder, and for root the rights of another user: file modes do not bind root."""
    folder = Path(tempfile.mkdtemp(prefix="thoughtline-"))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(folder)


async def test_a_read_only_file() -> None:
    """Memory works alone, and reports why; when the file is writable again, everything is written."""
    with without_privileges() as folder:
        path = folder / "thoughts.db"
        url = f"sqlite:///{path}"
        first = await layered(url)
        await first.save([turn(0)])
        await first.close()
        path.chmod(0o400)
        store = await layered(url)
        assert await store.save([turn(1)]) is Saved.IN_MEMORY
        assert await found(store, 1) == (turn(1),)
        assert "Permission denied" in str((await store.stats()).last_failure)
        path.chmod(0o600)
        await until_settled(store)
        assert await is_written(url, 2)
        await store.close()


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Damage is reported and stops nothing; the file is not changed."""
    path = tmp_path / "thoughts.db"
    path.write_bytes(b"not a database at all" * 1000)
    store = await layered(f"sqlite:///{path}")
    assert await store.save([turn(1)]) is Saved.IN_MEMORY
    assert await found(store, 1) == (turn(1),)
    assert "not a database" in str((await store.stats()).last_failure)
    await store.close()
    assert path.read_bytes() == b"not a database at all" * 1000


async def test_a_failed_deletion_is_reported(server: Valkey | Postgres) -> None:
    """Memory deletes at once; the error says that the durable store has not."""
    store = await layered(server.url)
    await store.save([turn(0)])
    server.stop()
    await store.save([turn(1)])
    with pytest.raises(StoreUnavailable):
        await store.delete(Filter())
    assert await found(store, 0) == ()
    assert await found(store, 1) == ()
    server.start()
    await until_settled(store)
    assert await store.delete(Filter()) == 1
    await store.close()
