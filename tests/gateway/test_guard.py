"""Wrong tokens, by the address they come from."""

from __future__ import annotations

import asyncio

import pytest

from thoughtline.gateway.guard import FORGET_SECONDS, FREE_TRIES, MAX_ADDRESSES, MAX_WAITING, PAUSE_SECONDS, Guard
from thoughtline.values.errors import Declined


class World:
    """A clock that a test sets, and pauses that last until it ends them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.over.wait()

    def guard(self) -> Guard:
        return Guard(sleep=self.sleep, clock=lambda: self.now)


async def test_the_first_ten_are_free() -> None:
    """After that each has a pause, for this address only."""
    world = World()
    world.over.set()
    guard = world.guard()
    for _ in range(FREE_TRIES):
        await guard.judge("10.0.0.1", is_right=False)
    assert world.pauses == []
    await guard.judge("10.0.0.1", is_right=False)
    await guard.judge("10.0.0.2", is_right=False)
    await guard.judge("10.0.0.1", is_right=True)
    assert world.pauses == [PAUSE_SECONDS]


async def test_wrong_tokens_dont_lock_out_the_right_one() -> None:
    """While many of an address wait, further wrong ones are refused at once; the right one passes, even from there."""
    world = World()
    guard = world.guard()
    guesses = [asyncio.ensure_future(guard.judge("a", is_right=False)) for _ in range(FREE_TRIES + MAX_WAITING)]
    while len(world.pauses) < MAX_WAITING:
        await asyncio.sleep(0)
    with pytest.raises(Declined) as refusal:
        await guard.judge("a", is_right=False)
    assert (refusal.value.status, refusal.value.retry_after_seconds) == (429, PAUSE_SECONDS)
    for address in ("a", "b"):
        await guard.judge(address, is_right=True)
    world.over.set()
    await asyncio.gather(*guesses)
    await guard.judge("a", is_right=True)


async def test_it_is_forgotten_after_a_while() -> None:
    """After a long time the count starts again."""
    world = World()
    world.over.set()
    guard = world.guard()
    for _ in range(FREE_TRIES):
        await guard.judge("a", is_right=False)
    world.now += FORGET_SECONDS + 1
    await guard.judge("a", is_right=False)
    assert world.pauses == []


async def test_it_stays_small() -> None:
    """However many addresses there are, only the latest are kept."""
    world = World()
    world.over.set()
    guard = world.guard()
    for number in range(MAX_ADDRESSES + 100):
        await guard.judge(f"{number}", is_right=False)
    assert len(guard._tries) == MAX_ADDRESSES
