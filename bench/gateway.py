"""What the gateway costs beside other proxies, all in one run.

    python -m bench.gateway [--rows NAME ...] [--only NAME ...] [--quick] [--rounds N] [--json FILE] [--picture FILE]

The process under test has one core to itself, the load and the upstream the other. Rounds take turns: every contender
once, then every contender again; medians count. "direct" is the upstream alone. Where turns are restored, the
conversation was played through the gateway before, and that all reasoning arrives at the upstream is verified once.

CPU: processor time of the process under test, all its threads and children, by request or by streamed chunk. First
byte: of a stream, one request at a time. Memory: what open streams take that stand still. Every row has processes of
its own and takes a few minutes at most; `--rows` runs some of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from bench.load.client import Failed
from bench.load.contenders import KINDS, Kind, Place, Process, Unavailable, start, start_upstream
from bench.load.picture import picture
from bench.load.rows import Contender, Load, Row, chosen
from bench.load.tables import Figures, Size, table
from tests.gateway.tls_front import front

PICTURED = [kind.name for kind in KINDS if kind.name in ("nginx", "thoughtline") or kind.name[-1].isdigit()]
"""Proxies as users run them, not our own variants: the others have their versions in their names."""

QUICK = Size(rounds=1, requests=150, streams=50, chunks=200, first_bytes=10, open_streams=100)
FULL = Size(rounds=5, requests=1500, streams=100, chunks=300, first_bytes=200, open_streams=1000)


class Turns:
    """One row, and the contenders that take part in it: each has its turn in every round."""

    def __init__(self, row: Row, load: Load, figures: Figures) -> None:
        self._row = row
        self._load = load
        self._figures = figures
        self._contenders: list[Contender] = []

    async def add(self, one: Contender) -> None:
        await self._load.prepare(one, self._row.conversation)
        self._contenders.append(one)

    async def measure(self) -> None:
        prepare = self._row.prepare
        if prepare is not None:
            for one in self._contenders:
                await self._alone(one, partial(prepare, self._load, one))
        for _ in range(self._row.rounds or self._load.size.rounds):
            await asyncio.sleep(self._row.pause)
            for one in self._contenders:
                await self._alone(one, partial(self._measure, one))

    async def _measure(self, one: Contender) -> None:
        self._figures.add(self._row.key, one.name, await self._row.measure(self._load, one))

    async def _alone(self, one: Contender, work: Callable[[], Awaitable[None]]) -> None:
        """Only the upstream and the one whose turn it is may run."""
        others = [other for other in self._contenders if other.kind is not None and other != one]
        for other in others:
            other.process.pause()
        one.process.go_on()
        await asyncio.sleep(0.2)
        await work()
        for other in others:
            other.process.go_on()


async def run(size: Size, rows: list[Row], only: list[str], folder: Path) -> Figures:
    load_core, test_core = _cores()
    os.sched_setaffinity(0, {load_core})
    figures = Figures()
    upstream = start_upstream(frozenset((load_core,)), folder)
    try:
        with front(f"http://127.0.0.1:{upstream.port}", requests=10**6, connections=8192) as secure:
            place = Place(upstream.port, secure.url, secure.authority, cores=frozenset((test_core,)), folder=folder)
            for row in rows:
                print(f"{row.key}: {row.name}", flush=True)
                kinds = [kind for kind in KINDS if row.key in kind.rows and _is_wanted(kind, only)]
                await _run_row(Turns(row, Load(size, upstream), figures), kinds, place, upstream)
    finally:
        upstream.stop()
    return figures


def _is_wanted(kind: Kind, only: list[str]) -> bool:
    return not only or any(name.lower() in kind.name.lower() for name in only)


async def _run_row(turns: Turns, kinds: list[Kind], place: Place, upstream: Process) -> None:
    """With processes of its own: what other rows have filled them with costs nothing here."""
    with contextlib.ExitStack() as stack:
        await turns.add(Contender(None, upstream))
        for kind in kinds:
            try:
                process = start(kind, place)
                stack.callback(process.stop)
                await turns.add(Contender(kind, process))
            except (Unavailable, Failed) as why:
                print(f"without {kind.name}: {why}", flush=True)
        await turns.measure()


def _cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this needs two cores: one for the process under test, one for the load")
    return cores[1], cores[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[], help="only these rows; a wrong name lists them")
    parser.add_argument("--only", nargs="*", default=[], help="only contenders whose names contain one of these")
    parser.add_argument("--quick", action="store_true", help="a smoke run: one short round")
    parser.add_argument("--rounds", type=int, help="how often everybody has a turn")
    parser.add_argument("--json", type=Path, help="also write every figure of every round to this file")
    parser.add_argument("--picture", type=Path, help="also draw proxies side by side into this SVG file")
    asked = parser.parse_args()
    size = QUICK if asked.quick else FULL
    size = size._replace(rounds=asked.rounds) if asked.rounds else size
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so through every `finally`
    rows = list(chosen(asked.rows))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures = uvloop.run(run(size, rows, asked.only, Path(folder)))
    print(table(figures, rows))
    if asked.picture:
        asked.picture.write_text(picture(figures, rows, PICTURED))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures.rounds)))


if __name__ == "__main__":
    main()
