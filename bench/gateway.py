"""What the gateway costs beside other proxies, all in one run.

    python -m bench.gateway [--quick] [--only NAME ...] [--rounds N] [--json FILE]

The process under test has one core to itself, the load and the upstream the other. Rounds take turns: every contender
once, then every contender again; medians count. "direct" is the upstream alone. Where turns are restored, the
conversation was played through the gateway before, and that all reasoning arrives at the upstream is verified once.

CPU: processor time of the process under test, all its threads and children, by request or by streamed chunk. First
byte: of a stream, one request at a time, above "direct". Memory: what open streams take that stand still.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import uvloop

from bench.load.bodies import CONVERSATIONS, Conversation, reasoning_in, request
from bench.load.client import Answer, Failed, ask_many, ask_once, get, open_many, post
from bench.load.contenders import CHAT_PATH, KINDS, MESSAGES_PATH, Kind, Process, Unavailable, start, start_upstream
from bench.load.messages import messages_template
from bench.load.tables import Figures, Size, table
from bench.load.usage import cpu_seconds, resident_bytes

QUICK = Size(rounds=1, requests=150, streams=50, chunks=200, first_bytes=10, open_streams=100)
FULL = Size(rounds=5, requests=1500, streams=100, chunks=300, first_bytes=200, open_streams=1000)
PLAIN, _, TURNS, LONG = CONVERSATIONS


Make = Callable[[int], bytes]
Work = Callable[[Kind | None, Process], Awaitable[None]]


class Run:
    """One upstream, and the contenders that are to be had."""

    def __init__(self, size: Size, upstream: Process) -> None:
        self._size = size
        self._upstream = upstream
        self._sent = 0
        self.contenders: list[tuple[Kind | None, Process]] = [(None, upstream)]
        self.figures = Figures()

    async def add(self, kind: Kind, process: Process) -> None:
        """A contender that listens: let it hear all conversations, and see that it does what it should."""
        if kind.translates:
            await self._set("mode/whole")
            await ask_once(process.port, self._maker(kind, PLAIN)(0))
            return
        for conversation in CONVERSATIONS:
            await self._play(conversation, process)
            if kind.restores:
                await self._verify(kind, conversation, process)

    async def measure(self) -> None:
        """Memory while the processes are young, then everything else, round by round."""
        for kind, process in self.contenders[1:]:
            await self._turn(self._open, kind, process)
        for number in range(self._size.rounds):
            print(f"round {number + 1} of {self._size.rounds}", flush=True)
            for kind, process in self.contenders:
                await self._turn(self._round, kind, process)

    async def _turn(self, work: Work, kind: Kind | None, process: Process) -> None:
        """Only the upstream and the one whose turn it is may run."""
        for _, other in self.contenders[1:]:
            if other is not process:
                other.pause()
        process.go_on()
        await asyncio.sleep(0.2)
        await work(kind, process)
        for _, other in self.contenders[1:]:
            other.go_on()

    async def _round(self, kind: Kind | None, process: Process) -> None:
        share = kind.share if kind else 1.0
        await self._set("mode/whole")
        for conversation in CONVERSATIONS:
            count = max(20, int(self._size.requests * share * (0.25 if conversation == LONG else 1)))
            await self._requests(process, conversation, count, self._maker(kind, conversation))
        await self._chunks(process, share, self._maker(kind, PLAIN, True))
        await self._set("stream/3")
        for conversation in (PLAIN, TURNS):
            await self._first_byte(process, conversation, self._maker(kind, conversation, True))

    async def _requests(self, process: Process, conversation: Conversation, count: int, make: Make) -> None:
        connections = 16 if conversation == LONG else 32
        await ask_many(process.port, make, min(count, 100), connections)
        before = cpu_seconds(process.pid)
        await ask_many(process.port, make, count, connections)
        spent = cpu_seconds(process.pid) - before
        self.figures.add(conversation.name, process.name, spent / count * 1e6)

    async def _chunks(self, process: Process, share: float, make: Make) -> None:
        streams = max(10, int(self._size.streams * min(1.0, share * 10)))
        await self._set(f"stream/{self._size.chunks}")
        await self._set("mode/stream")
        before = cpu_seconds(process.pid)
        await ask_many(process.port, make, streams, streams)
        spent = cpu_seconds(process.pid) - before
        self.figures.add("chunk", process.name, spent / (streams * self._size.chunks) * 1e6)

    async def _first_byte(self, process: Process, conversation: Conversation, make: Make) -> None:
        times = await ask_many(process.port, make, self._size.first_bytes, 1)
        self.figures.add(f"first byte, {conversation.name}", process.name, statistics.median(times) * 1000)

    async def _open(self, kind: Kind | None, process: Process) -> None:
        count = max(50, int(self._size.open_streams * min(1.0, (kind.share if kind else 1.0) * 10)))
        await self._set("mode/whole")
        await ask_many(process.port, self._maker(kind, PLAIN), 50, 10)
        await self._set("mode/idle")
        before = resident_bytes(process.pid)
        opened = await open_many(process.port, self._maker(kind, PLAIN, True), count)
        await asyncio.sleep(0.5)
        grown = resident_bytes(process.pid) - before
        for connection in opened:
            connection.close()
        await asyncio.sleep(1.0)
        self.figures.add("memory", process.name, grown / count / 1000)

    def _maker(self, kind: Kind | None, conversation: Conversation, is_streaming: bool = False) -> Make:
        """Requests in the client's format, no two of them the same."""
        path = kind.path if kind else CHAT_PATH
        template_of = messages_template if path == MESSAGES_PATH else Conversation.template
        template = template_of(conversation, is_streaming)

        def make(_: int) -> bytes:
            self._sent += 1
            return post(template.numbered(self._sent), path)

        return make

    async def _play(self, conversation: Conversation, process: Process) -> None:
        """Go through a conversation turn by turn, so that whoever remembers has something to remember."""
        await self._set("mode/turns")
        for turns in range(conversation.turns):
            await ask_once(process.port, post(request(conversation, turns), CHAT_PATH))

    async def _verify(self, kind: Kind, conversation: Conversation, process: Process) -> None:
        """All turns come back at the upstream, and the answer says so."""
        await self._set("mode/check")
        answer = await ask_once(process.port, self._maker(kind, conversation)(0))
        told = answer.headers.get(b"x-thoughtline-replay", b"").decode()
        if not told.startswith(f"restored={conversation.turns},"):
            raise SystemExit(f"{process.name} does not restore {conversation.name}: {told!r}")
        wanted = [conversation.thought(number) for number in range(conversation.turns)]
        if reasoning_in((await self._set("last")).body) != wanted:
            raise SystemExit(f"{process.name} says it restored {conversation.name}, and the upstream did not get it")

    async def _set(self, what: str) -> Answer:
        return await ask_once(self._upstream.port, get(f"/bench/{what}"))


async def run(size: Size, only: list[str], folder: Path) -> Figures:
    load_core, test_core = _cores()
    os.sched_setaffinity(0, {load_core})
    upstream = start_upstream(load_core, folder)
    running = Run(size, upstream)
    try:
        for kind in KINDS:
            if only and not any(name.lower() in kind.name.lower() for name in only):
                continue
            await _take_in(running, kind, upstream.port, test_core, folder)
        await running.measure()
    finally:
        for _, process in reversed(running.contenders):
            process.stop()
    return running.figures


async def _take_in(running: Run, kind: Kind, upstream: int, core: int, folder: Path) -> None:
    """Start a contender, or say why it is left out."""
    try:
        process = start(kind, upstream, core, folder)
    except Unavailable as why:
        print(f"without {kind.name}: {why}", flush=True)
        return
    try:
        await running.add(kind, process)
        running.contenders.append((kind, process))
    except Failed as why:
        print(f"without {kind.name}: {why}", flush=True)
    finally:
        if (kind, process) not in running.contenders:
            process.stop()


def _cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this needs two cores: one for the process under test, one for the load")
    return cores[1], cores[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run: one short round")
    parser.add_argument("--only", nargs="*", default=[], help="only contenders whose names contain one of these")
    parser.add_argument("--rounds", type=int, help="how often everybody has a turn")
    parser.add_argument("--json", type=Path, help="also write every figure of every round to this file")
    asked = parser.parse_args()
    size = QUICK if asked.quick else FULL
    size = size._replace(rounds=asked.rounds) if asked.rounds else size
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so through every `finally`
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures = uvloop.run(run(size, asked.only, Path(folder)))
    print(table(figures, size))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures.rounds)))


if __name__ == "__main__":
    main()
