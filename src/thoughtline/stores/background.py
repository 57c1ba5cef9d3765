"""Something done again and again beside the requests, until it is told to stop; cleaning is that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from thoughtline.stores.settings import StoreSettings
from thoughtline.values.errors import StoreError

log = logging.getLogger(__name__)

EARLY = 20
"""Cleaning comes early when a twentieth of what a store may hold was written: it is not long beyond its cap by more."""


class Periodic:
    """Runs `action` every `seconds()`, or at once when woken. A failure is logged and the next turn tries again."""

    def __init__(self, action: Callable[[], Awaitable[object]], seconds: Callable[[], float]) -> None:
        self._action = action
        self._seconds = seconds
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._is_stopping = False
            self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        self._woken.set()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            # A driver may swallow the cancellation on its way out of a query: the flag ends the loop all the same.
            self._is_stopping = True
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._is_stopping:
            # Not `wait_for`: Python 3.11's loses a cancellation that comes with the result (python/cpython#86296).
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds()):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._action()
            except StoreError as error:
                log.warning("background work of a store failed, and is tried again: %s", str(error))


class Cleaner(Periodic):
    """Cleaning, as often as the settings say, and at once when much was written since the last time that was so.

    `in_turn` is how it is done where nothing hurries, if that is another way.
    """

    def __init__(
        self,
        clean: Callable[[], Awaitable[object]],
        settings: StoreSettings,
        in_turn: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(self._clean, lambda: settings.clean_seconds)
        self._clean_now, self._clean_in_turn = clean, in_turn or clean
        self.room = settings.max_bytes / EARLY
        self.written = 0
        """Bytes since it last hurried: beyond `room` it is to do so again."""
        self._is_early = False

    async def _clean(self) -> None:
        is_early, self._is_early = self._is_early, False
        await (self._clean_now if is_early else self._clean_in_turn)()

    def hurry(self) -> None:
        """Much was written."""
        self.written = 0
        self._is_early = True
        self.wake()
