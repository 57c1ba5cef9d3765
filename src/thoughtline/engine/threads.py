"""Where work is done that takes long: at once, or in a thread, so that others are served meanwhile.

The interpreter goes from thread to thread every few milliseconds. Few threads are enough, and many would let the loop
wait for its turn: that is why they are counted.
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

MOST_THREADS = 2

LONG_BYTES = 512 * 2**10
"""Work on larger requests is done one at a time: the other thread is for what is soon done."""

MOST_KNOWN = 1000
"""Tenants that have nothing to do at the moment, and how much time they have used."""

CREDIT_SECONDS, DEBT_SECONDS = 1.0, 0.25
"""How much less or more than a fair share a tenant may have used. Without the first, one that has rested would hold up
all others; without the second, one that has worked would wait for every newcomer, and made-up tenants never end."""

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


# --- shared fairly by tenants -----------------------------------------------------------------------------------------


class WorkShare(Struct, frozen=True, gc=False):
    """Whose work it is, and how large the request is."""

    tenant: str
    size: int


WORK_SHARE: ContextVar[WorkShare] = ContextVar("WORK_SHARE")
"""Of the request that is being served. Each is served in a task, and so in a context, of its own."""

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
    """Of one loop. A tenant has one thread at a time, and the tenant that has used the least time of late is next.

    Work that has begun can't be stopped, so a thread is kept free for others: from a tenant that has much to do, and
    from large requests.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, deque[_Job]] = {}
        self._running: dict[str, _Job] = {}
        self._used: dict[str, float] = {}
        self._fair_share = 0.0
        """What a tenant would have used that always had something to do."""

    async def __call__(self, do: Callable[[], Result]) -> Result:
        job = _Job(do, WORK_SHARE.get(_NO_SHARE), asyncio.get_running_loop().create_future())
        self._enter(job.share.tenant)
        self._waiting.setdefault(job.share.tenant, deque()).append(job)
        self._start()
        result: Result = await job.done
        return result

    def _enter(self, tenant: str) -> None:
        """A newcomer has used its fair share; others about that."""
        share = self._fair_share
        if tenant not in self._used and len(self._used) >= MOST_KNOWN:
            self._used = {one: self._used[one] for one in self._running.keys() | self._waiting.keys()}
        used = self._used.get(tenant, share)
        self._used[tenant] = min(max(used, share - CREDIT_SECONDS), share + DEBT_SECONDS)

    def _start(self) -> None:
        """Begin as many jobs as there are threads for."""
        while len(self._running) < MOST_THREADS and (job := self._next()) is not None:
            self._running[job.share.tenant] = job
            running = asyncio.get_running_loop().run_in_executor(self._pool, _timed, job.do)
            running.add_done_callback(partial(self._end, job))

    def _next(self) -> _Job | None:
        """Of those who wait, and in the order they came where they have used the same."""
        has_long = any(job.share.size > LONG_BYTES for job in self._running.values())
        for tenant in sorted(self._waiting, key=self._used.__getitem__):
            jobs = self._waiting[tenant]
            while jobs and jobs[0].done.done():  # its request was left
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
    """The result, or what was raised, and the seconds that it took this thread."""
    began = time.thread_time()
    try:
        return _Done(do(), None, time.thread_time() - began)
    except Exception as problem:
        return _Done(None, problem, time.thread_time() - began)
