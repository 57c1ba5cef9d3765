"""Repeated background work of a store: cleaning, retrying, folding."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from thoughtline.values.errors import StoreError

log = logging.getLogger(__name__)


class Periodic:
    """Runs `action` every `seconds()`, or at once when woken. A failure is logged, and the next run tries again."""

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
            # A driver may swallow the cancellation while it leaves a query: the flag ends the loop in any case.
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
            except Exception as error:  # any error: without a next run, waiting records would never be written
                log.exception("background work of a store failed, and is tried again: %s", type(error).__name__)
