"""Runs work that takes long: inline, or in a thread so that other requests are served meanwhile.

The interpreter switches threads every few milliseconds. A few threads are enough, and many would make the event loop
wait for its turn: that is why their number is limited.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

MAX_THREADS = 2

LONG_BYTES = 512 * 2**10
"""Work on larger requests runs one at a time, which leaves the other thread for short work."""

MAX_KNOWN = 1000
"""Maximum number of idle tenants whose used time is kept."""

CREDIT_SECONDS, DEBT_SECONDS = 1.0, 0.25
"""How much less or more than the fair share a tenant may have used. Without the first bound, a tenant that was idle
would block all others; without the second, a busy tenant would wait for every new one, and invented tenants never
end."""

Result = TypeVar("Result")


class Work(Protocol):
    """Runs a function and returns its result."""

    async def __call__(self, do: Callable[[], Result]) -> Result: ...


async def at_once(do: Callable[[], Result]) -> Result:
    return do()


class InThreads:
    """Runs functions in a few threads, in order."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, "thoughtline-work")

    async def __call__(self, do: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, do)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


# --- fair sharing between tenants -------------------------------------------------------------------------------------


class WorkShare(Struct, frozen=True, gc=False):
    """The tenant of some work, and the size of the request."""

    tenant: str
    size: int


WORK_SHARE: ContextVar[WorkShare] = ContextVar("WORK_SHARE")
"""Set for the current request. Each is served in a separate task, and so in a separate context."""

_NO_SHARE = WorkShare("", 0)


class _Job(NamedTuple):
    do: Callable[[], Any]
    share: WorkShare
    done: asyncio.Future[Any]


class _Done(NamedTuple):
    result: Any
    problem: Exception | None
    seconds: float


class FairThreads(InThreads):
    """The threads of one event loop. A tenant has one thread at a time, and the tenant with the least recent use is
    next.

    Running work can't be stopped, so a thread is kept free from a tenant with a lot of work, and from large requests.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, deque[_Job]] = {}
        self._running: dict[str, _Job] = {}
        self._used: dict[str, float] = {}
        self._fair_share = 0.0
        """The time that a tenant with constant work would have used."""

    async def __call__(self, do: Callable[[], Result]) -> Result:
        job = _Job(do, WORK_SHARE.get(_NO_SHARE), asyncio.get_running_loop().create_future())
        self._enter(job.share.tenant)
        self._waiting.setdefault(job.share.tenant, deque()).append(job)
        self._start()
        result: Result = await job.done
        return result

    def _enter(self, tenant: str) -> None:
        """Add a tenant. A new one starts with the fair share; others are kept close to it."""
        share = self._fair_share
        if tenant not in self._used and len(self._used) >= MAX_KNOWN:
            self._used = {one: self._used[one] for one in self._running.keys() | self._waiting.keys()}
        used = self._used.get(tenant, share)
        self._used[tenant] = min(max(used, share - CREDIT_SECONDS), share + DEBT_SECONDS)

    def _start(self) -> None:
        """Start as many jobs as there are threads for."""
        while len(self._running) < MAX_THREADS and (job := self._next()) is not None:
            self._running[job.share.tenant] = job
            running = asyncio.get_running_loop().run_in_executor(self._pool, _timed, job.do)
            running.add_done_callback(partial(self._end, job))

    def _next(self) -> _Job | None:
        """Return the next job: of the waiting tenants, the one with the least time used, or else the first to come."""
        has_long = any(job.share.size > LONG_BYTES for job in self._running.values())
        for tenant in sorted(self._waiting, key=self._used.__getitem__):
            jobs = self._waiting[tenant]
            while jobs and jobs[0].done.done():  # its request was cancelled
                jobs.popleft()
            is_next = tenant not in self._running and not (has_long and jobs and jobs[0].share.size > LONG_BYTES)
            job = jobs.popleft() if jobs and is_next else None
            if not jobs:
                del self._waiting[tenant]
            if job is not None:
                return job
        return None

    def _end(self, job: _Job, running: asyncio.Future[_Done]) -> None:
        active = len(self._running.keys() | self._waiting.keys())
        del self._running[job.share.tenant]
        if running.cancelled():
            job.done.cancel()
            return
        result, problem, seconds = running.result()
        self._used[job.share.tenant] += seconds
        self._fair_share += seconds / active
        if not job.done.done():
            if problem is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(problem)
        self._start()


def _timed(do: Callable[[], Any]) -> _Done:
    """Run a function; return its result or exception, and the thread time it took."""
    began = time.thread_time()
    try:
        return _Done(do(), None, time.thread_time() - began)
    except Exception as problem:
        return _Done(None, problem, time.thread_time() - began)
