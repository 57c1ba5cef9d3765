"""A loop in a thread of its own, one in each process: stores live there, whoever asks from wherever.

Made when it is first needed, and again in a process that was forked off.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Process:
    """What belongs to this process alone."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loop: asyncio.AbstractEventLoop | None = None


_process = _Process()
_left_behind: list[object] = []
"""What the process had that this one was forked off from. It is not closed here: that would be done to the other's."""


def _begin_anew() -> None:
    global _process
    _left_behind.append(_process)
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def lock() -> threading.RLock:
    """Held while something is made that a process has once."""
    return _process.lock


def leave_behind(thing: object) -> None:
    """Keep what another process made from being closed by this one."""
    _left_behind.append(thing)


def _loop() -> asyncio.AbstractEventLoop:
    process = _process
    if process.loop is None:
        with process.lock:
            if process.loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="thoughtline", daemon=True).start()
                process.loop = loop
    return process.loop


def submit(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Have it done there."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


async def wait_for(done: Future[Result]) -> Result:
    """Its result, for code on a loop of asyncio or trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return await _wait_on_trio(done)
    return await asyncio.wrap_future(done)


async def _wait_on_trio(done: Future[Result]) -> Result:
    trio = sys.modules["trio"]
    token, over = trio.lowlevel.current_trio_token(), trio.Event()
    done.add_done_callback(lambda _: token.run_sync_soon(over.set))
    await over.wait()
    return done.result()
