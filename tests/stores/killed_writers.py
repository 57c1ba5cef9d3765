"""Forks writers and kills them: `python -m tests.stores.killed_writers STORE_URL KILLS SEED`.

A writer saves turns without end, with memory in front as a gateway has it, and tells each save that the durable store
has acknowledged. It is killed with SIGKILL after a random
number of these, while other saves are under way. What was acknowledged is printed, one number a line. A process of its
own, because only one without threads may fork.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys

from tests.stores.places import SETTINGS, START, turn
from thoughtline.stores import Saved, open_store

AT_ONCE = 4


async def write(url: str, first: int, pipe: int) -> None:
    store = await open_store(url, SETTINGS, lambda: START)
    numbers = itertools.count(first)

    async def save() -> None:
        for number in numbers:
            saved = await store.save([turn(number, shared=("ok",), thought=str(number) * (number % 400))])
            if saved is Saved.DURABLE:
                os.write(pipe, number.to_bytes(8, "big"))

    await asyncio.gather(*(save() for _ in range(AT_ONCE)))


def kill_one(url: str, first: int, acknowledgements: int) -> list[int]:
    """Start a writer, kill it after this many acknowledgements, and return all that it printed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        asyncio.run(write(url, first, writer))
    os.close(writer)
    received = b""
    while len(received) < 8 * acknowledgements:
        piece = os.read(reader, 8 * acknowledgements - len(received))
        if not piece:
            raise SystemExit(f"a writer ended by itself: status {os.waitpid(child, 0)[1]}")
        received += piece
    os.kill(child, signal.SIGKILL)
    while rest := os.read(reader, 65536):
        received += rest
    os.close(reader)
    os.waitpid(child, 0)
    return [int.from_bytes(received[at : at + 8], "big") for at in range(0, len(received), 8)]


def main(url: str, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for killed in range(kills):
        for number in kill_one(url, (seed * 1000 + killed) * 10_000, chance.randrange(0, 40)):
            sys.stdout.write(f"{number}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
