"""New records in SQLite: appended to one table, and folded into the others by the thread that writes.

    save ─▶ append      on the loop, one statement that is a transaction: one or two pages
    arrivals ─▶ fold    in the thread, half a second's worth at once: by itself a record is written to about 14 pages

What is appended is committed: it survives `kill -9`, and every process finds it (docs/decisions/0039).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from itertools import groupby, islice, takewhile
from operator import attrgetter
from typing import TypeAlias

import msgspec

from thoughtline.stores.base import Saved
from thoughtline.stores.rows import DIGEST, Hit, Row, split
from thoughtline.stores.sqlite_work import save

log = logging.getLogger(__name__)

_APPEND = """INSERT INTO arrivals SELECT ?1 + 1 + EXISTS (SELECT 1 FROM lookups WHERE digest = ?5), ?2, ?3
    WHERE ?1 = max(coalesce((SELECT max(seq) FROM arrivals), 0), (SELECT value FROM facts WHERE name = 'folded'))
    AND NOT EXISTS (SELECT 1 FROM deletions WHERE at > ?4 AND at <= ?2)"""
"""Where we have read all that others appended, and no deletion can mean what is new. Numbers go on when the table is
empty: who has read up to one need not read it again. One is left out where the lineage has a record in its place."""

_NEW = """SELECT f.value, a.seq, a.at, a.rows FROM facts f LEFT JOIN arrivals a ON a.seq > ?
    WHERE f.name = 'folded' ORDER BY a.seq"""

ALL = -1
OVERDUE_SECONDS = 60.0

MAX_APPENDED = 256 * 2**10
"""Bytes of one save that the loop writes: about a millisecond."""

Arrival: TypeAlias = tuple[int, int | None, float, bytes]
"""Up to which number others were folded; the number, time and records of one transaction, if any are new."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Row])
_made = attrgetter("created_at")


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
        return connection.execute(_NEW, (self._read,)).fetchall()

    def take(self, arrivals: list[Arrival]) -> None:
        for folded, seq, at, data in arrivals:
            self._drop_until(folded)
            self._read = max(self._read, folded)
            if seq is not None and seq > self._read:
                self._add(seq, at, _rows(data))

    def append(self, connection: sqlite3.Connection, rows: list[Row], now: float) -> Saved | None:
        """Write some records, in one statement. None where that is the thread's: somebody has the file locked, it can't
        be written, a deletion may mean them, or they are many bytes."""
        data, lineage = _encoder.encode(rows), rows[0].digests[:DIGEST]
        if len(data) > MAX_APPENDED:
            return None
        values = (now, data, min(map(_made, rows)), lineage)
        try:
            done = connection.execute(_APPEND, (self._read, *values))
            if not done.rowcount:  # others have appended
                self.take(self.read(connection))
                done = connection.execute(_APPEND, (self._read, *values))
        except sqlite3.Error:  # the thread does it again, and says what is wrong
            return None
        if not done.rowcount or done.lastrowid is None:
            return None
        seq = done.lastrowid
        is_first = len(rows) == 1 and seq == self._read + 1 and lineage not in self._by_digest
        self._add(seq, now, rows)
        return Saved.FIRST if is_first else Saved.DURABLE

    def are_overdue(self, now: float) -> bool:
        """Whether something has not been folded for long: uses are not written for what is here."""
        return any(now - at > OVERDUE_SECONDS for at, _ in islice(self._by_seq.values(), 1))

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

    def _add(self, seq: int, at: float, rows: list[Row]) -> None:
        self._read = seq
        self._by_seq[seq] = (at, rows)
        expires_at = at + self._ttl_seconds
        for row in rows:
            for start in range(0, len(row.digests), DIGEST):
                sharing = self._by_digest.setdefault(row.digests[start : start + DIGEST], {})
                sharing[row.identity] = (row, expires_at)

    def _drop_until(self, folded: int) -> None:
        for seq in list(takewhile(lambda seq: seq <= folded, self._by_seq)):
            for row in self._by_seq.pop(seq)[1]:
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
