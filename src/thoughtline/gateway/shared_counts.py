"""What the workers of one start count together: a file in the directory that they share, gone when they are.

That is where the store is of one machine; on a shared one `fleet_counts.py` counts.

A request is a row of a ring as long as the limit: the row to be written over is the request that came so many before,
and if that was less than a minute ago it is one too many. A worker writes how many streams it holds under its own
process number; one that was killed is known by that and no longer counted.

Where the file can't be used, a worker counts for itself, as it would alone.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from thoughtline.gateway.limits import WINDOW_SECONDS, OwnCounts

log = logging.getLogger(__name__)
Result = TypeVar("Result")

FILE = "counts.db"
BUSY_SECONDS = 1.0
"""A neighbour is done in some dozens of microseconds; who would wait longer than this counts for itself."""

_TABLES = """
CREATE TABLE IF NOT EXISTS asked (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    key TEXT NOT NULL, place INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (key, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    key TEXT NOT NULL, worker INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (key, worker)) WITHOUT ROWID;
"""


def make(directory: Path) -> None:
    """The file, before the first worker asks for it."""
    with closing(sqlite3.connect(directory / FILE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_TABLES)


class SharedCounts:
    """One worker's view of the counts of all."""

    def __init__(self, directory: Path, worker: int | None = None) -> None:
        self._path = directory / FILE
        self._worker = os.getpid() if worker is None else worker
        self._own = OwnCounts()
        self._connection: sqlite3.Connection | None = None
        self._is_told = False

    def take(self, key: str, per_minute: int, now: float) -> float:
        wait = self._together(lambda connection: _take(connection, key, per_minute, now))
        return self._own.take(key, per_minute, now) if wait is None else wait

    def begin(self, key: str, most: int) -> bool:
        others = self._together(lambda connection: self._begin(connection, key, most)) or 0
        return self._own.begin(key, most - others)

    def end(self, key: str) -> None:
        self._own.end(key)
        self._together(lambda connection: self._tell(connection, key, self._own.held(key)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _begin(self, connection: sqlite3.Connection, key: str, most: int) -> int:
        """How many streams the others hold. If there is room for one more, all are told that it is ours."""
        held = self._own.held(key)
        others = self._others(connection, key)
        if held + sum(others.values()) >= most:
            others = {worker: count for worker, count in others.items() if is_alive(worker)}
        if held + sum(others.values()) < most:
            self._tell(connection, key, held + 1)
        return sum(others.values())

    def _others(self, connection: sqlite3.Connection, key: str) -> dict[int, int]:
        asked = connection.execute(
            "SELECT worker, held FROM streams WHERE key = ? AND worker != ?", (key, self._worker)
        )
        return dict(asked.fetchall())

    def _tell(self, connection: sqlite3.Connection, key: str, held: int) -> None:
        connection.execute("REPLACE INTO streams VALUES (?, ?, ?)", (key, self._worker, held))

    def _together(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Work on the file while nobody else does; None where it can't be used."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
                self._connection.execute("PRAGMA synchronous = OFF")  # nobody reads it after a power cut
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                return work(self._connection)
        except sqlite3.Error as error:
            if not self._is_told:
                log.warning("workers count each for itself: %s", error)
            self._is_told = True
            return None


def _take(connection: sqlite3.Connection, key: str, per_minute: int, now: float) -> float:
    (count,) = connection.execute("SELECT count FROM asked WHERE key = ?", (key,)).fetchone() or (0,)
    place = count % per_minute
    before = connection.execute("SELECT at FROM requests WHERE key = ? AND place = ?", (key, place)).fetchone()
    if before is not None and before[0] > now - WINDOW_SECONDS:
        return float(before[0] + WINDOW_SECONDS - now)
    connection.execute("REPLACE INTO requests VALUES (?, ?, ?)", (key, place, now))
    connection.execute("REPLACE INTO asked VALUES (?, ?)", (key, count + 1))
    return 0.0


def is_alive(process: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # there, and not ours to ask
    return True
