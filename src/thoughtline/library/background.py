"""An event loop in a background thread, one per process. Stores live on it, and any thread can use them.

It is started on first use, and again in a forked process. Most calls need no waiting: the calling thread then runs them
itself, in the loop's place.
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
    """State of this process only."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loop: SharedLoop | None = None


_process = _Process()
_left_behind: list[object] = []
"""Objects of the parent process. Closing them here would close the parent's."""


def _begin_anew() -> None:
    global _process
    _left_behind.append(_process)
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def lock() -> threading.RLock:
    """Return the lock for making something that a process has once."""
    return _process.lock


def leave_behind(thing: object) -> None:
    """Keep a reference to what another process made, so that this one does not close it."""
    _left_behind.append(thing)


def _loop() -> SharedLoop:
    process = _process
    with process.lock:
        if process.loop is None:
            process.loop = SharedLoop()
            threading.Thread(target=process.loop.run_forever, name="thoughtline", daemon=True).start()
    return process.loop


def run(work: Coroutine[Any, Any, Result]) -> Running[Result]:
    """Run a coroutine: here, as far as it goes without waiting, unless the loop is in use; the rest on the loop."""
    return (_process.loop or _loop()).do(work)


def call_on_loop(what: Callable[[], None]) -> None:
    """Run a function on the loop."""
    _loop().call_soon_threadsafe(what)


async def wait_for(done: Running[Result]) -> Result:
    """Return its result, for code on an event loop of asyncio or trio."""
    if not done.done():
        await is_done(done)
    return done.result()


async def is_done(done: Running[Any], seconds: float | None = None) -> bool:
    """Wait until it is done, for `seconds` at most, and return whether it is."""
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
        with suppress(RuntimeError):  # the loop is closed, so no one is waiting
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
