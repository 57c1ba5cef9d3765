"""Live events, including those of the other workers of a machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.gateway.managed_gateways import CACHE, TOKEN, Json, Managed, managed
from tests.sim.served_simulators import served
from thoughtline.gateway.admin.events import MAX_LISTENERS, events, require_room
from thoughtline.gateway.admin.request_answers import RequestRow
from thoughtline.gateway.bus import Bus, StoreCounts
from thoughtline.gateway.explaining import row_of
from thoughtline.gateway.journal import MAX_WAITING, Journal, Line
from thoughtline.gateway.recent import Served
from thoughtline.settings import Settings
from thoughtline.stores.base import Counters
from thoughtline.values.errors import Declined

EVENTS = "/api/events"


class Heard:
    """A stream of events that is being read."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()
        assert next(self._lines) == ": listening"
        assert next(self._lines) == ""

    def next(self) -> tuple[str, Json]:
        name, data, end = (next(self._lines) for _ in range(3))
        assert end == ""
        return name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))

    def rest(self) -> list[str]:
        return list(self._lines)


@contextlib.contextmanager
def listening(gateway: Managed) -> Iterator[Heard]:
    with gateway.admin.stream("GET", EVENTS, timeout=30) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        yield Heard(response)


def row(number: int = 0) -> RequestRow:
    line = Line(
        at=float(number),
        request=f"r{number}",
        tenant="t",
        method="POST",
        route="generate",
        provider="deepseek",
        format="openai_chat",
        model="m",
        status=200,
    )
    served = Served(line, True, 0.0, 0.0, None, "/v1", "", "", "", "", None, ())
    return row_of(served, "w")


def test_a_request_is_told_as_it_goes() -> None:
    """Begin, first byte and end, under one id: with the counts of the log, and without content."""
    with managed() as gateway, listening(gateway) as one, listening(gateway) as other:
        answers = gateway.ask("list the files", key="a-secret-key", turns=2)
        heard = [one.next() for _ in range(6)]
        assert [other.next() for _ in range(6)] == heard
        logged = gateway.gateway.lines
    assert [name for name, _ in heard] == ["begun", "streaming", "done"] * 2
    assert [data["phase"] for _, data in heard] == [name for name, _ in heard]
    assert [data["id"] for _, data in heard] == [line["request"] for line in logged for _ in range(3)]
    assert (
        [data["restored"] for name, data in heard if name == "done"] == [line["restored"] for line in logged] == [0, 1]
    )
    assert [data["outcome"] for _, data in heard] == ["pending", "pending", "ok", "pending", "pending", "restored"]
    assert {data["model"] for _, data in heard} == {"deepseek-v4-pro"}
    told = str(heard)
    assert not [one for one in answers if one["reasoning_content"] in told]
    assert "a-secret-key" not in told


def test_who_leaves_is_forgotten() -> None:
    """A listener that disconnects costs nothing from then on."""
    with managed() as gateway:
        journal = gateway.gateway.state.journal
        with listening(gateway) as heard:
            assert (heard.response.status_code, journal.listeners) == (200, 1)
        running = gateway.gateway
        asyncio.run_coroutine_threadsafe(_until(lambda: journal.listeners == 0), running.loop).result(20)


def test_a_stop_does_not_wait_for_listeners() -> None:
    """The server ends during a subscription: the stream ends properly, well within the grace period."""
    ended: list[list[str]] = []
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(headers=headers) as client, contextlib.ExitStack() as connection:
        with managed() as gateway:
            heard = Heard(connection.enter_context(client.stream("GET", gateway.url + EVENTS, timeout=30)))
            reading = threading.Thread(target=lambda: ended.append(heard.rest()), daemon=True)
            reading.start()
        reading.join(10)
        assert ended == [[]]


async def test_slow_listeners_lose_the_oldest_and_are_notified() -> None:
    """Lines beyond the limit push out the oldest; their number comes before the next line."""
    journal = Journal()
    stream = events(journal)
    assert await anext(stream) == b": listening\n\n"
    for number in range(MAX_WAITING + 3):
        journal.publish(row(number))
    assert await anext(stream) == b'event: lost\ndata: {"count":3}\n\n'
    assert b'"id":"r3"' in await anext(stream)
    assert b'"id":"r4"' in await anext(stream)
    await stream.aclose()


async def test_silence_is_kept_alive() -> None:
    """A comment is sent when nothing happens."""
    stream = events(Journal(), keep_alive_seconds=0.0)
    assert await anext(stream) == b": listening\n\n"
    assert await anext(stream) == b": nothing\n\n"
    await stream.aclose()


def test_listeners_are_bounded() -> None:
    """Beyond the limit the next one is refused."""
    journal = Journal()
    for _ in range(MAX_LISTENERS):
        require_room(journal)
        journal.listen()
    with pytest.raises(Declined) as refused:
        require_room(journal)
    assert refused.value.status == 429


def worker(directory: str | None) -> Settings:
    return Settings(bus_directory=directory)


def test_workers_of_one_machine_hear_each_other(tmp_path: Path) -> None:
    """Two workers with one directory: a request at one is reported at the other, and both count together."""
    directory = tempfile.mkdtemp()
    url = f"sqlite:///{tmp_path}/kept.db"
    with managed(worker(directory), url) as one, managed(worker(directory), url) as other, listening(other) as heard:
        one.ask("list the files", turns=2)
        other.ask("and here")
        told = [heard.next() for _ in range(9)]
        assert sorted(data["restored"] for name, data in told if name == "done") == [0, 0, 1]
        stats = [gateway.get(CACHE)["stats"] for gateway in (one, other)]
        assert stats[1]["replays"] == 1
        assert len(one.gateway.lines) == 2
        assert other.admin.delete(CACHE).status_code == 200
        assert other.get(CACHE)["stats"]["hits"] == 0
    assert os.listdir(directory) == []
    os.rmdir(directory)


@contextlib.contextmanager
def served_by_workers(folder: Path) -> Iterator[str]:
    """`thoughtline serve` with three workers, stopped by a signal."""
    settings = folder / "thoughtline.toml"
    settings.write_text(
        f'[server]\nadmin_token = "{TOKEN}"\nworkers = 3\n[store]\nurl = "sqlite:///{folder}/kept.db"\n'
        f'[providers.deepseek]\nbase_url = "{served("deepseek").url}"\n'
    )
    command = [sys.executable, "-m", "thoughtline.cli", "serve", "--config", str(settings), "--port", "0"]
    environment = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            banner = next(line for line in process.stderr if "listening" in line)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield banner.split()[1].partition("/PROVIDER")[0]
        finally:
            process.terminate()
            assert process.wait(60) == 0


def test_whichever_worker_serves_it_is_heard_and_counted(tmp_path: Path) -> None:
    """A start with three workers: any of them lists the requests of all, and one page counts them all; a listener at
    one of them receives all."""
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": f"Bearer {TOKEN}"}
    with served_by_workers(tmp_path) as url, httpx.stream("GET", url + EVENTS, headers=headers, timeout=60) as stream:
        heard = Heard(stream)

        def ask() -> str:
            asked = httpx.post(f"{url}/deepseek/v1/chat/completions", json=body, headers={"authorization": "Bearer x"})
            return asked.headers["x-thoughtline-request"]

        asked = [ask() for _ in range(20)]
        assert 'status="2xx"} 20.0' in httpx.get(url + "/metrics").text
        for _ in range(6):
            page = httpx.get(f"{url}/api/requests", headers=headers).json()
            assert (sorted(row["id"] for row in page["requests"]), page["isWhole"]) == (sorted(asked), True)
        workers = {row["worker"] for row in page["requests"]}
        for request in asked:
            assert httpx.get(f"{url}/api/requests/{request}", headers=headers).json()["id"] == request
        series = httpx.get(f"{url}/api/series", headers=headers).json()
        assert sum(series["requests"]) == 20
        going = threading.Event()
        asking = threading.Thread(target=lambda: [ask() for _ in iter(going.is_set, True)])
        asking.start()
        while workers:
            workers.discard(heard.next()[1]["worker"])
        going.set()
        asking.join()


class Neighbours:
    """Some buses in one directory, each with its journal."""

    def __init__(self, directory: str, count: int) -> None:
        self.journals = [Journal() for _ in range(count)]
        self.counters = [Counters() for _ in range(count)]
        pairs = zip(self.journals, self.counters, strict=True)
        self.buses = [Bus(directory, journal, counters) for journal, counters in pairs]
        for bus in self.buses:
            bus.open()

    async def close(self) -> None:
        for bus in self.buses:
            await bus.close()


@pytest.fixture
async def directory() -> str:
    return tempfile.mkdtemp()


async def test_a_reset_reaches_everybody(directory: str) -> None:
    """All reset their counts, whichever got the request."""
    some = Neighbours(directory, 3)
    some.counters[0].hits, some.counters[1].misses, some.counters[2].replays = 5, 6, 7
    for bus in some.buses:
        bus.report_counts()
    await _until(lambda: all(bus.counts == StoreCounts(5, 6, 7) for bus in some.buses))
    some.buses[1].reset_counts()
    await _until(lambda: all(bus.counts == StoreCounts() for bus in some.buses))
    assert [bus.counts for bus in some.buses] == [StoreCounts()] * 3
    await some.close()


async def test_a_worker_that_died_is_cleared_away(directory: str) -> None:
    """The socket of a killed worker is removed, and does no harm."""
    some = Neighbours(directory, 3)
    dead = some.buses[0]
    assert dead._socket is not None
    asyncio.get_running_loop().remove_reader(dead._socket.fileno())
    dead._socket.close()
    dead._socket = None
    listener = some.journals[2].listen()
    await _until(lambda: some.journals[1].is_watched)
    some.journals[1].publish(row(1))
    some.buses[1].flush()
    assert (await asyncio.wait_for(listener.next(), 10)).id == "r1"
    assert len(os.listdir(directory)) == 2
    await some.close()


async def test_a_neighbour_that_does_not_read_loses_lines_and_is_notified(directory: str) -> None:
    """No worker waits for it: messages that don't fit are counted, and the count comes with the next one that fits."""
    some = Neighbours(directory, 2)
    listener = some.journals[1].listen()
    await _until(lambda: some.journals[0].is_watched)
    total = 20_000
    for number in range(total):
        some.journals[0].publish(row(number))
        if number % 100 == 0:
            some.buses[0].flush()
    some.buses[0].flush()
    received = 0
    while some.buses[0]._lost or received + listener.lost < total:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                while True:
                    await listener.next()
                    received += 1
        some.buses[0].report_counts()
    assert received + listener.lost == total
    assert listener.lost > 0
    await some.close()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
async def test_a_directory_that_is_open_to_others_is_not_used(directory: str, mode: int) -> None:
    """Other users must not read or forge messages: such a worker knows only itself."""
    os.chmod(directory, mode)
    some = Neighbours(directory, 1)
    assert not some.buses[0].is_open
    assert os.listdir(directory) == []


async def test_no_directory_no_bus(tmp_path: Path) -> None:
    """None, one that is missing, one whose name is too long: only the worker's own lines are reported."""
    for directory in (None, str(tmp_path / "missing"), str(tmp_path / ("x" * 200))):
        journal = Journal()
        bus = Bus(directory, journal, Counters())
        bus.open()
        assert not bus.is_open
        listener = journal.listen()
        journal.publish(row(1))
        assert (await listener.next()).id == "r1"
        bus.reset_counts()
        await bus.close()


async def test_what_is_no_message_is_ignored(directory: str) -> None:
    """From another version, or truncated."""
    some = Neighbours(directory, 2)
    for message in (b"", b"{", b"[]", b'{"worker": 1}', b"\xff"):
        some.buses[0]._receive(message)
    assert some.buses[0].counts == StoreCounts()
    await some.close()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0)
