"""Stores that are slow to save: is a turn found in the process that heard it, and is every late save told?

    python -m bench.slow_stores [--seconds 0.4 4] [--stores sqlite redis postgres] [--turns 8]

A gateway before a strict simulator, on a real store whose every save is delayed. Clients that forget hold conversations
of so many turns, whole and streamed, and ask for the next one at once. "unfound" are turns that were not put back,
"untold" answers whose save was late and whose line in the log does not say so. The last rows have a store that is as
quick as it is, and nobody waits for it (`hold_ms = 0`). Exit status 1 unless all are 0.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.kills import STORES, place
from tests.gateway.forgetful_clients import Forgetful
from tests.gateway.gateways import Running, running
from tests.sim.faces import CASES
from tests.sim.served_simulators import served
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.stores import LayeredStore, Saved, Store, StoreSettings, durable_store
from thoughtline.values.records import Record

DEEPSEEK = next(case for case in CASES if case.id.startswith("deepseek-openai_chat"))
CONVERSATIONS = 4
QUICK_CONVERSATIONS = 50


class Slowed:
    """A durable store that takes its time to save."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store = store
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def save(self, records: Sequence[Record]) -> Saved:
        await asyncio.sleep(self._seconds)
        return await self._store.save(records)


class Row(NamedTuple):
    """A kind of store, how slow it is, and how long the end of a turn is held."""

    kind: str
    seconds: float
    hold_ms: int


class Found(NamedTuple):
    """What was seen."""

    turns: int
    unfound: int
    told: int
    untold: int


def opening(turns: int, mark: str) -> str:
    steps = [f'think: Step {number}.\ncall: weather {{"city": "{number}"}}\n' for number in range(turns - 1)]
    return f"How is the weather? {mark}\nscript:\n" + "---\n".join((*steps, "think: Done.\nsay: Sunny.\n"))


def converse(gateway: Running, turns: int, mark: str) -> int:
    """How many turns of one conversation were not put back."""
    dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, opening(turns, mark))
    unfound = 0
    for turn in range(turns):
        is_streaming = turn % 2 == 0
        response = dialogue.post(is_streaming=is_streaming)
        told = response.headers["x-thoughtline-replay"]
        unfound += turn - int(told.removeprefix("restored=").partition(",")[0])
        dialogue.go_on(dialogue.hear(response.content, is_streaming=is_streaming))
    return unfound


def measure(row: Row, turns: int) -> Found:
    settings, store_settings = Settings(replay=ReplaySettings(hold_ms=row.hold_ms)), StoreSettings()
    conversations = CONVERSATIONS if row.seconds else QUICK_CONVERSATIONS
    with place(row.kind) as url:
        slowed = Slowed(durable_store(url, store_settings, time.time), row.seconds)
        store = LayeredStore(slowed, store_settings, time.time)
        with running({"deepseek": served("deepseek").url}, settings, store=store) as gateway:
            unfound = sum(converse(gateway, turns, f"{row} {number}") for number in range(conversations))
            lines = _lines(gateway, conversations * turns)
    told = sum(line["store"] != "ok" for line in lines)
    untold = len(lines) - told if row.seconds > row.hold_ms / 1000 > 0 else 0
    return Found(len(lines), unfound, told, untold)


def _lines(gateway: Running, count: int) -> list[dict[str, Any]]:
    """The log, when it has a line for each request: a line is written when its save is over."""
    while True:
        lines = [line for line in gateway.lines if "captured" in line]
        if len(lines) >= count:
            return lines
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.slow_stores")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.4, 4.0])
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    rows = [Row(kind, seconds, 250) for kind in options.stores for seconds in options.seconds]
    rows += [Row(kind, 0.0, 0) for kind in options.stores]
    print(
        f"{'store':<10}{'save takes':>12}{'hold_ms':>9}{'turns':>8}{'unfound':>9}{'told':>8}{'untold':>8}", flush=True
    )
    is_well = True
    for row in rows:
        found = measure(row, options.turns)
        is_well = is_well and not (found.unfound or found.untold)
        takes = f"+{row.seconds:g} s"
        print(
            f"{row.kind:<10}{takes:>12}{row.hold_ms:>9}{found.turns:>8}{found.unfound:>9}{found.told:>8}{found.untold:>8}",
            flush=True,
        )
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
