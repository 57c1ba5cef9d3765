"""A loop whose place another thread may take while it waits for something to happen.

What a line asks of its store is nearly always answered from memory, or from a page that SQLite has at hand. To hand
that over to another thread and to wait for it takes as long as the work itself.
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
"""What is being done. A task is over: nobody but its loop may wait for one."""


class _Selector(DefaultSelector):
    """Lets go of the loop's place for as long as it waits."""

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
    """Whoever has its place is alone with all that lives on it."""

    def __init__(self) -> None:
        self._place = threading.Lock()
        self._handed_over: deque[Callable[[], None]] = deque()
        self._due: deque[asyncio.Handle] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        super().__init__(_Selector(self._place))
        self.set_debug(False)  # which asks that only one thread be here

    def run_forever(self) -> None:
        with self._place:
            super().run_forever()

    def do(self, work: Coroutine[Any, Any, Result]) -> Running[Result]:
        """Have it done: here, or on the loop where somebody else is at it, in the order of asking."""
        return self.do_here(work) or self._hand_over(work)

    def do_here(self, work: Coroutine[Any, Any, Result]) -> Running[Result] | None:
        """Do it in this thread until it has to wait, which it then does on the loop. None, and nothing is done, where
        somebody else has the place, or is to have it first."""
        if self._handed_over or not self._place.acquire(blocking=False):
            return None
        outer = asyncio._get_running_loop()
        outside = asyncio.current_task(outer) if outer is not None else None
        if outer is not None and outside is not None:  # in the middle of a task of another loop
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
            for handle in due:  # somebody has pressed Ctrl-C
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
    """For whoever waits elsewhere. Whoever stops waiting stops nothing else."""
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
    """The loop looks at what there is to do, and until when."""
