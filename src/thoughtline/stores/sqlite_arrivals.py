"""New records in SQLite: appended to a file of this process, and folded into the tables by the writer thread.

    save ─▶ append      on the event loop, one statement that is a transaction, in a file that only this process writes
    arrivals ─▶ fold    in the thread, for all processes, many at once: a single record is written to about 14 pages

Appended records are committed: they survive `kill -9`, and every process finds them (docs/decisions/0059). The table
`writers` names the files, and the number up to which each was folded, updated in the transaction that folds it.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import closing, suppress
from itertools import groupby, islice, takewhile
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TypeAlias

import msgspec

from thoughtline.stores.base import Saved
from thoughtline.stores.rows import DIGEST, Hit, Row, split
from thoughtline.stores.sqlite_work import save

log = logging.getLogger(__name__)

APPEND = """INSERT INTO main.arrivals SELECT ?1 + EXISTS (SELECT 1 FROM store.lookups WHERE digest = ?5)
        + 2 * ((SELECT count(*) FROM store.writers) > 1), ?2, ?3
    WHERE NOT EXISTS (SELECT 1 FROM store.deletions WHERE at > ?4 AND at <= ?2)"""
"""Appends only if no deletion can match the new records. SQLite locks `main` before it reads `store`: a process that
notes a deletion and then locks this file sees everything that was appended without knowing of the deletion. The number
has two more meanings: one number is skipped if the lineage has a record in the tables, two if other processes write."""

_NEW = "SELECT seq, at, rows FROM arrivals WHERE seq > ? ORDER BY seq LIMIT ?"
_WRITERS = "SELECT name, folded FROM writers"

ALL = -1
OVERDUE_SECONDS = 60.0

MANY = 1000
"""Saves of this process that are folded at once: each process keeps all unfolded ones in memory, some 3 kB per save."""

MAX_APPENDED = 256 * 2**10
"""Maximum bytes of a save on the event loop: about a millisecond."""

TRIMMED = 100
"""Folded arrivals that one step on the event loop removes from its file: a third of a millisecond."""

MAX_LOG_BYTES = 32 * 2**20
"""Maximum log size of an arrivals file, before the thread runs a checkpoint."""

LOST_SECONDS = 600.0
"""A process without a sign of life for this long is gone, on any machine."""

Appended: TypeAlias = tuple[int, float, bytes]
"""Number, time and records of one transaction."""

Arrival: TypeAlias = tuple[str, int, list[Appended]]
"""A file, the number up to which it was folded, and its new content."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Row])
_made = attrgetter("created_at")


class Files:
    """The arrivals files of a database, open for reading."""

    def __init__(self, database: Path, timeout_seconds: float) -> None:
        self._database = database
        self._timeout_seconds = timeout_seconds
        self._open: dict[str, sqlite3.Connection] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *raised: object) -> None:
        self.keep(())

    def keep(self, names: Collection[str]) -> None:
        """Close all other files."""
        for name in self._open.keys() - names:
            self._open.pop(name).close()

    def new(self, name: str, after: int, limit: int = ALL, *, settled: bool = False) -> list[Appended]:
        """Return what was appended after a number; with `settled`, also an append that is running now. A file that
        can't be read counts as empty: it was just removed, or is damaged, and must not block the others."""
        try:
            connection = self.connection(name)
            if settled:
                connection.execute("BEGIN IMMEDIATE")
            try:
                return connection.execute(_NEW, (after, limit)).fetchall()
            finally:
                if settled:
                    connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if _code(error) == sqlite3.SQLITE_BUSY:
                raise
            self.keep(self._open.keys() - {name})
            if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                log.error("saved turns can't be read any more: %s: %s", name, error)
            return []

    def connection(self, name: str) -> sqlite3.Connection:
        if (connection := self._open.get(name)) is None:
            connection = self._open[name] = connect(self._database.with_name(name), self._timeout_seconds)
        return connection

    def remove(self, name: str, folded: int) -> bool:
        """Remove the file if it is folded completely. A process that still writes to it finds no table."""
        try:
            with self.connection(name) as connection:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("SELECT 1 FROM arrivals WHERE seq > ?", (folded,)).fetchone() is not None:
                    return False
                connection.execute("DROP TABLE arrivals")
        except sqlite3.DatabaseError as error:
            if _code(error) != sqlite3.SQLITE_ERROR and self._database.with_name(name).exists():
                return False
        self.keep(self._open.keys() - {name})
        for end in ("", "-wal", "-shm"):
            self._database.with_name(name + end).unlink(missing_ok=True)
        return True


def _code(error: sqlite3.Error) -> int:
    """Return the primary error code. `SQLITE_ERROR`: the table no longer exists."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def connect(path: Path, timeout_seconds: float) -> sqlite3.Connection:
    """Connect to an existing file."""
    address = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(address, timeout_seconds, uri=True, isolation_level=None, check_same_thread=False)


def fold(
    connection: sqlite3.Connection, files: Files, ttl_seconds: float, limit: int = ALL, *, settled: bool = False
) -> int:
    """Fold arrivals into the tables, up to `limit` of each process. Returns the largest number folded of one process.
    Deletions were checked when they arrived; later deletions fold first."""
    arrived: list[Appended] = []
    most = 0
    for name, folded in connection.execute(_WRITERS).fetchall():
        if new := files.new(name, folded, limit, settled=settled):
            connection.execute("UPDATE writers SET folded = ? WHERE name = ?", (new[-1][0], name))
            arrived += new
            most = max(most, len(new))
    _save(connection, sorted(arrived, key=itemgetter(1)), ttl_seconds)
    return most


def fold_former(connection: sqlite3.Connection, ttl_seconds: float) -> None:
    """Fold what an older version has left, which appended to the database itself."""
    if connection.execute("SELECT 1 FROM arrivals LIMIT 1").fetchone() is None:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        arrived = connection.execute("SELECT seq, at, rows FROM arrivals ORDER BY seq").fetchall()
        _save(connection, arrived, ttl_seconds)
        connection.execute("UPDATE facts SET value = ? WHERE name = 'folded'", (arrived[-1][0],))
        connection.execute("DELETE FROM arrivals")


def _save(connection: sqlite3.Connection, arrived: Iterable[Appended], ttl_seconds: float) -> None:
    for _, group in groupby(arrived, lambda arrival: int(arrival[1])):
        some = list(group)
        now = max(at for _, at, _ in some)
        save(connection, [row for _, _, data in some for row in _rows(data)], now, now + ttl_seconds)


class ArrivalsFile:
    """The file that this process appends to."""

    def __init__(self, database: Path, name: str, *, timeout_seconds: float, cache_kib: int) -> None:
        """Create a file that is already registered. Runs in a thread."""
        self.name = name
        self._path = database.with_name(name)
        self._timeout_seconds = timeout_seconds
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._connection = connection = connect(self._path, timeout_seconds)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = normal")
        connection.execute("CREATE TABLE arrivals (seq INTEGER PRIMARY KEY, at REAL NOT NULL, rows BLOB NOT NULL)")
        connection.execute("ATTACH ? AS store", (str(database),))
        connection.execute(f"PRAGMA store.cache_size = -{cache_kib}")
        # From here on it belongs to the event loop: it waits for no lock, and leaves checkpoints to the thread.
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._numbers: deque[int] = deque()
        self._last = 0

    def append(self, rows: list[Row], data: bytes, now: float) -> tuple[int, bool, bool]:
        """Append rows. Returns the number (0 if a deletion may match them), whether the tables have their lineage, and
        whether other processes write."""
        values = (self._last + 1, now, data, min(map(_made, rows)), rows[0].digests[:DIGEST])
        done = self._connection.execute(APPEND, values)
        if not done.rowcount or done.lastrowid is None:
            return 0, True, True
        skipped = done.lastrowid - self._last - 1
        self._last = done.lastrowid
        self._numbers.append(self._last)
        return self._last, bool(skipped & 1), bool(skipped & 2)

    def __len__(self) -> int:
        """The number of appended transactions in the file."""
        return len(self._numbers)

    def trim(self, folded: int) -> bool:
        """Remove some that are in the tables. Returns whether there are more."""
        numbers = self._numbers
        gone = list(islice(takewhile(lambda number: number <= folded, numbers), TRIMMED))
        if not gone:
            return False
        self._connection.execute("DELETE FROM main.arrivals WHERE seq <= ?", (gone[-1],))
        for _ in gone:
            numbers.popleft()
        return bool(numbers) and numbers[0] <= folded

    def shorten(self) -> None:
        """Shorten the log, in the thread: first without the lock, then what came in the meantime. The next write after
        that waits for the disk, so the thread does it."""
        log_file = self._path.with_name(self.name + "-wal")
        if not log_file.exists() or log_file.stat().st_size < MAX_LOG_BYTES:
            return
        with closing(connect(self._path, self._timeout_seconds)) as connection:
            connection.execute("PRAGMA synchronous = normal")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA user_version = 1")

    def close(self) -> None:
        self._connection.close()


def register(connection: sqlite3.Connection, database: Path, now: float) -> str:
    """Register a new file and return its name."""
    name = f"{database.name}-arrivals-{secrets.token_hex(6)}"
    connection.execute("INSERT INTO writers VALUES (?, 0, ?, ?)", (name, _this_process(), now))
    return name


def lost(connection: sqlite3.Connection, now: float) -> list[str]:
    """Return the files of processes that have ended or given no sign of life for long."""
    rows = connection.execute("SELECT name, process, seen_at FROM writers").fetchall()
    return [name for name, process, seen_at in rows if seen_at < now - LOST_SECONDS or not _lives(process)]


def remove_folded(connection: sqlite3.Connection, files: Files, names: Iterable[str]) -> None:
    """Remove files that no process writes to, once they are folded completely. Runs outside a transaction, because the
    folding must be committed."""
    for name in names:
        row = connection.execute("SELECT folded FROM writers WHERE name = ?", (name,)).fetchone()
        if row is not None and files.remove(name, row[0]):
            connection.execute("DELETE FROM writers WHERE name = ?", (name,))


def _this_process() -> str:
    return f"{os.getpid()}@{_where()}"


def _where() -> str:
    """Return the scope in which process numbers are unique: each container has its own."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}"


def _lives(process: str) -> bool:
    """Whether the process may be alive. Processes on another machine or in another container can't be checked."""
    number, _, where = process.partition("@")
    if where != _where() or sys.platform == "win32":
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Arrivals:
    """All arrivals that this process knows of, by digest."""

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl_seconds = ttl_seconds
        self.own: ArrivalsFile | None = None
        self._folded = 0
        self._read: dict[str, int] = {}
        self._by_number: dict[str, dict[int, tuple[float, list[Row]]]] = {}
        self._by_digest: dict[bytes, dict[bytes, tuple[Row, float]]] = {}

    def __len__(self) -> int:
        """The number of transactions not folded yet."""
        return sum(map(len, self._by_number.values()))

    @property
    def are_new(self) -> bool:
        """Whether everything that this process saved before its latest save is folded."""
        return self.own is not None and len(self._by_number.get(self.own.name, ())) == 1

    @property
    def are_many(self) -> bool:
        """Whether there are enough to fold now."""
        return self.own is not None and len(self.own) >= MANY

    def read(self, connection: sqlite3.Connection, files: Files) -> list[Arrival]:
        """Read what is new, in any thread; `apply` it on the event loop.

        Read it before the tables, or records folded in between are in neither.
        """
        own, writers = self.own.name if self.own is not None else "", connection.execute(_WRITERS).fetchall()
        files.keep([name for name, _ in writers])
        return [
            (name, folded, [] if name == own else files.new(name, max(folded, self._read.get(name, 0))))
            for name, folded in writers
        ]

    def apply(self, arrivals: list[Arrival]) -> None:
        own = self.own.name if self.own is not None else ""
        for gone in self._by_number.keys() - {own, *(name for name, _, _ in arrivals)}:
            self._drop_until(gone, sys.maxsize)
            del self._by_number[gone]
            self._read.pop(gone, None)
        for name, folded, new in arrivals:
            self._drop_until(name, folded)
            if name == own:
                self._folded = folded
            self._read[name] = max(self._read.get(name, 0), folded)
            for number, at, data in new:
                if number > self._read[name]:
                    self._add(name, number, at, _rows(data))

    def append(self, rows: list[Row], now: float, read_others: Callable[[], list[Arrival]]) -> Saved | None:
        """Append records in one statement. Returns None if the thread must save them: there is no file to append to,
        writing fails, a deletion may match them, or they are too large."""
        own, data = self.own, _encoder.encode(rows)
        if own is None or len(data) > MAX_APPENDED:
            return None
        try:
            number, is_known, has_others = own.append(rows, data, now)
        except sqlite3.Error:  # the thread tries again, and reports the error
            return None
        if not number:
            return None
        if has_others:
            with suppress(sqlite3.Error):
                self.apply(read_others())
                has_others = False
        is_first = len(rows) == 1 and not (is_known or has_others or rows[0].digests[:DIGEST] in self._by_digest)
        self._add(own.name, number, now, rows)
        return Saved.FIRST if is_first else Saved.DURABLE

    def trim(self) -> bool:
        """Remove some that are in the tables from our file. Returns whether there are more."""
        try:
            return self.own is not None and self.own.trim(self._folded)
        except sqlite3.Error:
            return False

    def are_overdue(self, now: float) -> bool:
        """Whether something has not been folded for long: uses of arrivals are not written."""
        firsts = (next(iter(one.values()), (now, [])) for one in self._by_number.values())
        return any(now - at > OVERDUE_SECONDS for at, _ in firsts)

    def find(self, digests: Iterable[bytes], now: float) -> dict[bytes, Hit]:
        """Find arrivals by digest; returns them by identity."""
        if not self._by_digest:
            return {}
        found: dict[bytes, Hit] = {}
        for digest in digests:
            for identity, (row, end) in self._by_digest.get(digest, {}).items():
                if end > now:
                    found.setdefault(identity, Hit(identity, row.data, [], 0, end)).digests.append(digest)
        return found

    def _add(self, name: str, number: int, at: float, rows: list[Row]) -> None:
        self._read[name] = number
        self._by_number.setdefault(name, {})[number] = (at, rows)
        expires_at = at + self._ttl_seconds
        for row in rows:
            for start in range(0, len(row.digests), DIGEST):
                sharing = self._by_digest.setdefault(row.digests[start : start + DIGEST], {})
                sharing[row.identity] = (row, expires_at)

    def _drop_until(self, name: str, folded: int) -> None:
        numbers = self._by_number.get(name, {})
        for number in list(takewhile(lambda number: number <= folded, numbers)):
            for row in numbers.pop(number)[1]:
                for digest in split(row.digests):
                    sharing = self._by_digest.get(digest, {})
                    sharing.pop(row.identity, None)
                    if not sharing:
                        self._by_digest.pop(digest, None)


def _rows(data: bytes) -> list[Row]:
    """Decode the rows of one transaction. Damaged bytes must not block the others."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        log.error("saved turns can't be read any more: %s", error)
        return []
