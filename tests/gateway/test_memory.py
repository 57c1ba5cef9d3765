"""Memory stays limited, however much is offered and however slowly it is read. The figures are printed."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.gateway.gateway_processes import Process, started
from tests.gateway.gateways import Running, running
from tests.gateway.test_bytes import behind
from tests.gateway.test_faults import CHAT, event
from tests.gateway.upstreams import EVENTS, Got, Out, upstream
from tests.sim.faces import HTTP
from tests.stores.places import until_settled
from thoughtline.gateway import recent, state
from thoughtline.stores import LayeredStore, MemoryStore, Saved, StoreSettings
from thoughtline.values.errors import StoreUnavailable
from thoughtline.values.records import Record


def rss_kilobytes(process: Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


class Flood:
    """Offers a lot, and counts what was read of it."""

    def __init__(self, piece: bytes, count: int) -> None:
        self._piece = piece
        self._count = count
        self.taken = 0

    async def __call__(self, got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        for _ in range(self._count):
            await out.chunk(self._piece)
            self.taken += len(self._piece)
        await out.end()


MEBI = 2**20


ASKED = b'{"model":"m","messages":[],"stream":true}'


def connected(gateway: Process, body: bytes = ASKED, path: str = CHAT) -> socket.socket:
    host, port = gateway.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(body))
    connection.sendall(head + body)
    return connection


def settled(figure: Callable[[], int]) -> int:
    """Return a number once it has stopped growing."""
    before, same = -1, 0
    while same < 10:
        time.sleep(0.05)
        now = figure()
        before, same = now, same + 1 if now == before else 0
    return before


def test_a_slow_client_is_not_waited_for_in_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """200 MB are offered to a client that reads nothing: the upstream is not read on, and memory does not grow."""
    flood = Flood(event("x" * 100_000), 2000)
    with upstream(flood) as up, started("memory://", {"deepseek": up.url}) as gateway:
        with connected(gateway) as connection:  # what a first request loads is no part of this
            connection.recv(1000)
        up.wait_until(lambda up: up.open == 0)
        before, flood.taken = rss_kilobytes(gateway), 0
        with connected(gateway) as connection:
            connection.recv(1000)
            taken = settled(lambda: flood.taken)
            grown = rss_kilobytes(gateway) - before
        up.wait_until(lambda up: up.open == 0)
    with capsys.disabled():
        sys.stdout.write(f"\n  slow client: {taken / MEBI:.1f} MiB of 200 taken, memory grew by {grown / 1024:.1f} MiB")
    assert taken < 24 * MEBI
    assert grown < 24 * 1024


async def begins(got: Got, out: Out) -> None:
    await out.stream(EVENTS)
    await out.chunk(event("a"))
    await out.gone()


@pytest.mark.parametrize("path", [CHAT, "/deepseek/api/chat"], ids=["as it is", "translated"])
def test_what_was_asked_does_not_stay_while_it_is_answered(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Forty slow answers to conversations of 2 MB each: far less than the requests is kept."""
    said = [
        {"role": "user", "content": "x" * 1000},
        {"role": "assistant", "content": "y" * 1000},
    ]
    body = json.dumps({"model": "deepseek-v4-pro", "stream": True, "messages": said * 1000}).encode()
    with upstream(begins) as up, started("memory://", {"deepseek": up.url}) as gateway, ExitStack() as open_streams:
        httpx.get(f"{gateway.url}/healthz")
        before = rss_kilobytes(gateway)
        for _ in range(40):
            connection = open_streams.enter_context(connected(gateway, body, path))
            heard = b""
            while b'"a"' not in heard:
                heard += connection.recv(4096) or pytest.fail("the stream was cut")
        grown = rss_kilobytes(gateway) - before
    with capsys.disabled():
        sys.stdout.write(f"\n  40 x {len(body) / MEBI:.1f} MiB asked and being answered: {grown / 1024:.1f} MiB held")
    assert grown < 40 * 1024


@pytest.mark.parametrize(
    ("name", "piece", "count"),
    [
        ("events of 10 MB", event("x" * (10 * MEBI)), 20),
        ("a line without end", b"x" * MEBI, 200),
        ("events without end", event("x" * 1000), 60_000),
        ("reasoning without end", event("y" * 100_000).replace(b'"content"', b'"reasoning_content"'), 2000),
    ],
)
def test_memory_under_floods(name: str, piece: bytes, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it reaches the client; what is stored of it is limited."""
    flood = Flood(piece, count)
    with upstream(flood) as up, started("memory://", {"deepseek": up.url}) as gateway:
        httpx.get(f"{gateway.url}/healthz")
        before = rss_kilobytes(gateway)
        most = received = 0
        with connected(gateway) as connection:
            tail = b""
            while not tail.endswith(b"0\r\n\r\n"):
                data = connection.recv(MEBI)
                assert data, "the stream was cut"
                received += len(data)
                tail = (tail + data[-16:])[-16:]
                most = max(most, rss_kilobytes(gateway)) if received % 7 == 0 else most
        most = max(most, rss_kilobytes(gateway)) - before
    with capsys.disabled():
        sys.stdout.write(f"\n  {name}: {received / MEBI:.0f} MiB passed, memory grew by {most / 1024:.1f} MiB at most")
    assert received >= len(piece) * count
    assert most < 192 * 1024


FEW = StoreSettings(memory_bytes=40_000)
REQUESTS = 50
ROUNDS = 6
NUMBERS = itertools.count()


class Breakable(MemoryStore):
    """A store that can be down."""

    is_down = False

    async def save(self, records: Sequence[Record]) -> Saved:
        if self.is_down:
            raise StoreUnavailable("down")
        return await super().save(records)


async def thinks(got: Got, out: Out) -> None:
    """Each answer is different; those to "break" break off."""
    word = f"{next(NUMBERS)}"
    await out.stream(EVENTS)
    await out.chunk(event(word).replace(b'"content"', b'"reasoning_content"'))
    if b'"break"' in got.body:
        out.cut()
        return
    await out.chunk(event(word, "stop"))
    await out.end()


def converse(gateway: Running, durable: Breakable) -> None:
    """With a new caller each time. The store is down for the first half; one answer in five breaks off and is left."""
    for number in range(REQUESTS):
        durable.is_down = number < REQUESTS // 2
        word = f"{next(NUMBERS)}" if number % 5 else "break"
        messages = [{"role": role, "content": word} for role in ("user", "assistant", "user")]
        body = {"model": "deepseek-v4-pro", "stream": True, "messages": messages}
        with HTTP.stream("POST", gateway.url + CHAT, json=body, headers={"authorization": f"Bearer {word}"}) as answer:
            if word != "break":
                answer.read()
    assert isinstance(gateway.state.store, LayeredStore)
    gateway.wait_for(until_settled(gateway.state.store))


async def allocated_blocks() -> int:
    await asyncio.sleep(0)
    gc.collect()
    return sys.getallocatedblocks()


def test_nothing_stays_of_what_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits are reached after two rounds. Later requests leave fewer objects than a line of the log has."""
    monkeypatch.setattr(recent, "MAX_REQUESTS", 20)
    monkeypatch.setattr(state, "MAX_ENTRIES", 1)
    durable = Breakable(FEW, time.time)
    counts = []
    with upstream(thinks) as up, running(behind(up), store=LayeredStore(durable, FEW, time.time)) as gateway:
        for _ in range(ROUNDS):
            converse(gateway, durable)
            up.got.clear()
            counts.append(gateway.wait_for(allocated_blocks()))
    assert (counts[-1] - counts[1]) / ((ROUNDS - 2) * REQUESTS) < 4
