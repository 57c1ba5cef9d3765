"""How long saves take while others save too: `python -m bench.tail [--seconds 10] [--workers 1 2] [--rate 640]`.

So many agents in each process save turns of 3 kB into one SQLite file, with memory in front, at a fixed rate, as the
ends of their answers would: the end of a turn waits for its save. Each save is followed by a look-up of the twenty
turns before it. "lag" is how late the loop came to a timer; CPU is that of all threads, per save.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time

from bench.stores import TENANT, make_turns
from thoughtline.stores import StoreSettings, open_store

AGENTS, TURNS = 32, 20
LAG_SECONDS = 0.005
KINDS = ("p50", "p95", "p99", "max")


def percentiles(values: list[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(values)
    places = (0.5, 0.95, 0.99, 1.0)
    return {
        kind: 1e3 * ordered[min(len(ordered) - 1, int(place * len(ordered)))]
        for kind, place in zip(KINDS, places, strict=True)
    }


async def work(url: str, saves: int, rate: float) -> dict[str, float]:
    """What the agents of one process see."""
    store = await open_store(url, StoreSettings())
    turns = make_turns(saves)
    took: list[float] = []
    lags: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_SECONDS)
            lags.append(time.perf_counter() - before - LAG_SECONDS)

    async def agent(number: int) -> None:
        for at in range(number, saves, AGENTS):
            await asyncio.sleep(began + at / rate - time.perf_counter())
            before = time.perf_counter()
            await store.save([turns[at]])
            took.append(time.perf_counter() - before)
            await store.find(TENANT, [one.keys[0] for one in turns[max(0, at - TURNS) : at + 1]])

    await store.save(make_turns(1))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    watching = asyncio.create_task(watch())
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(agent, range(AGENTS)))
    seconds = time.perf_counter() - began
    watching.cancel()
    await store.close()
    cpu = time.process_time() - cpu
    late = {f"lag {kind}": value for kind, value in percentiles(lags).items()}
    return {**percentiles(took), **late, "cpu": 1e6 * cpu / saves, "rate": saves / seconds}


def measure(workers: int, seconds: float, rate: float) -> list[dict[str, float]]:
    """Processes that begin together on one file."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/thoughts.db"
        command = [sys.executable, "-m", "bench.tail", "--work", url, str(int(seconds * rate)), str(rate)]
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
        ]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        outputs = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            outputs.append(process.communicate()[0])
    return [json.loads(output) for output in outputs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of saving")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2], help="processes on one file")
    parser.add_argument("--rate", type=float, default=640.0, help="saves per second of each process")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        url, saves, rate = asked.work
        print(json.dumps(asyncio.run(work(url, int(saves), float(rate)))))
        return
    print(f"{'ms':<12}" + "".join(f"{kind:>8}" for kind in KINDS) + "".join(f"{'lag ' + kind:>9}" for kind in KINDS[1:])
          + f"{'CPU µs':>8}{'saves/s':>9}")  # fmt: skip  # the head in one piece
    for workers in asked.workers:
        for number, seen in enumerate(measure(workers, asked.seconds, asked.rate), 1):
            figures = "".join(f"{seen[kind]:>8.2f}" for kind in KINDS)
            lags = "".join(f"{seen['lag ' + kind]:>9.2f}" for kind in KINDS[1:])
            print(f"{f'{number} of {workers}':<12}{figures}{lags}{seen['cpu']:>8.0f}{seen['rate']:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
