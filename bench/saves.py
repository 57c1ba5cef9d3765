"""What a save costs: CPU of all threads, and how often they hand over to each other.

    python -m bench.saves [--saves 2000] [--stores memory sqlite] [--entries 2000]

A process saves turns of 3 kB with memory in front, as a gateway does; each save is followed by a look-up of that turn
and the 19 before it. "alone": one after the other, with a millisecond between them; "32 at once": so many at a time.
Switches are those of all threads together, voluntary and not. The store is closed within what is measured: whatever is
left to be done for a save counts.

Then a look-up of the 200 turns of a conversation that memory holds, each 11 s after the one before, as an agent makes
it; the clock is put on for that, nobody waits.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.stores import TENANT, make_turns
from thoughtline.stores import Store, StoreSettings, open_store
from thoughtline.values.records import Key, Record

ROUNDS = 5
TURNS = 20
PAUSE_SECONDS = 0.001
HISTORY, LOOK_UPS, AGENT_PAUSE_SECONDS = 200, 50, 11.0
SETTINGS = StoreSettings(memory_bytes=2**40, clean_seconds=1e9)


class ProcessUse(NamedTuple):
    """Of this process so far."""

    cpu_seconds: float
    switches: int

    @classmethod
    def now(cls) -> ProcessUse:
        lines = (line for status in Path("/proc/self/task").glob("*/status") for line in status.open())
        return cls(time.process_time(), sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line))


async def save_and_find(store: Store, turns: list[Record]) -> float:
    """One conversation. How long its saves took, in seconds."""
    took = 0.0
    for number, turn in enumerate(turns):
        began = time.perf_counter()
        await store.save([turn])
        took += time.perf_counter() - began
        await store.find(TENANT, [one.keys[0] for one in turns[max(0, number - TURNS + 1) : number + 1]])
        await asyncio.sleep(PAUSE_SECONDS)
    return took


async def measure(url: str, saves: int, at_once: int) -> tuple[float, float, float]:
    """CPU µs and switches of a save with its look-up, and how long the save took in µs."""
    store = await open_store(url, SETTINGS)
    turns = make_turns(saves)
    each = saves // at_once
    parts = [turns[at : at + each] for at in range(0, each * at_once, each)]
    pauses = ProcessUse.now()
    await asyncio.gather(*(pause(each) for _ in parts))
    before = ProcessUse.now()
    took = sum(await asyncio.gather(*(save_and_find(store, part) for part in parts)))
    during = ProcessUse.now()
    await store.close()
    after = ProcessUse.now()
    idle_cpu, idle_switches = before.cpu_seconds - pauses.cpu_seconds, before.switches - pauses.switches
    count = each * at_once
    cpu = (after.cpu_seconds - before.cpu_seconds - idle_cpu) / count
    return 1e6 * cpu, (during.switches - before.switches - idle_switches) / count, 1e6 * took / count


async def pause(count: int) -> None:
    """The same without a store."""
    for _ in range(count):
        await asyncio.sleep(PAUSE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saves", type=int, default=2000)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--stores", nargs="+", choices=("memory", "sqlite"), default=["memory", "sqlite"])
    options = parser.parse_args()
    print(f"{'store':<10}{'':<14}{'CPU µs':>8}{'switches':>10}{'save takes µs':>15}", flush=True)
    for kind, at_once in itertools.product(options.stores, (1, 32)):
        with tempfile.TemporaryDirectory() as folder:
            url = "memory://" if kind == "memory" else f"sqlite:///{folder}/thoughts.db"
            asyncio.run(fill(url, options.entries))
            rounds = [asyncio.run(measure(url, options.saves, at_once)) for _ in range(ROUNDS)]
        cpu, switches, took = (statistics.median(figures) for figures in zip(*rounds, strict=True))
        name = "alone" if at_once == 1 else f"{at_once} at once"
        print(f"{kind:<10}{name:<14}{cpu:>8.0f}{switches:>10.1f}{took:>15.0f}", flush=True)
    for kind in options.stores:
        with tempfile.TemporaryDirectory() as folder:
            cpu = asyncio.run(look_up("memory://" if kind == "memory" else f"sqlite:///{folder}/thoughts.db"))
        print(f"{kind:<10}look-up of {HISTORY} turns after {AGENT_PAUSE_SECONDS:.0f} s: CPU µs {cpu:.0f}", flush=True)


class AgentClock:
    """A clock that an agent's pauses put on."""

    def __init__(self) -> None:
        self.paused = 0.0

    def __call__(self) -> float:
        return time.time() + self.paused


async def look_up(url: str) -> float:
    """CPU µs of one look-up after a pause."""
    clock = AgentClock()
    store = await open_store(url, SETTINGS, clock)
    turns = make_turns(HISTORY)
    await store.save(turns)
    took = []
    for _ in range(LOOK_UPS):
        clock.paused += AGENT_PAUSE_SECONDS
        keys = [Key(turn.keys[0][:1] + turn.keys[0][1:]) for turn in turns]
        began = time.process_time()
        found = await store.find(TENANT, keys)
        took.append(time.process_time() - began)
        assert all(found.values())
    await store.close()
    return 1e6 * statistics.median(took)


async def fill(url: str, entries: int) -> None:
    store = await open_store(url, SETTINGS)
    for _ in range(0, entries, 1000):
        await store.save(make_turns(1000))
    await store.close()


if __name__ == "__main__":
    main()
