"""Where work is done that takes long: at once, or in a thread, so that others are served meanwhile.

The interpreter goes from thread to thread every five milliseconds. Few threads are enough, and many would let the loop
wait for its turn: that is why they are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

MOST_THREADS = 2

Result = TypeVar("Result")


class Work(Protocol):
    """Does something and gives its result."""

    async def __call__(self, do: Callable[[], Result]) -> Result: ...


async def at_once(do: Callable[[], Result]) -> Result:
    return do()


class InThreads:
    """Does it in one of few threads, or after those who came before."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_THREADS, "thoughtline-work")

    async def __call__(self, do: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, do)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
