"""`sqlite:///path`: one file, for the processes of one machine.

Reads run on the event loop: a warm lookup is cheaper than a thread switch (docs/decisions/0004). So do saves, which
append to a file of this process (`sqlite_arrivals.py`). Work that may wait for a lock or a disk goes through one
thread. Both are acknowledged after the commit. With the write-ahead log, readers and the writer don't wait for each
other.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qs

from msgspec.structs import astuple

from thoughtline.stores import sqlite_work as work
from thoughtline.stores.background import Periodic
from thoughtline.stores.base import (
    MAIN,
    Clock,
    Filter,
    Note,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    decode_cursor,
)
from thoughtline.stores.durable import DurableStore, OpeningRow, PageRow, Uses
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit, Row
from thoughtline.stores.settings import StoreSettings
from thoughtline.stores.sqlite_arrivals import (
    ALL,
    Arrival,
    Arrivals,
    ArrivalsFile,
    Files,
    fold,
    fold_former,
    lost,
    register,
    remove_folded,
)
from thoughtline.stores.sqlite_schema import migrate
from thoughtline.stores.sqlite_writer import SqliteWriter, unavailable
from thoughtline.values.errors import StoreRefused, StoreUnavailable

Result = TypeVar("Result")
Job: TypeAlias = Callable[[sqlite3.Connection], Result]

CACHE_KIB = 16 * 1024
"""Page cache of a connection: holds the upper levels of the lookup tree of some millions of keys."""

CHECKPOINT_PAGES = 8000
"""Pages of the log, 32 MB, before a checkpoint. Keys are digests and fall on pages at random: a longer log collects
more changes per page before it is written."""

SLOW_SECONDS = 0.25
"""Reads that take longer wait for a disk. The next ones leave the event loop, until one is fast again."""

FOLD_SECONDS = 0.5
"""How long records stay in arrivals: long enough to batch them, short enough to keep them few."""


class SqliteStore(DurableStore):
    """A store in a database file. A commit with `synchronous` `normal` survives `kill -9`, with `full` also a power
    cut."""

    STALE_SECONDS = 0.0

    def __init__(self, url: str, settings: StoreSettings, clock: Clock, packer: Packer, name: str = MAIN) -> None:
        super().__init__(settings, clock, packer)
        self._path, self._synchronous = _decode_address(url)
        if name != MAIN:
            self._path = self._path.with_name(f"{self._path.name}.{name}")
        self._here: sqlite3.Connection | None = None
        self._writer: SqliteWriter | None = None
        self._uses = Uses(packer, settings.ttl_seconds)
        self._arrivals = Arrivals(settings.ttl_seconds)
        self._making = asyncio.Lock()
        self._files = self._make_files()
        self._folder = Periodic(self._fold_in_background, lambda: settings.clean_seconds)
        self._folding: asyncio.TimerHandle | None = None
        self._saves = self._is_slow = self._is_slow_to_write = self._fails_to_write = False

    async def open(self) -> None:
        if self._writer is not None:
            return
        await self._in_thread(self._prepare)
        self._here = await self._in_thread(self._connect_here)
        self._writer = SqliteWriter(self._connect, self._path)
        self._cleaner.start()
        self._folder.start()
        self._folder.wake()

    async def close(self) -> None:
        await self._cleaner.stop()
        await self._folder.stop()
        if self._folding is not None:
            self._folding.cancel()
        if (writer := self._writer) is not None:
            with suppress(StoreUnavailable):
                await self._fold()
                await self._flush()
            with suppress(StoreUnavailable):
                await self._leave_own_file()
            self._writer = None
            await writer.close()
        self._files.keep(())
        if self._here is not None:
            self._here.close()
            self._here = None

    async def _save(self, rows: list[Row], now: float) -> Saved:
        began, saved = time.monotonic(), None
        try:
            if self._synchronous == "normal" and not self._is_slow_to_write:
                if not self._saves:
                    self._saves = True
                    with suppress(StoreUnavailable):
                        await self._make_own_file(now)
                saved = self._arrivals.append(rows, now, self._read_arrivals_here)
            if saved is None:
                await self._open_writer().run(self._save_all, (rows, now))
            elif self._arrivals.are_many:
                self._folder.wake()
            elif self._folding is None or self._arrivals.are_new:
                self._fold_later()
            self._fails_to_write = False
            return saved or Saved.DURABLE
        except (StoreUnavailable, asyncio.CancelledError):
            self._fails_to_write = True
            raise
        finally:
            self._is_slow_to_write = time.monotonic() - began > SLOW_SECONDS

    def _fold_later(self) -> None:
        """Fold in a while. The first of several processes to do it folds for all, and the others begin to wait
        again."""
        if self._folding is not None:
            self._folding.cancel()
        seconds = FOLD_SECONDS * random.uniform(1.0, 1.5)
        self._folding = asyncio.get_running_loop().call_later(seconds, self._folder.wake)

    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        self._arrivals.apply(await self._read_quickly(self._read_arrivals))
        if self._arrivals.are_overdue(now):
            await self._fold_now()
        arrived = self._arrivals.find(digests, now)
        hits = await self._read_quickly(lambda connection: work.find(connection, digests, now))
        self._uses.note(hits, now)
        return [*hits, *(arrived[identity] for identity in arrived.keys() - {hit.identity for hit in hits})]

    async def _changes(self, tenant: str) -> int:
        """The changes of all tenants: one count is free, and deletions are rare."""
        return await self._read_quickly(work.changes)

    async def _read_quickly(self, job: Job[Result]) -> Result:
        """Read on the event loop, unless the last read was slow or the whole file is locked: by another program's
        VACUUM, or by a process that reads the log after a crash."""
        began = time.monotonic()
        try:
            result = await self._read_aside(job) if self._is_slow else job(self._open_here())
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise unavailable(error, self._path) from error
            result = await self._read_aside(job)
        self._is_slow = time.monotonic() - began > SLOW_SECONDS
        return result

    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        before, now = decode_cursor(cursor), self._clock()
        await self._fold_now()
        return await self._read_aside(lambda connection: work.page(connection, where, now, before, limit))

    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
        await self._fold_now()
        return await self._read_aside(lambda connection: work.sessions(connection, tenant, limit))

    async def _openings(self, places: list[SessionPlace]) -> list[OpeningRow]:
        await self._fold_now()
        return await self._read_aside(lambda connection: work.openings(connection, places))

    async def _delete(self, where: Filter, now: float) -> int:
        await self._write(lambda connection: self._mark_deleted(connection, where, now))
        newest = await self._write(self._fold_settled)
        return await self._in_steps(lambda connection: work.delete_some(connection, where, newest))

    async def _stats(self) -> Stats:
        await self._fold_now()
        return await self._read_aside(work.stats)

    async def _clean(self, now: float) -> int:
        cap = self._settings.max_bytes
        await self._fold()
        await self._flush()
        gone = await self._in_steps(lambda connection: work.delete_expired(connection, now))
        gone += await self._in_steps(lambda connection: work.delete_beyond(connection, cap))
        await self._sweep()
        await self._write(lambda connection: work.tidy(connection, now))
        return gone

    async def _sweep(self) -> None:
        """Remove the pointers of deleted records, if there are many. Another process may do the same."""
        sweep = secrets.randbits(62)
        if await self._write(lambda connection: work.begin_sweep(connection, sweep)):
            after: bytes | None = b""
            while after is not None:
                after = await self._write(partial(work.sweep_some, sweep=sweep, after=after))

    async def put_note(self, note: Note) -> None:
        await self._write(lambda connection: connection.execute(work.PUT_NOTE, astuple(note)).rowcount)

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        values = (namespace, self._clock())
        rows = await self._read_quickly(lambda connection: connection.execute(work.NOTES, values).fetchall())
        return tuple(Note(*row) for row in rows)

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        return await self._write(lambda connection: connection.execute(work.DELETE_NOTES, (namespace, key)).rowcount)

    def _save_all(self, connection: sqlite3.Connection, parts: Sequence[tuple[list[Row], float]]) -> list[None]:
        """Save the rows of several callers, which came at about the same time and would wait too long on the event
        loop. Earlier arrivals come first, because pages follow the order of saving."""
        self._fold_all(connection)
        now = max(now for _, now in parts)
        rows = [row for rows, _ in parts for row in rows]
        work.save(connection, rows, now, now + self._settings.ttl_seconds)
        return [None for _ in parts]

    def _mark_deleted(self, connection: sqlite3.Connection, where: Filter, now: float) -> None:
        """Note a deletion. It also applies to what has arrived before."""
        self._fold_all(connection)
        work.mark_deleted(connection, where, now)

    def _fold_settled(self, connection: sqlite3.Connection) -> int:
        """Fold appends that were running while a deletion was noted: after this, no process appends without seeing it.
        Returns the number of the newest record that the deletion can match."""
        self._fold_all(connection, settled=True)
        return work.newest(connection)

    def _fold_all(self, connection: sqlite3.Connection, limit: int = ALL, *, settled: bool = False) -> int:
        with self._make_files() as files:
            return fold(connection, files, self._settings.ttl_seconds, limit, settled=settled)

    async def _fold(self) -> None:
        self._folding = None
        self._arrivals.apply(await self._read_quickly(self._read_arrivals))
        if self._arrivals:
            # In steps, so that other processes' writes wait for one step at most.
            while await self._write(lambda connection: self._fold_all(connection, work.STEP)) == work.STEP:
                pass
            self._arrivals.apply(await self._read_quickly(self._read_arrivals))
        while self._arrivals.trim():
            await asyncio.sleep(0)

    async def _fold_in_background(self) -> None:
        await self._fold()
        await self._tend_files()

    async def _tend_files(self) -> None:
        """Keep a file for this process if it saves, and fold and remove files of processes that are gone."""
        now, own = self._clock(), self._arrivals.own
        if own is not None:
            await self._in_thread(own.shorten)
            if not await self._write(lambda connection: connection.execute(work.SEEN, (now, own.name)).rowcount):
                self._arrivals.own = None  # another process took this one for gone
                await self._in_thread(own.close)
        if self._saves and self._arrivals.own is None:
            await self._make_own_file(now)
        if gone := await self._read_quickly(lambda connection: lost(connection, now)):
            await self._remove_files(gone)

    async def _make_own_file(self, now: float) -> None:
        async with self._making:
            if self._arrivals.own is None:
                self._arrivals.own = await self._begin_file(now)

    async def _begin_file(self, now: float) -> ArrivalsFile:
        name = await self._write(lambda connection: register(connection, self._path, now))
        timeout = self._settings.timeout_seconds
        make = partial(ArrivalsFile, self._path, name, timeout_seconds=timeout, cache_kib=CACHE_KIB)
        try:
            return await self._in_thread(make)
        except OSError as error:
            raise StoreUnavailable(f"sqlite: {self._path}: {error.strerror}") from error

    async def _leave_own_file(self) -> None:
        """Remove this process's file at a clean exit: the database has all of its content."""
        own, self._arrivals.own = self._arrivals.own, None
        if own is not None:
            await self._in_thread(own.close)
            await self._remove_files([own.name])

    async def _remove_files(self, names: list[str]) -> None:
        def remove(connection: sqlite3.Connection) -> None:
            with self._make_files() as files:
                remove_folded(connection, files, names)

        await self._read_aside(remove)

    def _make_files(self) -> Files:
        return Files(self._path, self._settings.timeout_seconds)

    def _read_arrivals(self, connection: sqlite3.Connection) -> list[Arrival]:
        if connection is self._here:
            return self._arrivals.read(connection, self._files)
        with self._make_files() as files:
            return self._arrivals.read(connection, files)

    def _read_arrivals_here(self) -> list[Arrival]:
        return self._arrivals.read(self._open_here(), self._files)

    async def _fold_now(self) -> None:
        """Fold before a read of the tables alone. If writing is impossible, the read sees only what the tables have."""
        if not self._fails_to_write:
            try:
                await self._fold()
            except StoreUnavailable:
                self._fails_to_write = True

    async def _flush(self) -> None:
        batch = self._uses.batch()
        expires_at = self._clock() + self._settings.ttl_seconds
        if batch.renewals or batch.repacked:
            await self._write(lambda connection: work.write_uses(connection, batch, expires_at))
            self._uses.settle(batch)

    async def _in_steps(self, step: Job[int]) -> int:
        """Run a long deletion as short transactions, so that saves continue in between."""
        total = 0
        while gone := await self._write(step):
            total += gone
        return total

    async def _write(self, job: Job[Result]) -> Result:
        result = await self._open_writer().run(_do_each, job)
        self._fails_to_write = False
        return result

    async def _read_aside(self, job: Job[Result]) -> Result:
        """Read in a thread, on a separate connection, because it may take long."""

        def read() -> Result:
            with closing(self._connect()) as connection:
                return job(connection)

        self._open_here()
        return await self._in_thread(read)

    def _open_here(self) -> sqlite3.Connection:
        if self._here is None:
            raise StoreUnavailable("sqlite: not open")
        return self._here

    def _open_writer(self) -> SqliteWriter:
        if self._writer is None:
            raise StoreUnavailable("sqlite: not open")
        return self._writer

    def _prepare(self) -> None:
        """Create or open the file, readable by its owner only; migrate it and check its key."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            os.chmod(self._path, 0o600)
            with closing(self._connect()) as connection:
                work.prepare(connection)
                migrate(connection)
                fold_former(connection, self._settings.ttl_seconds)
                work.check_key(connection, self._packer)
        except OSError as error:
            raise StoreUnavailable(
                f"sqlite: {self._path}: {error.strerror}; make it writable, or name another with --store"
            ) from error

    async def _in_thread(self, job: Callable[[], Result]) -> Result:
        try:
            return await asyncio.to_thread(job)
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error

    def _connect_here(self) -> sqlite3.Connection:
        """Connect for the event loop. Opening may take long: after a crash, the log is read first. After that it waits
        for no lock, and leaves checkpoints to the thread."""
        connection = self._connect()
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _connect(self) -> sqlite3.Connection:
        timeout = self._settings.timeout_seconds
        connection = sqlite3.connect(self._path, timeout=timeout, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        return connection


def _do_each(connection: sqlite3.Connection, jobs: Sequence[Job[Result]]) -> Iterator[Result]:
    return (job(connection) for job in jobs)


def _decode_address(url: str) -> tuple[Path, str]:
    """Return the path of the file, and when a commit counts as done."""
    path, _, query = url.removeprefix("sqlite://").partition("?")
    options = parse_qs(query)
    synchronous = options.pop("synchronous", ["normal"])[0]
    if len(path) < 2 or not path.startswith("/") or options or synchronous not in ("normal", "full"):
        raise StoreRefused("a SQLite address is sqlite:///path, or sqlite:///path?synchronous=full")
    return Path(path[1:]).absolute(), synchronous
