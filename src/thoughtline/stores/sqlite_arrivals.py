"""New records in SQLite: appended to a file of this process alone, and folded into the tables by the writing thread.

    save ─▶ append      on the loop, one statement that is a transaction, in a file where no other process writes
    arrivals ─▶ fold    in the thread, of all processes, many at once: by itself a record is written to about 14 pages

What is appended is committed: it survives `kill -9`, and every process finds it (docs/decisions/0059). The table
`writers` names the files, and says up to which number each was folded, in the transaction that folded it.
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
"""Where no deletion can mean what is new: SQLite locks `main` before it reads `store`, so that whoever notes a deletion
and locks this file then has all that was appended without knowing of it. The number says more: one is left out where
the lineage has a record in the tables, two where others write too."""

_NEW = "SELECT seq, at, rows FROM arrivals WHERE seq > ? ORDER BY seq LIMIT ?"
_WRITERS = "SELECT name, folded FROM writers"

ALL = -1
OVERDUE_SECONDS = 60.0

MANY = 1000
"""Saves of this process that are folded at once: each process holds all that is not folded, some 3 kB a save."""

MAX_APPENDED = 256 * 2**10
"""Bytes of one save that the loop writes: about a millisecond."""

TRIMMED = 100
"""Folded arrivals that the loop takes out of its file in one step: a third of a millisecond."""

MAX_LOG_BYTES = 32 * 2**20
"""Of a file of arrivals, before the thread writes it into the file itself."""

LOST_SECONDS = 600.0
"""A process that has not shown itself for so long is gone, wherever it ran."""

Appended: TypeAlias = tuple[int, float, bytes]
"""The number, time and records of one transaction."""

Arrival: TypeAlias = tuple[str, int, list[Appended]]
"""A file, up to which number it was folded, and what is new in it."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Row])
_made = attrgetter("created_at")


class Files:
    """The files of arrivals beside a database, open for reading."""

    def __init__(self, database: Path, timeout_seconds: float) -> None:
        self._database = database
        self._timeout_seconds = timeout_seconds
        self._open: dict[str, sqlite3.Connection] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *raised: object) -> None:
        self.keep(())

    def keep(self, names: Collection[str]) -> None:
        """Close the others."""
        for name in self._open.keys() - names:
            self._open.pop(name).close()

    def new(self, name: str, after: int, limit: int = ALL, *, settled: bool = False) -> list[Appended]:
        """What was appended after a number; `settled`: with what is being appended in this moment. A file that can't be
        read has nothing new: it was taken away just now, or is damaged, and holds up nothing else."""
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
        """If all that is in it is folded. A process that still writes there finds no table any more."""
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
    """`SQLITE_ERROR`: there is no such table any more."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def connect(path: Path, timeout_seconds: float) -> sqlite3.Connection:
    """A file that is there."""
    address = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(address, timeout_seconds, uri=True, isolation_level=None, check_same_thread=False)


def fold(
    connection: sqlite3.Connection, files: Files, ttl_seconds: float, limit: int = ALL, *, settled: bool = False
) -> int:
    """What has arrived, to where it belongs, so much of each process; how much of one at most. Deletions were asked
    when it came; later ones fold first."""
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
    """What an older version has left: it appended to the database itself."""
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
        """In a thread: a new file, that was registered."""
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
        # From now on it is the loop's: it waits for no lock, and leaves checkpoints to the thread.
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._numbers: deque[int] = deque()
        self._last = 0

    def append(self, rows: list[Row], data: bytes, now: float) -> tuple[int, bool, bool]:
        """The number, 0 where a deletion may mean them; whether the tables have their lineage; whether others write."""
        values = (self._last + 1, now, data, min(map(_made, rows)), rows[0].digests[:DIGEST])
        done = self._connection.execute(APPEND, values)
        if not done.rowcount or done.lastrowid is None:
            return 0, True, True
        skipped = done.lastrowid - self._last - 1
        self._last = done.lastrowid
        self._numbers.append(self._last)
        return self._last, bool(skipped & 1), bool(skipped & 2)

    def __len__(self) -> int:
        """What is in it."""
        return len(self._numbers)

    def trim(self, folded: int) -> bool:
        """Take some out that are in the tables. Whether there are more."""
        numbers = self._numbers
        gone = list(islice(takewhile(lambda number: number <= folded, numbers), TRIMMED))
        if not gone:
            return False
        self._connection.execute("DELETE FROM main.arrivals WHERE seq <= ?", (gone[-1],))
        for _ in gone:
            numbers.popleft()
        return bool(numbers) and numbers[0] <= folded

    def shorten(self) -> None:
        """In the thread, for all of it: first without the lock, then what came meanwhile. The first to write after that
        waits for the disk: the thread does."""
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
    """A new name for a file."""
    name = f"{database.name}-arrivals-{secrets.token_hex(6)}"
    connection.execute("INSERT INTO writers VALUES (?, 0, ?, ?)", (name, _this_process(), now))
    return name


def lost(connection: sqlite3.Connection, now: float) -> list[str]:
    """The files of processes that have ended, or that nothing was heard of for long."""
    rows = connection.execute("SELECT name, process, seen_at FROM writers").fetchall()
    return [name for name, process, seen_at in rows if seen_at < now - LOST_SECONDS or not _lives(process)]


def remove_folded(connection: sqlite3.Connection, files: Files, names: Iterable[str]) -> None:
    """Files that are no longer written to, once all that is in them is folded: outside a transaction, for what is
    folded has to be committed."""
    for name in names:
        row = connection.execute("SELECT folded FROM writers WHERE name = ?", (name,)).fetchone()
        if row is not None and files.remove(name, row[0]):
            connection.execute("DELETE FROM writers WHERE name = ?", (name,))


def _this_process() -> str:
    return f"{os.getpid()}@{_where()}"


def _where() -> str:
    """Where numbers of processes mean the same: a container has its own."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}"


def _lives(process: str) -> bool:
    """Whether it may live: what runs on another machine, or in another container, can't be seen from here."""
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
    """What this process knows of all files, by the digests it is found by."""

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl_seconds = ttl_seconds
        self.own: ArrivalsFile | None = None
        self._folded = 0
        self._read: dict[str, int] = {}
        self._by_number: dict[str, dict[int, tuple[float, list[Row]]]] = {}
        self._by_digest: dict[bytes, dict[bytes, tuple[Row, float]]] = {}

    def __len__(self) -> int:
        """Those that are not folded yet."""
        return sum(map(len, self._by_number.values()))

    @property
    def are_new(self) -> bool:
        """Whether all that this process saved before the latest is folded."""
        return self.own is not None and len(self._by_number.get(self.own.name, ())) == 1

    @property
    def are_many(self) -> bool:
        """Whether they are better folded now than later."""
        return self.own is not None and len(self.own) >= MANY

    def read(self, connection: sqlite3.Connection, files: Files) -> list[Arrival]:
        """What is new, in any thread; `take` it in the loop's. To be read before the tables that arrivals are folded
        into, or what is folded meanwhile is in neither."""
        own, writers = self.own.name if self.own is not None else "", connection.execute(_WRITERS).fetchall()
        files.keep([name for name, _ in writers])
        return [
            (name, folded, [] if name == own else files.new(name, max(folded, self._read.get(name, 0))))
            for name, folded in writers
        ]

    def take(self, arrivals: list[Arrival]) -> None:
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
        """Write some records, in one statement. None where that is the thread's: there is no file to append to, it
        can't be written, a deletion may mean them, or they are many bytes."""
        own, data = self.own, _encoder.encode(rows)
        if own is None or len(data) > MAX_APPENDED:
            return None
        try:
            number, is_known, has_others = own.append(rows, data, now)
        except sqlite3.Error:  # the thread does it, and says what is wrong
            return None
        if not number:
            return None
        if has_others:
            with suppress(sqlite3.Error):
                self.take(read_others())
                has_others = False
        is_first = len(rows) == 1 and not (is_known or has_others or rows[0].digests[:DIGEST] in self._by_digest)
        self._add(own.name, number, now, rows)
        return Saved.FIRST if is_first else Saved.DURABLE

    def trim(self) -> bool:
        """Take some out of our file that are in the tables. Whether there are more."""
        try:
            return self.own is not None and self.own.trim(self._folded)
        except sqlite3.Error:
            return False

    def are_overdue(self, now: float) -> bool:
        """Whether something has not been folded for long: uses are not written for what is here."""
        firsts = (next(iter(one.values()), (now, [])) for one in self._by_number.values())
        return any(now - at > OVERDUE_SECONDS for at, _ in firsts)

    def find(self, digests: Iterable[bytes], now: float) -> dict[bytes, Hit]:
        """By identity."""
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
    """Those of one transaction. Bytes that were damaged hold up nothing else."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        log.error("saved turns can't be read any more: %s", error)
        return []
