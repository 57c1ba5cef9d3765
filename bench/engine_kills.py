"""Engines that die under load: is any turn lost, or missing without a word?

    python -m bench.engine_kills [--kills 100] [--stores redis postgres] [--fail-over]

Two replicas share an engine, each with memory in front of it as a gateway has it. One saves turns, four at a time; the
other asks for each a moment later. Again and again the engine is killed with SIGKILL, stays away for a random time, and
starts again. Every second kill waits until both replicas have recovered, else more and more turns would wait to be
written. With `--fail-over` it is a primary and its replica behind one address: the primary is killed, and the replica
takes its place. A replica of Redis has not got what was written last; PostgreSQL's is a synchronous standby.

A turn that is missing is asked for again until it is found, for a minute at most after the engine is back. Those that
are not found by then are looked for once more at the end, a few at a time, when both replicas have recovered: what is
missing then is lost, unless it still waits to be written; how many do, and what the store said last, is printed. A miss
is announced if the save was acknowledged as `in memory` only, or if a replica called its store failing when it was
asked (`x-thoughtline-replay` says `store=degraded` then). Exit status 1 if one is lost, waits or was not announced.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import time
from typing import Protocol

from msgspec.structs import replace

from tests.stores.places import SETTINGS, lineage, turn
from tests.stores.servers import FailingOver, FailingOverPostgres, Postgres, Valkey
from thoughtline.stores import LayeredStore, Saved, open_store

AT_ONCE = 4
ASK_AFTER_SECONDS = 0.05
AGAIN_SECONDS, SELDOM_SECONDS = 1.0, 8.0
"""A turn that stays missing is asked for ever less often: thousands, each once a second, are more than a machine serves
that is busy with other work, and the replica would not recover from the asking."""

PAUSE_SECONDS = 0.05
LATE_AFTER_SECONDS, SETTLE_SECONDS = 60.0, 300.0
AT_THE_END = 100
LONGEST_AWAY_SECONDS = 3.0
QUICK = replace(SETTINGS, timeout_seconds=2.0)
STORES = ("redis", "postgres")


class Engine(Protocol):
    """A server that can be killed."""

    @property
    def url(self) -> str: ...

    def kill(self) -> None: ...

    def start(self) -> None: ...

    def remove(self) -> None: ...


class Watch:
    """What was saved and asked for so far."""

    def __init__(self) -> None:
        self.saved = self.missed = self.unannounced = self.lost = self.waiting = 0
        self.last_failure = ""
        self.unfound: list[int] = []
        self.late_seconds: list[float] = []
        self.is_over = False
        self.back_at = time.monotonic()


async def save_turns(here: LayeredStore, there: LayeredStore, watch: Watch, numbers: itertools.count[int]) -> None:
    """Save one after the other; each is followed while the next ones are saved."""
    following: set[asyncio.Task[None]] = set()
    for number in numbers:
        if watch.is_over:
            break
        acknowledged = await here.save([turn(number)])
        watch.saved += 1
        is_announced = acknowledged is not Saved.DURABLE
        following.add(task := asyncio.create_task(follow(there, watch, number, is_announced=is_announced)))
        task.add_done_callback(following.discard)
        await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.gather(*following)


async def follow(there: LayeredStore, watch: Watch, number: int, *, is_announced: bool) -> None:
    """Ask for a turn until it is found, or it is too late."""
    await asyncio.sleep(ASK_AFTER_SECONDS)
    began, is_missing, wait = time.monotonic(), False, AGAIN_SECONDS
    while True:
        before = there.partial_finds
        found = await there.find("tenant", [lineage(number)])
        is_failing = not there.is_settled or there.partial_finds != before
        if found[lineage(number)]:
            break
        if not is_missing:
            is_missing = True
            watch.missed += 1
            watch.unannounced += not (is_announced or is_failing)
        if time.monotonic() - max(began, watch.back_at) > LATE_AFTER_SECONDS:
            watch.unfound.append(number)
            return
        await asyncio.sleep(wait)
        wait = min(2 * wait, SELDOM_SECONDS)
    if is_missing:
        watch.late_seconds.append(time.monotonic() - max(began, watch.back_at))


async def look_again(here: LayeredStore, there: LayeredStore, watch: Watch) -> None:
    """Count what is lost among the turns that were not found."""
    ends = time.monotonic() + SETTLE_SECONDS
    while not (here.is_settled and there.is_settled) and time.monotonic() < ends:
        await asyncio.sleep(PAUSE_SECONDS)
    for at in range(0, len(watch.unfound), AT_THE_END):
        keys = [lineage(number) for number in watch.unfound[at : at + AT_THE_END]]
        found = await there.find("tenant", keys)
        watch.lost += sum(not found[key] and not here._waiting.find("tenant", key, 0.0) for key in keys)
    watch.waiting, watch.last_failure = here.health.waiting, here.last_failure or ""


async def kill(engine: Engine, kills: int, seed: int) -> Watch:
    """Kill the engine so often, under load, and follow what is missing to its end."""
    chance, watch, numbers = random.Random(seed), Watch(), itertools.count(1)
    here, there = [await open_store(engine.url, QUICK, time.time) for _ in range(2)]
    assert isinstance(here, LayeredStore)
    assert isinstance(there, LayeredStore)
    load = [asyncio.create_task(save_turns(here, there, watch, numbers)) for _ in range(AT_ONCE)]
    for number in range(kills):
        while number % 2 and not (here.is_settled and there.is_settled):
            await asyncio.sleep(PAUSE_SECONDS)
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        await asyncio.to_thread(engine.kill)
        await asyncio.sleep(chance.uniform(0.0, LONGEST_AWAY_SECONDS))
        await asyncio.to_thread(engine.start)
        watch.back_at = time.monotonic()
    await asyncio.sleep(1.0)
    watch.is_over = True
    await asyncio.gather(*load)
    await look_again(here, there, watch)
    for store in (here, there):
        await store.close()
    return watch


def engine_of(kind: str, *, fails_over: bool) -> Engine:
    if kind == "redis":
        return FailingOver() if fails_over else Valkey()
    return FailingOverPostgres() if fails_over else Postgres()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engine_kills")
    parser.add_argument("--kills", type=int, default=100, help="of each engine")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--fail-over", action="store_true", help="to a replica, which takes over")
    options = parser.parse_args()
    names = ("engine", "kills", "turns", "missed", "late s", "too late", "unannounced", "lost", "seconds")
    print("{:<10}{:>7}{:>9}{:>9}{:>9}{:>10}{:>13}{:>7}{:>9}".format(*names), flush=True)
    is_whole = True
    for kind in options.stores:
        began, engine = time.monotonic(), engine_of(kind, fails_over=options.fail_over)
        try:
            watch = asyncio.run(kill(engine, options.kills, seed=options.kills))
        finally:
            engine.remove()
        is_whole = is_whole and not watch.lost and not watch.unannounced and not watch.waiting
        figures = (options.kills, watch.saved, watch.missed, max(watch.late_seconds, default=0.0), len(watch.unfound))
        row = (kind, *figures, watch.unannounced, watch.lost, time.monotonic() - began)
        print("{:<10}{:>7,}{:>9,}{:>9,}{:>9.1f}{:>10,}{:>13,}{:>7,}{:>9.0f}".format(*row), flush=True)
        if watch.waiting:
            print(f"{watch.waiting:,} still wait to be written: {watch.last_failure}", flush=True)
    print("whole: 0 lost, 0 unannounced" if is_whole else "NOT WHOLE")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
