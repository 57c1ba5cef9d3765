"""Saving the turns of an answer: the client's news that a turn is over waits until it is saved, for so long at most."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from msgspec import Struct, field

from thoughtline.watching import log_problem

RECENT_SECONDS = 60.0
"""How long after the last late save the store is still called slow."""


class LateSaves:
    """Those of one process since its start."""

    def __init__(self) -> None:
        self._last_at: float | None = None
        self._saving: set[asyncio.Task[None]] = set()
        self.total = self.under_way = 0

    def begin(self) -> None:
        """A hold has run out before its save was done."""
        self.total += 1
        self.under_way += 1
        self._last_at = time.monotonic()

    def follow(self, saving: asyncio.Task[None]) -> None:
        """One that goes on behind the client's back."""
        self.begin()
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        saving.add_done_callback(lambda _: self.end())

    def end(self) -> None:
        """It is done, well or not."""
        self.under_way -= 1

    @property
    def are_recent(self) -> bool:
        return self._last_at is not None and (self.under_way > 0 or time.monotonic() - self._last_at < RECENT_SECONDS)


class Hold(Struct, frozen=True):
    """How long the end of a turn waits for its record, and who is told when that was not enough.

    `is_brief`: a save is over before anything else could be done.
    """

    seconds: float
    late: LateSaves
    is_brief: bool = False

    async def wait_for(self, save: Coroutine[Any, Any, None]) -> None:
        """Wait for a save, but no longer than that."""
        saving = asyncio.create_task(save)
        await asyncio.wait([saving], timeout=self.seconds)
        if saving.done():
            saving.result()
        else:
            self.late.follow(saving)


class Saving(Struct):
    """The saves of one answer. `note` says of one that failed, `late` how many were not waited for."""

    hold: Hold
    under_way: set[asyncio.Task[None]] = field(default_factory=set)
    held_seconds: float = 0.0
    late: int = 0
    note: str = ""

    async def wait_for(self, save: Coroutine[Any, Any, None]) -> None:
        """Save. What takes too long goes on behind the client's back."""
        if self.hold.is_brief:
            try:
                await save
            except Exception as problem:
                self._note(problem)
            return
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task = loop.create_task(save)
        self.under_way.add(task)
        task.add_done_callback(partial(self._saved, over))
        too_long = loop.call_later(self.hold.seconds, _let_go, over)
        try:
            await over  # a plain future: `asyncio.wait` takes 9 µs where this takes 5
        finally:
            too_long.cancel()
            self.held_seconds += time.perf_counter() - began
        if self.hold.seconds and not task.done():
            self.late += 1
            self.hold.late.follow(task)

    def _saved(self, over: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        self.under_way.discard(task)
        _let_go(over)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self._note(problem)

    def _note(self, problem: BaseException) -> None:
        """A record that could not be made or kept is logged, and is no business of the client's."""
        self.note = f"not remembered: {type(problem).__name__}"
        log_problem("a turn could not be remembered", problem)

    async def settle(self) -> None:
        """Wait for what is still being saved."""
        if self.under_way:
            await asyncio.wait(self.under_way)


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)
