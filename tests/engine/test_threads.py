"""Work in threads: the order of jobs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from thoughtline.engine.threads import CREDIT_SECONDS, LONG_BYTES, WORK_SHARE, FairThreads, WorkShare

SMALL = 1000


class Gate:
    """Work that waits for the test, and records the order of starts."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._may_end: dict[str, threading.Event] = {}

    def work(self, name: str) -> Callable[[], str]:
        may_end = self._may_end[name] = threading.Event()

        def do() -> str:
            self.begun.append(name)
            assert may_end.wait(30)
            return name

        return do

    def let(self, name: str) -> None:
        self._may_end[name].set()

    async def until(self, *begun: str) -> None:
        async with asyncio.timeout(30):
            while self.begun != list(begun):
                await asyncio.sleep(0)


def asked(work: FairThreads, tenant: str, do: Callable[[], str], size: int = SMALL) -> Awaitable[str]:
    """Start work for a request, in a task like the one that serves it."""

    async def serve() -> str:
        WORK_SHARE.set(WorkShare(tenant, size))
        return await work(do)

    return asyncio.ensure_future(serve())


async def test_a_tenant_has_one_thread_at_a_time() -> None:
    """However much work it has: the other thread is for a tenant that came later."""
    work, gate = FairThreads(), Gate()
    many = [asked(work, "busy", gate.work(f"busy {number}")) for number in range(3)]
    await gate.until("busy 0")
    other = asked(work, "other", gate.work("other"))
    await gate.until("busy 0", "other")
    gate.let("other")
    assert await other == "other"
    for number in range(3):
        gate.let(f"busy {number}")
    assert await asyncio.gather(*many) == ["busy 0", "busy 1", "busy 2"]
    work.close()


async def test_large_requests_leave_a_thread_to_others() -> None:
    """Also those of different tenants: one at a time."""
    work, gate = FairThreads(), Gate()
    large = [asked(work, f"tenant {at}", gate.work(f"large {at}"), LONG_BYTES + 1) for at in range(3)]
    await gate.until("large 0")
    small = asked(work, "other", gate.work("small"))
    await gate.until("large 0", "small")
    for name in ("small", "large 0", "large 1", "large 2"):
        gate.let(name)
    assert await small == "small"
    assert await asyncio.gather(*large) == ["large 0", "large 1", "large 2"]
    work.close()


def spin(seconds: float) -> Callable[[], str]:
    """Use the processor for this long."""

    def do() -> str:
        began = time.thread_time()
        while time.thread_time() - began < seconds:
            pass
        return "done"

    return do


async def test_the_tenant_that_has_used_the_least_time_is_next() -> None:
    """Not the one that came first; and a new one has no advantage over it."""
    work, gate = FairThreads(), Gate()
    await asked(work, "little", spin(0.01))
    await asked(work, "much", spin(0.05))
    first = [asked(work, name, gate.work(name)) for name in ("one", "two")]
    await gate.until("one", "two")
    names = ("much", "newcomer", "little")
    later = [asked(work, name, gate.work(name)) for name in names]
    await asyncio.sleep(0)
    work._used["one"] = work._used["two"] = 0.03  # what they are about to have used
    work._used["newcomer"] = 0.03
    gate.let("one")
    await gate.until("one", "two", "little")
    gate.let("two")
    await gate.until("one", "two", "little", "newcomer")
    for name in names:
        gate.let(name)
    await asyncio.gather(*first, *later)
    work.close()


async def test_made_up_tenants_hold_up_others_for_a_while_only() -> None:
    """Each request has a tenant of its own, and some always wait. A tenant that has used much before is served too."""
    work, most, count = FairThreads(), 3000, 0
    is_served = asyncio.Event()
    await asked(work, "known", spin(0.2))

    async def flood() -> None:
        nonlocal count
        while count < most and not is_served.is_set():
            count += 1
            await asked(work, f"made up {count}", spin(0.001))

    async def known() -> None:
        await asked(work, "known", spin(0.0))
        is_served.set()

    await asyncio.gather(*(flood() for _ in range(8)), known())
    assert count < most
    work.close()


async def test_who_has_rested_is_not_preferred_for_long() -> None:
    """A newcomer and a tenant that has always worked share the threads with one that comes back after a long time."""
    work = FairThreads()
    await asked(work, "rested", spin(0.0))
    await asked(work, "steady", spin(0.05))
    work._fair_share = work._used["steady"] = 100.0
    await asked(work, "rested", spin(0.0))
    assert work._used["rested"] >= 100.0 - CREDIT_SECONDS
    await asked(work, "newcomer", spin(0.0))
    assert work._used["newcomer"] >= 100.0
    work.close()


async def test_work_of_a_client_that_left_is_not_begun() -> None:
    """If a client has disconnected while its work waited, it costs nothing, and its tenant is forgotten."""
    work, gate = FairThreads(), Gate()
    running = asked(work, "one", gate.work("running"))
    left = asyncio.ensure_future(asked(work, "one", gate.work("left")))
    after = asked(work, "one", gate.work("after"))
    await gate.until("running")
    left.cancel()
    for name in ("running", "after"):
        gate.let(name)
    assert (await running, await after) == ("running", "after")
    assert gate.begun == ["running", "after"]
    assert not work._waiting
    work.close()


async def test_a_failure_is_that_of_its_own_request() -> None:
    """It is raised for its caller, and the next work is done."""
    work = FairThreads()

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await asked(work, "one", fail)
    assert await asked(work, "one", spin(0.0)) == "done"
    work.close()


async def test_tenants_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up ones don't fill the memory."""
    monkeypatch.setattr("thoughtline.engine.threads.MAX_KNOWN", 10)
    work = FairThreads()
    for number in range(50):
        await asked(work, f"tenant {number}", spin(0.0))
    assert len(work._used) <= 10
    work.close()
