"""The loop whose place other threads take: what runs where, and that nothing is lost in between."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.line.chats import HEADERS, PATH, request, whole
from thoughtline import Line
from thoughtline.engine.replayer import Replayer
from thoughtline.library.background import is_done, run, wait_for
from thoughtline.library.shared_loop import SharedLoop
from thoughtline.stores import Saved
from thoughtline.values.records import Record

URL = f"https://api.deepseek.com{PATH}"


@pytest.fixture
def loop() -> Iterator[SharedLoop]:
    made = SharedLoop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    until_free(made)
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def until_free(loop: SharedLoop) -> None:
    """Wait until it waits for events: only then may others take its place."""
    end = time.monotonic() + 30
    while not is_done_here(loop, here()):
        assert time.monotonic() < end, "its place is never free"


def is_done_here(loop: SharedLoop, work: Coroutine[Any, Any, object]) -> bool:
    """Whether this thread started it."""
    running = loop.do_here(work)
    if running is None:
        work.close()
    return running is not None


async def here() -> threading.Thread:
    return threading.current_thread()


def test_what_needs_no_waiting_is_done_here(loop: SharedLoop) -> None:
    """As a task of the loop, in the calling thread; several steps of it, too."""

    async def steps() -> list[object]:
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            inner = await asyncio.ensure_future(here())
        return [inner, threading.current_thread(), asyncio.get_running_loop()]

    running = loop.do_here(steps())
    me = threading.current_thread()
    assert running is not None
    assert running.done()
    assert running.result() == [me, me, loop]


def test_what_has_to_wait_goes_on_on_the_loop(loop: SharedLoop) -> None:
    """A timer that is set here wakes it up."""
    over, where = threading.Event(), list[threading.Thread]()

    async def waits() -> None:
        where.append(await here())
        await asyncio.sleep(0.01)
        where.append(await here())
        over.set()

    assert loop.do_here(waits())
    assert over.wait(30)
    assert where[0] is threading.current_thread() is not where[1]


def test_a_timer_that_outlives_its_task_is_kept(loop: SharedLoop) -> None:
    """The loop slept without work: it has to be woken for new work."""
    over = threading.Event()

    async def sets() -> None:
        asyncio.get_running_loop().call_later(0.01, over.set)

    assert loop.do_here(sets())
    assert over.wait(30)


async def test_a_task_of_another_loop_is_itself_again(loop: SharedLoop) -> None:
    """The caller is on its own event loop, in a task."""
    own, task = asyncio.get_running_loop(), asyncio.current_task()
    assert loop.do_here(here())
    assert (asyncio.get_running_loop(), asyncio.current_task()) == (own, task)
    async with asyncio.timeout(60):
        await asyncio.sleep(0)


def test_only_one_has_the_place(loop: SharedLoop) -> None:
    """A second caller gets None, as does a caller in the middle of a call."""
    seen: list[bool] = []

    async def asks() -> None:
        seen.append(is_done_here(loop, here()))
        other = threading.Thread(target=lambda: seen.append(is_done_here(loop, here())))
        other.start()
        other.join()

    assert loop.do_here(asks())
    assert seen == [False, False]


def test_what_was_handed_over_comes_first(loop: SharedLoop) -> None:
    """A truncated turn is saved before the line is closed, although another thread was using the loop."""
    begun: list[int] = []

    async def begins(number: int) -> None:
        begun.append(number)

    async def busy() -> None:
        for number in range(2):
            loop.do(begins(number))

    loop.do(busy())
    over = threading.Event()

    async def last() -> None:
        begun.append(2)
        over.set()

    loop.do(last())
    assert over.wait(30)
    assert begun == [0, 1, 2]


def test_an_interrupt_leaves_the_place(loop: SharedLoop) -> None:
    """Ctrl-C in the middle of it reaches the caller; the loop runs the remaining work."""
    over = threading.Event()

    async def interrupted() -> None:
        asyncio.get_running_loop().call_soon(over.set)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop.do_here(interrupted())
    assert over.wait(30)
    until_free(loop)


async def test_who_stops_waiting_stops_nothing(line: Line) -> None:
    """Work continues after a caller's timeout, and ends."""
    gate = asyncio.Event()
    opened = run(_opened(gate))
    assert not await is_done(opened, 0.01)
    waiting = asyncio.ensure_future(wait_for(opened))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await wait_for(run(_open(gate)))
    assert await wait_for(opened)


async def _opened(gate: asyncio.Event) -> bool:
    return await gate.wait()


async def _open(gate: asyncio.Event) -> None:
    gate.set()


@pytest.mark.parametrize("is_async", [False, True])
def test_the_end_is_held_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_async: bool) -> None:
    """A slow store delays no caller further: the turn is saved in the background, and counted as late."""
    config = tmp_path / "thoughtline.toml"
    config.write_text("[replay]\nhold_ms = 20\n")
    gate, save = asyncio.Event(), Replayer.save

    async def slowly(replayer: Replayer, records: Sequence[Record], *, learns: bool = False) -> Saved | None:
        await gate.wait()
        return await save(replayer, records, learns=learns)

    monkeypatch.setattr(Replayer, "save", slowly)

    async def ask(line: Line) -> None:
        exchange = await line.begin("POST", URL, HEADERS, request())
        exchange.read(whole())
        await exchange.end()

    with Line(f"sqlite:///{tmp_path / 'thoughts.db'}", config=config) as line:
        if is_async:
            asyncio.run(ask(line))
        else:
            exchange = line.begin_sync("POST", URL, HEADERS, request())
            exchange.read(whole())
            exchange.end()
        run(_open(gate)).result()
        engine = line._engine
    assert (engine.report.late, engine.report.saved) == (1, 1)
