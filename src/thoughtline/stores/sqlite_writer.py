"""One writer thread: all jobs waiting when it is free go into one transaction, and are acknowledged after the commit.

Each statement releases the interpreter lock and has to get it back from the event loop, so jobs of one kind are done
together: a few statements for all callers instead of a few for each.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from thoughtline.values.errors import StoreDamaged, StoreUnavailable

Result = TypeVar("Result")
Part = TypeVar("Part")
Work: TypeAlias = Callable[[sqlite3.Connection, Sequence[Part]], Iterable[Result]]
"""Runs once for the parts of all callers that wait at the same time; returns a result for each part."""

MAX_BATCH = 512
"""Jobs per commit: enough to make its cost negligible, few enough that none waits long."""

PACE_SECONDS = 0.003
"""If several callers wait at once, more will follow: commits are then this far apart. A single caller never waits."""


class _Job(NamedTuple):
    done: asyncio.Future[Any]
    work: Work[Any, Any]
    part: Any


class SqliteWriter:
    """Runs jobs in the order they were submitted. A batch that fails is rolled back, and fails for all its callers."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="thoughtline-sqlite-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Work[Part, Result], part: Part) -> Result:
        """Return the result of this part, once it is committed."""
        done: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put(_Job(done, work, part))
        return await done

    async def close(self) -> None:
        """Finish waiting jobs, then end the thread."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        not_before = 0.0
        while (job := self._jobs.get()) is not None:
            if (early := not_before - time.monotonic()) > 0:
                time.sleep(early)
            batch = [job]
            with suppress(Empty):
                while len(batch) < MAX_BATCH and (job := self._jobs.get_nowait()) is not None:
                    batch.append(job)
            if job is None:
                self._jobs.put(None)  # jobs submitted before the end come first
            self._commit(batch)
            not_before = time.monotonic() + PACE_SECONDS if len(batch) > 1 else 0.0
        if self._connection is not None:
            self._connection.close()

    def _commit(self, batch: list[_Job]) -> None:
        try:
            settle = partial(_resolve, batch, self._transact(batch))
        except BaseException as error:
            settle = partial(
                _fail, batch, unavailable(error, self._path) if isinstance(error, sqlite3.Error) else error
            )
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)

    def _transact(self, batch: list[_Job]) -> list[object]:
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        try:
            with connection:  # commits, or rolls back
                connection.execute("BEGIN IMMEDIATE")
                return list(_results(connection, batch))
        finally:
            if connection.in_transaction:  # it can't even roll back: the next batch opens a new one
                connection.close()
                self._connection = None


_REMEDIES = {
    sqlite3.SQLITE_FULL: "; free space on its disk",
    sqlite3.SQLITE_READONLY: "; make it writable, or name another with --store",
    sqlite3.SQLITE_CANTOPEN: "; make its folder writable, or name another with --store",
}


def unavailable(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    """Return the error with the path of the file, and the remedy if one is known."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_damaged = code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
    text = f"sqlite: {path}: {error}{_REMEDIES.get(code, '')}"
    return (StoreDamaged if is_damaged else StoreUnavailable)(text)


def _results(connection: sqlite3.Connection, batch: list[_Job]) -> Iterator[object]:
    for work, jobs in groupby(batch, attrgetter("work")):
        yield from work(connection, [job.part for job in jobs])


def _resolve(batch: list[_Job], results: list[object]) -> None:
    for job, result in zip(batch, results, strict=True):
        if not job.done.done():
            job.done.set_result(result)


def _fail(batch: list[_Job], error: BaseException) -> None:
    for job in batch:
        if not job.done.done():
            job.done.set_exception(error)
