"""New records in SQLite: appended to one table, and folded into the others by the thread that writes.

    save ─▶ append      on the loop, all saves of one turn of it in one transaction: one or two pages
    arrivals ─▶ fold    in the thread, half a second's worth at once: by itself a record is written to about 14 pages

What is appended is committed: it survives `kill -9`, and every process finds it (docs/decisions/0039).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby, islice, takewhile
from typing import NamedTuple

import msgspec

from thoughtline.stores.base import Saved
from thoughtline.stores.rows import DIGEST, Hit, Row, is_barred, split
from thoughtline.stores.sqlite_work import deletions, save

log = logging.getLogger(__name__)

_APPEND = """INSERT INTO arrivals SELECT
    1 + max(coalesce((SELECT max(seq) FROM arrivals), 0), (SELECT value FROM facts WHERE name = 'folded')), ?, ?"""
"""Numbers go on when the table is empty: who has read up to one need not read it again."""

_NEW = """SELECT f.value, a.seq, a.at, a.rows FROM facts f LEFT JOIN arrivals a ON a.seq > ?
    WHERE f.name = 'folded' ORDER BY a.seq"""

_POINTER = "SELECT 1 FROM lookups WHERE digest = ? LIMIT 1"

ALL = -1
OVERDUE_SECONDS = 60.0

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Row])


class NewRows(NamedTuple):
    """What one call saves."""

    rows: list[Row]
    now: float

    @property
    def size(self) -> int:
        return sum(row.size for row in self.rows)


def append(connection: sqlite3.Connection, rows: list[Row], now: float) -> int:
    """Write some records, and give the number they have now."""
    return connection.execute(_APPEND, (now, _encoder.encode(rows))).lastrowid or 0


def _taken(connection: sqlite3.Connection, lineages: Iterable[bytes]) -> bool:
    """Whether one of them has a record that is in its place."""
    return any(connection.execute(_POINTER, (lineage,)).fetchone() for lineage in lineages)


def fold(connection: sqlite3.Connection, ttl_seconds: float, limit: int = ALL) -> int:
    """What has arrived, to where it belongs; how much. Deletions were asked when it came; later ones fold first."""
    arrived = connection.execute("SELECT seq, at, rows FROM arrivals ORDER BY seq LIMIT ?", (limit,)).fetchall()
    for _, group in groupby(arrived, lambda arrival: int(arrival[1])):
        some = list(group)
        now = max(at for _, at, _ in some)
        save(connection, [row for _, _, data in some for row in _rows(data)], now, now + ttl_seconds)
    if arrived:
        connection.execute("DELETE FROM arrivals WHERE seq <= ?", (arrived[-1][0],))
        connection.execute("UPDATE facts SET value = ? WHERE name = 'folded'", (arrived[-1][0],))
    return len(arrived)


def touch(connection: sqlite3.Connection) -> None:
    """Write a page. The first to write after a checkpoint waits for the disk: that is to be the thread."""
    connection.execute("UPDATE facts SET value = value WHERE name = 'folded'")


def has_arrivals(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM arrivals LIMIT 1").fetchone() is not None


class Arrival(NamedTuple):
    """The records of one transaction, and up to which number others were folded; no more than that if none are new."""

    folded: int
    seq: int | None
    at: float
    rows: bytes


class Arrivals:
    """What this process has read of the table, by the digests it is found by."""

    def __init__(self, ttl_seconds: float) -> None:
        self._ttl_seconds = ttl_seconds
        self._read = 0
        self._by_seq: dict[int, tuple[float, list[Row]]] = {}
        self._by_digest: dict[bytes, dict[bytes, tuple[Row, float]]] = {}

    def read(self, connection: sqlite3.Connection) -> list[Arrival]:
        """What is new, in any thread; `take` it in the loop's. To be read before the tables that arrivals are folded
        into, or what is folded meanwhile is in neither."""
        return [Arrival(*row) for row in connection.execute(_NEW, (self._read,))]

    def take(self, arrivals: list[Arrival]) -> None:
        for folded, seq, at, data in arrivals:
            self._drop_until(folded)
            if seq is not None and seq > self._read:
                self._read = seq
                self._add(seq, at, _rows(data))

    def add(self, seq: int, at: float, rows: list[Row]) -> None:
        """What this process has appended itself, right after all that was there before."""
        self._read = seq
        self._add(seq, at, rows)

    def has(self, digest: bytes) -> bool:
        return digest in self._by_digest

    def are_overdue(self, now: float) -> bool:
        """Whether something has not been folded for long: uses are not written for what is here."""
        return any(now - at > OVERDUE_SECONDS for at, _ in islice(self._by_seq.values(), 1))

    def find(self, digests: Iterable[bytes], now: float) -> dict[bytes, Hit]:
        """By identity."""
        if not self._by_digest:
            return {}
        found: dict[bytes, tuple[Row, float, list[bytes]]] = {}
        for digest in digests:
            for identity, (row, expires_at) in self._by_digest.get(digest, {}).items():
                if expires_at > now:
                    found.setdefault(identity, (row, expires_at, []))[2].append(digest)
        return {identity: Hit(identity, row.data, by, 0, end) for identity, (row, end, by) in found.items()}

    def _add(self, seq: int, at: float, rows: list[Row]) -> None:
        self._by_seq[seq] = (at, rows)
        expires_at = at + self._ttl_seconds
        for row in rows:
            for digest in split(row.digests):
                self._by_digest.setdefault(digest, {})[row.identity] = (row, expires_at)

    def _drop_until(self, folded: int) -> None:
        for seq in list(takewhile(lambda seq: seq <= folded, self._by_seq)):
            for row in self._by_seq.pop(seq)[1]:
                for digest in split(row.digests):
                    sharing = self._by_digest.get(digest, {})
                    sharing.pop(row.identity, None)
                    if not sharing:
                        self._by_digest.pop(digest, None)


class Appender:
    """Appends on the loop, and never waits: neither for a lock nor, by itself, for a disk."""

    def __init__(self, connection: sqlite3.Connection, arrivals: Arrivals, on_append: Callable[[], None]) -> None:
        self._connection = connection
        self._arrivals = arrivals
        self._on_append = on_append
        self._loop = asyncio.get_running_loop()
        self._parts: list[tuple[NewRows, asyncio.Future[Saved | None]]] = []

    async def append(self, part: NewRows) -> Saved | None:
        """What is true when it is committed; none where somebody has the file locked, or it can't be written."""
        done: asyncio.Future[Saved | None] = self._loop.create_future()
        if not self._parts:
            self._loop.call_soon(self._commit)
        self._parts.append((part, done))
        return await done

    def close(self) -> None:
        self._connection.close()

    def _commit(self) -> None:
        parts, self._parts = self._parts, []
        saved = self._transact([part for part, _ in parts])
        for _, done in parts:
            if not done.done():
                done.set_result(saved)
        if saved is not None:
            self._on_append()

    def _transact(self, parts: list[NewRows]) -> Saved | None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._arrivals.take(self._arrivals.read(connection))
            kept, now = self._admitted(parts), max(part.now for part in parts)
            are_first = len(kept) == sum(len(part.rows) for part in parts) and self._are_first(kept)
            seq = append(connection, kept, now) if kept else 0
            connection.execute("COMMIT")
        except Exception:  # the thread does it again, and says what is wrong
            with suppress(sqlite3.Error):
                connection.rollback()
            return None
        if kept:
            self._arrivals.add(seq, now, kept)
        return Saved.FIRST if are_first else Saved.DURABLE

    def _admitted(self, parts: list[NewRows]) -> list[Row]:
        """Those that no deletion bars."""
        now, rows = max(part.now for part in parts), [row for part in parts for row in part.rows]
        marks = deletions(self._connection, min(row.created_at for row in rows), now)
        return [row for row in rows if not is_barred(row, marks, now)]

    def _are_first(self, rows: list[Row]) -> bool:
        """Whether no lineage of theirs has a record yet. Nobody else writes meanwhile."""
        lineages = {row.digests[:DIGEST] for row in rows}
        has = self._arrivals.has
        return len(lineages) == len(rows) and not any(map(has, lineages)) and not _taken(self._connection, lineages)


def _rows(data: bytes) -> list[Row]:
    """Those of one transaction. Bytes that were damaged hold up nothing else."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        log.error("saved turns can't be read any more: %s", error)
        return []
