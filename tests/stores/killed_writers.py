"""Forks writers and kills them: `python -m tests.stores.killed_writers STORE_URL KILLS SEED`.

A writer saves turns, four at a time and with memory in front as a gateway has it, and reports each save that the
durable store has acknowledged. It is killed with SIGKILL after a random number of these, while other saves are under
way. The numbers of the acknowledged turns are printed, one a line. While the store fails, a writer saves nothing more;
it exits with a message if the store stays down. A process of its own, because only one without threads may fork.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys

from tests.stores.places import SETTINGS, START, turn
from thoughtline.stores import LayeredStore, Saved, open_store

AT_ONCE = 4
NUMBERS_EACH = 10_000
"""How many turns a writer may number: those behind them belong to the next writer."""

RECOVERY_SECONDS, LOOK_SECONDS = 60.0, 0.05
"""How long a writer waits for a store that fails, and how often it looks."""


async def write(url: str, first: int, pipe: int) -> None:
    store = await open_store(url, SETTINGS, lambda: START)
    assert isinstance(store, LayeredStore)
    numbers = itertools.count(first)

    async def save() -> None:
        for number in itertools.takewhile(lambda number: number < first + NUMBERS_EACH, numbers):
            saved = await store.save([turn(number, shared=("ok",), thought=str(number) * (number % 400))])
            if saved is Saved.DURABLE:
                os.write(pipe, number.to_bytes(8, "big"))
            else:
                await recovered(store)

    await asyncio.gather(*(save() for _ in range(AT_ONCE)))


async def recovered(store: LayeredStore) -> None:
    """Returns when the durable store works again. A save that fails returns at once and lets nothing else run."""
    async with asyncio.timeout(RECOVERY_SECONDS):
        while not store.is_settled:
            await asyncio.sleep(LOOK_SECONDS)


def kill_one(url: str, first: int, acknowledgements: int) -> list[int]:
    """Start a writer, kill it after this many acknowledgements, and return all that it printed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            asyncio.run(write(url, first, writer))
        except BaseException as problem:
            sys.stderr.write(f"a writer stopped: {problem!r}\n")
            os._exit(1)
        os._exit(0)
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
        for number in kill_one(url, (seed * 1000 + killed) * NUMBERS_EACH, chance.randrange(0, 40)):
            sys.stdout.write(f"{number}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
