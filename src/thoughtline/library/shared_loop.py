"""An event loop whose place another thread may take while it waits for events.

A line's calls to its store are nearly always answered from memory, or from a page in SQLite's cache. Handing them over
to another thread and waiting would take as long as the work itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context
from functools import partial
from selectors import DefaultSelector, SelectorKey
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, Unpack

Result = TypeVar("Result")
Given = TypeVarTuple("Given")
Running: TypeAlias = Future[Result] | asyncio.Task[Result]
"""A running call. A task is finished: only its own loop may wait for one that is not."""


class _Selector(DefaultSelector):
    """Releases the loop's place while it waits."""

    def __init__(self, place: threading.Lock) -> None:
        super().__init__()
        self._place = place

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self._place.release()
        try:
            return super().select(timeout)
        finally:
            self._place.acquire()


class SharedLoop(asyncio.SelectorEventLoop):
    """The thread that holds its place is the only one to touch anything on it."""

    def __init__(self) -> None:
        self._place = threading.Lock()
        self._handed_over: deque[Callable[[], None]] = deque()
        self._due: deque[asyncio.Handle] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        super().__init__(_Selector(self._place))
        self.set_debug(False)  # debug mode requires a single thread

    def run_forever(self) -> None:
        with self._place:
            super().run_forever()

    def do(self, work: Coroutine[Any, Any, Result]) -> Running[Result]:
        """Run a coroutine here, or on the loop if another thread is using it, in the order of calls."""
        return self.do_here(work) or self._hand_over(work)

    def do_here(self, work: Coroutine[Any, Any, Result]) -> Running[Result] | None:
        """Run it in this thread until it has to wait; it then waits on the loop. Returns None without doing anything if
        another thread has the place, or is next."""
        if self._handed_over or not self._place.acquire(blocking=False):
            return None
        outer = asyncio._get_running_loop()
        outside = asyncio.current_task(outer) if outer is not None else None
        if outer is not None and outside is not None:  # in a task of another loop
            asyncio._leave_task(outer, outside)
        asyncio._set_running_loop(self)
        self._due, self._timers = due, timers = deque[asyncio.Handle](), list[asyncio.TimerHandle]()
        task = running = None
        try:
            task = asyncio.Task(work, loop=self)
            while due:
                due.popleft()._run()
            running = task if task.done() and not task.cancelled() else _passed_on(task)
            return running
        finally:
            asyncio._set_running_loop(outer)
            if outer is not None and outside is not None:
                asyncio._enter_task(outer, outside)
            self._due = None
            for handle in due:  # interrupted by Ctrl-C
                super().call_soon(handle._run)
            self._place.release()
            if due or task is None or running is not task or not all(map(asyncio.TimerHandle.cancelled, timers)):
                self.call_soon_threadsafe(_wake)

    def _hand_over(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        done = Future[Result]()
        self._handed_over.append(lambda: _pass_on_to(done, self.create_task(work)))
        self.call_soon_threadsafe(lambda: self._handed_over.popleft()())
        return done

    def call_soon(
        self, callback: Callable[[Unpack[Given]], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        if self._due is None:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._due.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Given]], object],
        *args: *Given,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, callback, *args, context=context)
        if self._due is not None:
            self._timers.append(timer)
        return timer


def _passed_on(task: asyncio.Task[Result]) -> Future[Result]:
    """Return a future for another thread. Cancelling it cancels nothing else."""
    done = Future[Result]()
    _pass_on_to(done, task)
    return done


def _pass_on_to(done: Future[Result], task: asyncio.Task[Result]) -> None:
    task.add_done_callback(partial(_end, done))


def _end(done: Future[Result], task: asyncio.Task[Result]) -> None:
    if task.cancelled():
        done.set_exception(RuntimeError("stopped"))
    elif (problem := task.exception()) is not None:
        done.set_exception(problem)
    else:
        done.set_result(task.result())


def _wake() -> None:
    """Wakes the loop, so that it checks its work and timers."""
