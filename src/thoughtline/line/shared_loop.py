"""A loop whose place another thread may take while it waits for something to happen.

What a line asks of its store is nearly always answered from memory, or from a page that SQLite has at hand. To hand
that over to another thread and to wait for it takes as long as the work itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from selectors import DefaultSelector, SelectorKey
from typing import Any, TypeVarTuple, Unpack

Given = TypeVarTuple("Given")


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
        self._handed_over: deque[Callable[[], asyncio.Task[Any]]] = deque()
        self._due: deque[asyncio.Handle] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        super().__init__(_Selector(self._place))
        self.set_debug(False)  # which asks that only one thread be here

    def run_forever(self) -> None:
        with self._place:
            super().run_forever()

    def do(self, start: Callable[[], asyncio.Task[Any]]) -> None:
        """Run what `start` begins: here, or on the loop where somebody else is at it, in the order of asking."""
        if not self.do_here(start):
            self._handed_over.append(start)
            self.call_soon_threadsafe(lambda: self._handed_over.popleft()())

    def do_here(self, start: Callable[[], asyncio.Task[Any]]) -> bool:
        """Run what `start` begins in this thread until it has to wait, which it then does on the loop. False, and
        nothing is done, where somebody else has the place, or is to have it first."""
        if self._handed_over or not self._place.acquire(blocking=False):
            return False
        self._due, self._timers = due, timers = deque[asyncio.Handle](), list[asyncio.TimerHandle]()
        task = None
        try:
            with _running(self):
                task = start()
                while due:
                    due.popleft()._run()
        finally:
            self._due = None
            for handle in due:  # somebody has pressed Ctrl-C
                super().call_soon(handle._run)
            self._place.release()
            is_over = task is not None and task.done() and not due
            if not is_over or not all(timer.cancelled() for timer in timers):
                self.call_soon_threadsafe(_wake)
        return True

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


@contextmanager
def _running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """This thread runs the loop, in the middle of a task of its own loop, if it has one."""
    outer = asyncio._get_running_loop()
    task = asyncio.current_task(outer) if outer is not None else None
    if outer is not None and task is not None:
        asyncio._leave_task(outer, task)
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if outer is not None and task is not None:
            asyncio._enter_task(outer, task)


def _wake() -> None:
    """The loop looks at what there is to do, and until when."""
