"""Gateways on one shared store: what a request costs, whether turns come back wherever it is asked, what a death does.

    python -m bench.fleet [--replicas 1 2 4] [--stores redis postgres] [--sessions 24] [--turns 24] [--json FILE]

Agents that keep no reasoning hold sessions side by side. Each request goes to another gateway than the one before,
which is the worst case: a gateway's own memory is of little use then. "restored" are turns that came back, each once
for every request that had to have it; "missing" are turns that were gone. CPU is of the gateways, and of the store's
server, for each request. "ms" and "95 %" are the time of the whole answer, at the client, in the middle and for one in
twenty, while all ask as fast as they can.

Last, one gateway of the largest number is killed (`kill -9`) half way. Whoever was being answered asks the next one
again, as a client does, and nobody asks the dead one any more, as a balancer sees to; "failed" are requests that had no
answer at first, "lost" those that never got one. Exit status 1 if a turn was lost or a request never answered.

With `THOUGHTLINE_REPLAY__HOLD_MS` in the environment an answer's end waits longer, or not at all, for its turn's save:
what `kill -9` can lose is what the client was given before it was saved.

The second table is the store's server alone: its CPU for saving a turn, for a look-up of one key and of twenty, and how
many of these one core could do; for cleaning, its CPU for each tenant. Servers are the tests' own; Redis writes each
command to disk (`appendfsync always`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bench.load.client import Answer, Connection, Failed, connect, get, post
from bench.load.contenders import CHAT_PATH
from bench.load.sessions import Session
from bench.load.usage import cpu_seconds, resident_bytes
from bench.stores import TENANT, make_turns
from tests.stores.servers import Postgres, Valkey, free_port
from thoughtline.stores import StoreSettings, durable_store
from thoughtline.values.records import Record

STORES = ("redis", "postgres")
TRIES = 3
WARM_TURNS = 4
"""Of each agent, before anything is measured: connections are open then, and nothing is done for the first time."""

STORE_CALLS = 2000
TENANTS = 1000
START_SECONDS = 60.0


class Run(NamedTuple):
    """What was asked for."""

    sessions: int
    turns: int
    kills: bool = False


class Figures(NamedTuple):
    """What came of it."""

    store: str
    replicas: int
    kills: bool
    requests: int
    per_second: float
    gateway_us: float
    store_us: float
    restored: int
    missing: int
    failed: int
    lost: int
    middle_ms: float
    late_ms: float
    megabytes: float


class Gateways:
    """The processes, by their ports."""

    def __init__(self, count: int, store: str, upstream: int, folder: Path) -> None:
        self.ports = [free_port() for _ in range(count)]
        self.processes: list[subprocess.Popen[bytes]] = []
        for port in self.ports:
            where = ["--port", str(port), "--upstream", f"http://127.0.0.1:{upstream}", "--provider", "deepseek"]
            command = [sys.executable, "-m", "thoughtline.cli", "serve", *where, "--store", store, "--log", "json"]
            home = folder / str(port)
            home.mkdir()
            environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home)}
            log = (home / "log").open("wb")
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        self._killed_seconds = 0.0

    @property
    def cpu(self) -> float:
        return self._killed_seconds + sum(cpu_seconds(process.pid) for process in self.processes)

    @property
    def memory(self) -> int:
        return max(resident_bytes(process.pid) for process in self.processes)

    def kill(self) -> None:
        """The first one, in the middle of whatever it does."""
        killed = self.processes.pop(0)
        self._killed_seconds += cpu_seconds(killed.pid)
        killed.send_signal(signal.SIGKILL)
        killed.wait()

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)


class Counted:
    """What the agents saw."""

    def __init__(self) -> None:
        self.requests = self.restored = self.missing = self.failed = self.lost = 0
        self.seconds: list[float] = []

    def count(self, answer: Answer, seconds: float) -> int:
        """How many turns of the request nobody had."""
        self.requests += 1
        self.seconds.append(seconds)
        said = dict(part.split("=") for part in answer.headers[b"x-thoughtline-replay"].decode().split(", "))
        self.restored += int(said["restored"])
        return int(said["blank"]) + int(said["missing"]) + int(said["inherited"])


class Agent:
    """One session, asked turn by turn, each at the next gateway of those that are known to answer."""

    def __init__(self, number: int, ports: list[int], counted: Counted) -> None:
        self._session = Session(f"session {number} of {time.time_ns()}", True)
        self._ports, self._next, self._counted, self._missing = ports, number, counted, 0
        self._connections: dict[int, Connection] = {}

    async def hold(self, turns: int) -> None:
        for turn in range(turns):
            await self._ask(post(self._session.request(turn), CHAT_PATH))
        self._counted.missing += self._missing
        for connection in self._connections.values():
            connection.close()

    async def _ask(self, request: bytes) -> None:
        began = time.perf_counter()
        for _ in range(TRIES):
            self._next += 1
            port = self._ports[self._next % len(self._ports)]
            try:
                answer = await self._answer(port, request)
            except (Failed, OSError):
                self._connections.pop(port, None)
                self._counted.failed += 1
                with contextlib.suppress(ValueError):
                    self._ports.remove(port)  # for all agents, as a balancer does it
                continue
            missing = self._counted.count(answer, time.perf_counter() - began)
            self._missing = max(self._missing, missing)
            return
        self._counted.lost += 1

    async def _answer(self, port: int, request: bytes) -> Answer:
        if port not in self._connections:
            self._connections[port] = await connect(port)
        answer = await self._connections[port].ask(request)
        if answer.status != 200:
            raise Failed(str(answer.status))
        return answer


async def measure(run: Run, gateways: Gateways, store_pid: int) -> tuple[Counted, float, float, float]:
    """What was seen, the seconds it took, and the CPU of gateways and store."""
    await asyncio.gather(*map(_until_ready, gateways.ports))
    await asyncio.gather(*(Agent(number, gateways.ports, Counted()).hold(WARM_TURNS) for number in range(run.sessions)))
    counted = Counted()
    before, store_before, began = gateways.cpu, cpu_seconds(store_pid), time.monotonic()
    ports = list(gateways.ports)
    agents = [Agent(number, ports, counted) for number in range(run.sessions)]
    holding = asyncio.gather(*(agent.hold(run.turns) for agent in agents))
    if run.kills:
        while counted.requests < run.sessions * run.turns / 2:
            await asyncio.sleep(0.01)
        gateways.kill()
    await holding
    return counted, time.monotonic() - began, gateways.cpu - before, cpu_seconds(store_pid) - store_before


async def _until_ready(port: int) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        with contextlib.suppress(OSError, Failed):
            connection = await connect(port)
            answer = await connection.ask(get("/readyz"))
            connection.close()
            if answer.status == 200:
                return
        await asyncio.sleep(0.1)
    raise SystemExit("a gateway did not start")


@contextlib.contextmanager
def server(kind: str) -> Iterator[tuple[str, int]]:
    """An empty store's address, and the process that serves it."""
    one: Valkey | Postgres = Valkey() if kind == "redis" else Postgres()
    try:
        yield one.url, one.pid
    finally:
        one.remove()


@contextlib.contextmanager
def provider() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.load.upstream", str(port)])
    try:
        asyncio.run(_in_session_mode(port))
        yield port
    finally:
        process.kill()
        process.wait()


async def _in_session_mode(port: int) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        with contextlib.suppress(OSError, Failed):
            connection = await connect(port)
            await connection.ask(get("/bench/mode/session"))
            connection.close()
            return
        await asyncio.sleep(0.05)
    raise SystemExit("the provider did not start")


def figures(kind: str, replicas: int, run: Run, upstream: int) -> Figures:
    with server(kind) as (url, store_pid), tempfile.TemporaryDirectory() as folder:
        gateways = Gateways(replicas, url, upstream, Path(folder))
        try:
            counted, seconds, cpu, store_cpu = asyncio.run(measure(run, gateways, store_pid))
            memory = gateways.memory
        finally:
            gateways.stop()
    times = sorted(counted.seconds)
    return Figures(
        kind,
        replicas,
        run.kills,
        requests=counted.requests,
        per_second=counted.requests / seconds,
        gateway_us=cpu / counted.requests * 1e6,
        store_us=store_cpu / counted.requests * 1e6,
        restored=counted.restored,
        missing=counted.missing,
        failed=counted.failed,
        lost=counted.lost,
        middle_ms=statistics.median(times) * 1e3,
        late_ms=times[int(len(times) * 0.95)] * 1e3,
        megabytes=memory / 2**20,
    )


def _of_tenant(turn: Record, number: int) -> Record:
    return replace(turn, provenance=replace(turn.provenance, tenant=f"{number:064x}"))


async def store_costs(kind: str) -> list[tuple[str, float]]:
    """CPU µs of the server for each call."""
    costs: list[tuple[str, float]] = []
    with server(kind) as (url, pid):
        store = durable_store(url, StoreSettings(), time.time)
        await store.open()
        turns = make_turns(STORE_CALLS)
        keys = [turn.keys[0] for turn in turns]
        calls: dict[str, list[Callable[[], Awaitable[object]]]] = {
            "save": [partial(store.save, [turn]) for turn in turns],
            "find 1": [partial(store.find, TENANT, [key]) for key in keys],
            "find 20": [partial(store.find, TENANT, keys[at : at + 20]) for at in range(0, len(keys), 20)],
            "generation": [partial(store._changes, TENANT) for _ in keys],  # type: ignore[attr-defined]  # each engine has it
        }
        for name, some in calls.items():
            before = cpu_seconds(pid)
            for at in range(0, len(some), 32):
                await asyncio.gather(*(call() for call in some[at : at + 32]))
            costs.append((name, (cpu_seconds(pid) - before) / len(some) * 1e6))
        for at in range(0, TENANTS, 100):
            await store.save([_of_tenant(turn, number) for number, turn in enumerate(make_turns(100), at)])
        before = cpu_seconds(pid)
        await store.clean()
        costs.append(("clean", (cpu_seconds(pid) - before) / TENANTS * 1e6))
        await store.close()
    return costs


HEAD = (
    f"{'store':<10}{'gateways':<12}{'requests':>9}{'per s':>7}{'gateway µs':>12}{'store µs':>10}"
    f"{'restored':>10}{'missing':>9}{'failed':>8}{'lost':>6}{'ms':>7}{'95 %':>7}{'MB each':>9}"
)


def line(one: Figures) -> str:
    gateways = f"{one.replicas}, 1 dies" if one.kills else str(one.replicas)
    return (
        f"{one.store:<10}{gateways:<12}{one.requests:>9,}{one.per_second:>7.0f}{one.gateway_us:>12,.0f}"
        f"{one.store_us:>10,.0f}{one.restored:>10,}{one.missing:>9,}{one.failed:>8,}{one.lost:>6,}"
        f"{one.middle_ms:>7.0f}{one.late_ms:>7.0f}{one.megabytes:>9.0f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.fleet")
    parser.add_argument("--replicas", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--sessions", type=int, default=24)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    run, found = Run(options.sessions, options.turns), list[Figures]()
    print(HEAD, flush=True)
    with provider() as upstream:
        for kind in options.stores:
            runs = [(count, run) for count in options.replicas]
            if max(options.replicas) > 1:
                runs.append((max(options.replicas), run._replace(kills=True)))
            for count, one in runs:
                found.append(figures(kind, count, one, upstream))
                print(line(found[-1]), flush=True)
    print(f"\n{'store':<10}{'call':<12}{'CPU µs':>8}{'a core, per s':>15}")
    for kind in options.stores:
        for name, cost in asyncio.run(store_costs(kind)):
            print(f"{kind:<10}{name:<12}{cost:>8.0f}{1e6 / cost:>15,.0f}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([one._asdict() for one in found], indent=1))
    return 1 if any(one.lost or one.missing for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
