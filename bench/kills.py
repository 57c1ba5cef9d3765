"""`kill -9` while turns are saved: whether anything that was acknowledged is lost.

    python -m bench.kills [--kills 1000] [--stores sqlite redis postgres]

So many kills of writers for each store. Two lines of writers save at once, four turns at a time and with memory in
front as a gateway has it; each writer is killed after a random number of acknowledgements, in the middle of other
saves. Then another process asks for every turn that was acknowledged. Exit status 1 if one is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.stores.places import SETTINGS, START, lineage
from tests.stores.servers import Postgres, Valkey
from thoughtline.stores import durable_store

STORES = ("sqlite", "redis", "postgres")
DRIVERS = 2
ASKED_AT_ONCE = 50


@contextmanager
def place(kind: str) -> Iterator[str]:
    """The address of an empty store, for as long as it is needed."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="thoughtline-kills-") as folder:
            yield f"sqlite:///{folder}/thoughts.db"
        return
    server = Valkey() if kind == "redis" else Postgres()
    try:
        yield server.url
    finally:
        server.remove()


def kill(url: str, kills: int) -> list[int]:
    """The numbers of the turns that were acknowledged."""
    shares = [kills // DRIVERS + (number < kills % DRIVERS) for number in range(DRIVERS)]
    command = [sys.executable, "-m", "tests.stores.killed_writers", url]
    drivers = [
        subprocess.Popen([*command, str(share), str(seed)], stdout=subprocess.PIPE, text=True)
        for seed, share in enumerate(shares, 1)
    ]
    outputs = [driver.communicate()[0] for driver in drivers]
    if any(driver.returncode for driver in drivers):
        raise SystemExit("a writer ended by itself")
    return [int(line) for output in outputs for line in output.split()]


async def lost(url: str, acknowledged: list[int]) -> int:
    """How many of them nobody finds."""
    store = durable_store(url, SETTINGS, lambda: START)
    await store.open()
    missing = 0
    for at in range(0, len(acknowledged), ASKED_AT_ONCE):
        keys = [lineage(number) for number in acknowledged[at : at + ASKED_AT_ONCE]]
        missing += list((await store.find("tenant", keys)).values()).count(())
    await store.close()
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.kills")
    parser.add_argument("--kills", type=int, default=1000, help="of writers, for each store")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    options = parser.parse_args()
    print(f"{'store':<10}{'kills':>8}{'acknowledged':>15}{'lost':>8}{'seconds':>10}", flush=True)
    is_whole = True
    for kind in options.stores:
        began = time.monotonic()
        with place(kind) as url:
            acknowledged = kill(url, options.kills)
            missing = asyncio.run(lost(url, acknowledged))
        is_whole = is_whole and missing == 0
        seconds = time.monotonic() - began
        print(f"{kind:<10}{options.kills:>8,}{len(acknowledged):>15,}{missing:>8,}{seconds:>10.0f}", flush=True)
    print("whole: 0 lost" if is_whole else "NOT WHOLE")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
