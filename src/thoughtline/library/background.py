"""A loop in a thread of its own, one in each process: stores live there, whoever asks from wherever.

Made when it is first needed, and again in a process that was forked off. Most of what is asked for needs no waiting:
whoever asks then does it in their own thread, in the loop's place.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from thoughtline.library.shared_loop import Result, Running, SharedLoop


class _Process:
    """What belongs to this process alone."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loop: SharedLoop | None = None


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


def _loop() -> SharedLoop:
    process = _process
    with process.lock:
        if process.loop is None:
            process.loop = SharedLoop()
            threading.Thread(target=process.loop.run_forever, name="thoughtline", daemon=True).start()
    return process.loop


def run(work: Coroutine[Any, Any, Result]) -> Running[Result]:
    """Have it done: here, as far as it goes without waiting, unless somebody else is at it; the rest on the loop."""
    return (_process.loop or _loop()).do(work)


def tell(what: Callable[[], None]) -> None:
    """Have something counted there."""
    _loop().call_soon_threadsafe(what)


async def wait_for(done: Running[Result]) -> Result:
    """Its result, for code on a loop of asyncio or trio."""
    if not done.done():
        await is_done(done)
    return done.result()


async def is_done(done: Running[Any], seconds: float | None = None) -> bool:
    """Whether it is, after so long at most."""
    if isinstance(done, Future) and not done.done():
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await _wait_on_trio(done, seconds)
        else:
            await _wait_on_asyncio(done, seconds, loop)
    return done.done()


async def _wait_on_asyncio(done: Future[Any], seconds: float | None, loop: asyncio.AbstractEventLoop) -> None:
    over = asyncio.Event()

    def tell_asyncio(_: object) -> None:
        with suppress(RuntimeError):  # nobody waits any longer, and the loop is closed
            loop.call_soon_threadsafe(over.set)

    done.add_done_callback(tell_asyncio)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await over.wait()


async def _wait_on_trio(done: Future[Any], seconds: float | None) -> None:
    trio = sys.modules["trio"]
    token, over = trio.lowlevel.current_trio_token(), trio.Event()

    def tell_trio(_: object) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(over.set)

    done.add_done_callback(tell_trio)
    with trio.move_on_after(float("inf") if seconds is None else seconds):
        await over.wait()
