"""What more workers bring: `python -m bench.workers [--workers 1 2 4] [--rounds 5] [--requests 4000]`.

One gateway after the other, with so many workers, is asked for answers of 4 kB over 256 connections; rounds take turns,
medians count. CPU is that of all workers, per request. The busiest worker sets the bound: where each has a core, the
gateway carries one request in the time that this worker spends per request of all. "times" is how much more that is
than with the first number of workers, "even" how much it would be if the system spread the connections evenly. So it
needs no more cores than there are, only a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from bench.load.client import ask_many
from bench.load.contenders import Kind, Place, Process, in_memory, start, start_upstream, thoughtline
from bench.load.rows import PLAIN, Load
from bench.load.tables import Size
from bench.load.usage import family, own_cpu_seconds

CONNECTIONS, WARMING = 256, 600
SIZE = Size(rounds=1, requests=0, streams=0, chunks=0, first_bytes=0, open_streams=0)
STORES = {"sqlite": thoughtline, "memory": in_memory}


class Seen(NamedTuple):
    """Of one round."""

    cpu_us: float
    busiest_us: float
    """Per request of all workers."""


async def measure(load: Load, process: Process, requests: int) -> Seen:
    make = load.maker(None, PLAIN)
    await load.set("mode/whole")
    await ask_many(process.port, make, WARMING, CONNECTIONS)
    before = {pid: own_cpu_seconds(pid) for pid in family(process.pid)}
    await ask_many(process.port, make, requests, CONNECTIONS)
    spent = [1e6 * (own_cpu_seconds(pid) - cpu) / requests for pid, cpu in before.items()]
    return Seen(sum(spent), max(spent))


def kind_of(store: str, workers: int) -> Kind:
    return Kind(
        f"{store}, {workers}",
        lambda ports: [*STORES[store](ports), "--workers", str(workers)],
        rows=frozenset(),
    )


async def run(workers: list[int], stores: list[str], rounds: int, requests: int) -> None:
    seen: dict[tuple[str, int], list[Seen]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cores = frozenset(os.sched_getaffinity(0))
        upstream = start_upstream(cores, folder)
        try:
            for _ in range(rounds):
                for store in stores:
                    for count in workers:
                        process = start(kind_of(store, count), Place(upstream.port, "", folder, cores, folder))
                        try:
                            while count > 1 and process.says("worker serves") < count:
                                await asyncio.sleep(0.1)
                            seen[store, count].append(await measure(Load(SIZE, upstream), process, requests))
                        finally:
                            process.stop()
        finally:
            upstream.stop()
    print(f"{'store':<10}{'workers':>8}{'CPU µs':>9}{'busiest':>9}{'times':>7}{'even':>7}")
    for store in stores:
        first = statistics.median(one.busiest_us for one in seen[store, workers[0]])
        for count in workers:
            cpu = statistics.median(one.cpu_us for one in seen[store, count])
            busiest = statistics.median(one.busiest_us for one in seen[store, count])
            print(f"{store:<10}{count:>8}{cpu:>9.0f}{busiest:>9.0f}{first / busiest:>7.2f}{first * count / cpu:>7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--stores", nargs="*", choices=list(STORES), default=list(STORES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000)
    asked = parser.parse_args()
    asyncio.run(run(asked.workers, asked.stores, asked.rounds, asked.requests))


if __name__ == "__main__":
    main()
