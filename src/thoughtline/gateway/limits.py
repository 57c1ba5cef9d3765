"""Limits of a key: requests per minute and open streams.

One process counts in memory. Workers of one start count together, in a file in their shared directory; processes on a
shared store by messages (`fleet_counts.py`).
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

from thoughtline.gateway.client_keys import ClientKey
from thoughtline.values.errors import Declined

WINDOW_SECONDS = 60.0


class LimitCounts(Protocol):
    """Counts requests and streams by key. Times are from a monotonic clock that all counting processes share."""

    def take(self, key: str, per_minute: int, now: float) -> float:
        """Return 0 and count a request if it may go now; otherwise the seconds until one may."""
        ...

    def begin(self, key: str, most: int) -> bool:
        """Whether there is room for one more stream; if so, `end` returns it."""
        ...

    def end(self, key: str) -> None: ...

    def close(self) -> None: ...


class OwnCounts:
    """The counts of one process."""

    def __init__(self) -> None:
        self._rates: dict[str, RateLimit] = {}
        self._streams: dict[str, int] = {}

    def take(self, key: str, per_minute: int, now: float) -> float:
        return self._rates.setdefault(key, RateLimit(per_minute)).take(now)

    def begin(self, key: str, most: int) -> bool:
        if self.held(key) >= most:
            return False
        self._streams[key] = self.held(key) + 1
        return True

    def end(self, key: str) -> None:
        left = self._streams.pop(key) - 1
        if left:
            self._streams[key] = left

    def held(self, key: str) -> int:
        return self._streams.get(key, 0)

    @property
    def held_by_key(self) -> Mapping[str, int]:
        return self._streams

    def close(self) -> None:
        pass


class RateLimit:
    """At most `per_minute` requests in any minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._taken: deque[float] = deque()

    def take(self, now: float) -> float:
        while self._taken and self._taken[0] <= now - WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) < self._per_minute:
            self._taken.append(now)
            return 0.0
        return self._taken[0] + WINDOW_SECONDS - now


class KeyLimits:
    """The limits of all keys."""

    def __init__(self, counts: LimitCounts | None = None) -> None:
        self.counts: LimitCounts = counts or OwnCounts()

    def admit(self, key: ClientKey | None, now: float) -> None:
        """Count a request, or refuse it with the time until it may be repeated."""
        if key is None or key.requests_per_minute is None:
            return
        wait = self.counts.take(key.id, key.requests_per_minute, now)
        if wait:
            raise Declined(
                429,
                "too_many_requests",
                "This key has reached its limit of requests per minute.",
                f"Try again in {math.ceil(wait)} s.",
                wait,
            )

    def begin_stream(self, key: ClientKey | None) -> bool:
        """Whether a stream is counted from now on, which `end_stream` returns. Raises if there is no room for it."""
        if key is None or key.concurrent_streams is None:
            return False
        if not self.counts.begin(key.id, key.concurrent_streams):
            raise Declined(
                429,
                "too_many_streams",
                f"This key has {key.concurrent_streams} streams open, which is its limit.",
                "Wait for one to end.",
                1.0,
            )
        return True

    def end_stream(self, key: ClientKey) -> None:
        self.counts.end(key.id)


# --- counts shared by the workers of one start ------------------------------------------------------------------------
# The file is removed with them. A request is a row of a ring as long as the limit: the row to be overwritten is the
# request from one limit ago, and if that was less than a minute ago, this one is too many. A worker writes the number
# of its streams under its process number, so those of a killed worker are no longer counted. If the file can't be used,
# a worker counts alone.


log = logging.getLogger(__name__)
Result = TypeVar("Result")

FILE = "counts.db"
BUSY_SECONDS = 1.0
"""Another worker is done in some dozens of microseconds; a worker that would wait longer than this counts alone."""

_TABLES = """
CREATE TABLE IF NOT EXISTS asked (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    key TEXT NOT NULL, place INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (key, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    key TEXT NOT NULL, worker INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (key, worker)) WITHOUT ROWID;
"""


def make_counts(directory: Path) -> None:
    """Create the file before the first worker needs it."""
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
        self._has_warned = False

    def take(self, key: str, per_minute: int, now: float) -> float:
        wait = self._together(lambda connection: _take(connection, key, per_minute, now))
        return self._own.take(key, per_minute, now) if wait is None else wait

    def begin(self, key: str, most: int) -> bool:
        others = self._together(lambda connection: self._begin(connection, key, most)) or 0
        return self._own.begin(key, most - others)

    def end(self, key: str) -> None:
        self._own.end(key)
        self._together(lambda connection: self._write(connection, key, self._own.held(key)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _begin(self, connection: sqlite3.Connection, key: str, most: int) -> int:
        """Return how many streams the others hold. If there is room for one more, record it as ours."""
        held = self._own.held(key)
        others = self._others(connection, key)
        if held + sum(others.values()) >= most:
            others = {worker: count for worker, count in others.items() if is_alive(worker)}
        if held + sum(others.values()) < most:
            self._write(connection, key, held + 1)
        return sum(others.values())

    def _others(self, connection: sqlite3.Connection, key: str) -> dict[int, int]:
        cursor = connection.execute(
            "SELECT worker, held FROM streams WHERE key = ? AND worker != ?", (key, self._worker)
        )
        return dict(cursor.fetchall())

    def _write(self, connection: sqlite3.Connection, key: str, held: int) -> None:
        connection.execute("REPLACE INTO streams VALUES (?, ?, ?)", (key, self._worker, held))

    def _together(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Run `work` with exclusive access to the file; None if the file can't be used."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
                self._connection.execute("PRAGMA synchronous = OFF")  # the file is not needed after a power cut
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                return work(self._connection)
        except sqlite3.Error as error:
            if not self._has_warned:
                log.warning("workers count each for itself: %s", error)
            self._has_warned = True
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
    """Whether a process on this machine exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and belongs to another user
    return True
