"""A file next to that of the turns, for the processes of one machine. One thread writes, another reads.

The turns' own file is not touched: no lock of it is taken, and its layout stays.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from thoughtline.stores.base import Clock
from thoughtline.stores.durable import Migration
from thoughtline.stores.history.entries import (
    CLEANED_AT_ONCE,
    ENTRY_BYTES,
    MAX_SCANNED_GROUPS,
    SUMMED,
    By,
    Group,
    History,
    HistoryEntry,
    HistorySettings,
    Kept,
    SessionTotals,
    Size,
    Step,
    Sums,
    Where,
    is_forgotten,
    steps_of,
    summed_sessions,
)
from thoughtline.stores.settings import StoreSettings
from thoughtline.stores.sqlite_schema import migrate
from thoughtline.stores.sqlite_writer import unavailable
from thoughtline.values.errors import StoreUnavailable

Result = TypeVar("Result")

BUSY_SECONDS = 10.0
"""How long a write may wait for that of another process."""

SUFFIX = "-history"
_SCANNED = 2000
_SUMS = ", ".join(f"{name} REAL NOT NULL" if name.endswith("_ms") else f"{name} INTEGER NOT NULL" for name in SUMMED)
_TOTALS = ", ".join(f"sum({name})" for name in SUMMED)
_COLUMNS = "at, id, grp, session, data"

MIGRATIONS = (
    Migration(
        1,
        "entries, groups, sums",
        (
            "CREATE TABLE groups (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, names BLOB NOT NULL)",
            """CREATE TABLE entries (at INTEGER NOT NULL, id TEXT NOT NULL, grp INTEGER NOT NULL, session TEXT NOT NULL,
                data BLOB NOT NULL, PRIMARY KEY (at, id)) WITHOUT ROWID""",
            "CREATE INDEX entries_by_group ON entries (grp, at, id)",
            "CREATE INDEX entries_by_id ON entries (id)",
            "CREATE INDEX entries_by_session ON entries (session, at, grp) WHERE session <> ''",
            f"""CREATE TABLE sums (step INTEGER NOT NULL, at INTEGER NOT NULL, grp INTEGER NOT NULL, {_SUMS},
                PRIMARY KEY (step, at, grp)) WITHOUT ROWID""",
            "CREATE TABLE forgotten (digest TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
        ),
    ),
)

_ADD = f"INSERT INTO sums VALUES ({', '.join('?' * (3 + len(SUMMED)))}) ON CONFLICT DO UPDATE SET " + ", ".join(
    f"{name} = {name} + excluded.{name}" for name in SUMMED
)
_PAGE = f"""SELECT {_COLUMNS} FROM entries {{index}} WHERE {{chosen}} at >= ? AND (at, id) < (?, ?)
    ORDER BY at DESC, id DESC LIMIT ?"""
_PLACES = """SELECT at, id FROM entries WHERE grp = ? AND at >= ? AND (at, id) < (?, ?)
    ORDER BY at DESC, id DESC LIMIT ?"""
_ENTRY = f"SELECT {_COLUMNS} FROM entries WHERE at = ? AND id = ?"
_group = msgspec.json.Decoder(Group)


class SqliteHistory(History):
    """`thoughts.db-history` next to `thoughts.db`."""

    def __init__(self, url: str, store: StoreSettings, settings: HistorySettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        file = url.removeprefix("sqlite:///").partition("?")[0]
        self.path = Path(file + SUFFIX).absolute()
        self._writes = ThreadPoolExecutor(1, "thoughtline-history")
        self._reads = ThreadPoolExecutor(1, "thoughtline-history-reads")
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None

    async def open(self) -> None:
        await self._do(self._writes, self._prepare)

    async def close(self) -> None:
        await self._do(self._writes, self._close)
        self._writes.shutdown()
        self._reads.shutdown()

    def _prepare(self) -> None:
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.touch(mode=0o600)
            writer = self._connect()
            writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
            writer.execute("PRAGMA journal_mode = WAL")
            migrate(writer, MIGRATIONS)
            self._writer = writer

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        return connection

    def _close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    async def _do(self, threads: ThreadPoolExecutor, job: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, job)
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error
        except OSError as error:
            raise StoreUnavailable(f"sqlite: {self.path}: {error.strerror}") from error

    async def _read(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        def read() -> Result:
            if self._reader is None:
                self._prepare_reader()
            assert self._reader is not None
            return job(self._reader)

        return await self._do(self._reads, read)

    def _prepare_reader(self) -> None:
        if self._writer is None:
            raise StoreUnavailable(f"sqlite: {self.path}: not open")
        self._reader = self._connect()

    async def _change(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        def change() -> Result:
            self._prepare()
            assert self._writer is not None
            with _transaction(self._writer):
                return job(self._writer)

        return await self._do(self._writes, change)

    async def write(self, entries: Sequence[HistoryEntry]) -> None:
        """In one transaction with the look at who was forgotten."""
        await self._change(lambda connection: _add(connection, entries))

    async def _write(
        self, entries: Sequence[HistoryEntry], groups: Mapping[int, Group], steps: Mapping[Step, Sums]
    ) -> None:
        """`write` does it."""

    async def groups(self) -> dict[int, Group]:
        rows = await self._read(lambda connection: connection.execute("SELECT id, names FROM groups").fetchall())
        return {group: _group.decode(names) for group, names in rows}

    async def find(self, id: str) -> Kept | None:
        statement = f"SELECT {_COLUMNS} FROM entries WHERE id >= ? AND id < ? ORDER BY at DESC LIMIT 1"
        row = await self._read(lambda connection: connection.execute(statement, (id, id + "\U0010ffff")).fetchone())
        return Kept(*row) if row else None

    async def _newest(self, where: Where, limit: int) -> list[Kept]:
        return await self._read(lambda connection: newest(connection, where, limit))

    async def sums(self, step: int, since: int, until: int, groups: frozenset[int] | None, by: By) -> dict[int, Sums]:
        key, chosen = ("at" if by == "time" else "grp"), ""
        values: list[object] = [step, since, until]
        if groups is not None:
            chosen = "AND grp IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(sorted(groups)))
        statement = f"SELECT {key}, {_TOTALS} FROM sums WHERE step = ? AND at >= ? AND at < ? {chosen} GROUP BY {key}"
        rows = await self._read(lambda connection: connection.execute(statement, values).fetchall())
        return {row[0]: Sums(*row[1:]) for row in rows}

    async def sessions(self, since: int, limit: int) -> list[SessionTotals]:
        statement = """SELECT session, grp, min(at), max(at), count(*) FROM entries WHERE session IN
            (SELECT session FROM entries INDEXED BY entries_by_session WHERE session <> '' AND at >= ?
                GROUP BY session ORDER BY max(at) DESC LIMIT ?) AND session <> '' AND at >= ? GROUP BY session, grp"""
        rows = await self._read(lambda connection: connection.execute(statement, (since, limit, since)).fetchall())
        return summed_sessions(rows, limit)

    async def size(self) -> Size:
        return await self._read(_size)

    async def _mark(self, digest: str, at: int) -> None:
        statement = "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"
        await self._change(lambda connection: connection.execute(statement, (digest, at)))

    async def _marks(self) -> Mapping[str, int]:
        return await self._read(lambda connection: dict(connection.execute("SELECT digest, at FROM forgotten")))

    async def _erase(self, tenant: str) -> int:
        """The file is written again without it: what was deleted would still lie in its free pages."""
        gone = await self._change(lambda connection: _delete_groups(connection, tenant))
        await self._do(self._writes, self._scrub)
        return gone

    def _scrub(self) -> None:
        assert self._writer is not None
        self._writer.execute("VACUUM")
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    async def _clean(self, before: int, max_bytes: int) -> int:
        gone = 0
        while some := await self._change(lambda connection: _delete_old(connection, before, max_bytes)):
            gone += some
        if gone:
            await self._change(_delete_empty_groups)
            await self._do(self._writes, self._shrink)
        return gone

    def _shrink(self) -> None:
        assert self._writer is not None
        self._writer.execute("PRAGMA incremental_vacuum").fetchall()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    async def _clean_sums(self, step: int, before: int) -> None:
        statement = "DELETE FROM sums WHERE step = ? AND at < ?"
        await self._change(lambda connection: connection.execute(statement, (step, before)))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commits, or rolls back. The write lock is taken at once, so that nothing has to be done twice."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _add(connection: sqlite3.Connection, entries: Sequence[HistoryEntry]) -> None:
    marks = dict(connection.execute("SELECT digest, at FROM forgotten"))
    entries = [one for one in entries if not is_forgotten(one, marks)]
    ids = {group: group.id for group in {one.group for one in entries}}
    names = [(key, group.tenant, msgspec.json.encode(group)) for group, key in ids.items()]
    rows = [(one.at, one.id, ids[one.group], one.session, one.data) for one in entries]
    sums = [(*step, *astuple(one)) for step, one in steps_of(entries).items()]
    connection.executemany("INSERT OR IGNORE INTO groups VALUES (?, ?, ?)", names)
    connection.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
    connection.executemany(_ADD, sums)


def newest(connection: sqlite3.Connection, where: Where, limit: int) -> list[Kept]:
    """By the index that fits: the session's, that of each group, or all in the order of time."""
    groups = where.groups
    if where.session is None and groups is not None and len(groups) <= MAX_SCANNED_GROUPS:
        found: list[tuple[int, str]] = []
        for one in groups:  # the index alone; the data of those that are left comes then
            found += connection.execute(_PLACES, (one, where.since, *where.end, limit)).fetchall()
        places = sorted(found, reverse=True)[:limit]
        return [Kept(*row) for place in places if (row := connection.execute(_ENTRY, place).fetchone())]
    fitting = (one for one in _scanned(connection, where) if where.fits(one))
    return [one for one, _ in zip(fitting, range(limit), strict=False)]


def _scanned(connection: sqlite3.Connection, where: Where) -> Iterator[Kept]:
    chosen, index, names = "", "", tuple[str, ...]()
    if where.session is not None:
        index = "INDEXED BY entries_by_session"
        chosen, names = "session = ? AND session <> '' AND", (where.session,)
        if where.is_prefix:
            chosen = "session >= ? AND session < ? AND session <> '' AND"
            names = (where.session, where.session + "\U0010ffff")
    statement = _PAGE.format(chosen=chosen, index=index)
    with closing(connection.execute(statement, (*names, where.since, *where.end, -1))) as rows:
        while some := rows.fetchmany(_SCANNED):
            yield from (Kept(*row) for row in some)


def _size(connection: sqlite3.Connection) -> Size:
    (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    oldest = connection.execute("SELECT at FROM entries ORDER BY at LIMIT 1").fetchone()
    return Size(count, _bytes(connection), oldest[0] if oldest else None)


def _bytes(connection: sqlite3.Connection) -> int:
    pragmas = ("page_count", "freelist_count", "page_size")
    pages, free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
    return int((pages - free) * page)


def _delete_groups(connection: sqlite3.Connection, tenant: str) -> int:
    chosen = "IN (SELECT id FROM groups WHERE tenant = ?)"
    gone = connection.execute(f"DELETE FROM entries WHERE grp {chosen}", (tenant,)).rowcount
    connection.execute(f"DELETE FROM sums WHERE grp {chosen}", (tenant,))
    connection.execute("DELETE FROM groups WHERE tenant = ?", (tenant,))
    return gone


def _delete_old(connection: sqlite3.Connection, before: int, max_bytes: int) -> int:
    """Some of the oldest: those that are too old, or as many as the file is too large by."""
    too_much = (_bytes(connection) - max_bytes) // ENTRY_BYTES
    number = min(CLEANED_AT_ONCE, max(too_much // 4, 1)) if too_much > 0 else 0
    old = "SELECT at, id FROM entries WHERE at < ? ORDER BY at, id LIMIT ?"
    rows = connection.execute(old, (2**62 if number else before, number or CLEANED_AT_ONCE)).fetchall()
    connection.executemany("DELETE FROM entries WHERE at = ? AND id = ?", rows)
    return len(rows)


def _delete_empty_groups(connection: sqlite3.Connection) -> None:
    connection.execute(
        """DELETE FROM groups WHERE NOT EXISTS (SELECT 1 FROM entries WHERE grp = groups.id)
            AND id NOT IN (SELECT DISTINCT grp FROM sums)"""
    )
