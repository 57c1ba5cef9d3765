"""Few bytes never cause a lot of work, and abandoned work is not kept for long."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import zstandard

from tests.gateway.gateways import Running, running
from tests.gateway.test_bytes import CHAT, behind, say_hi
from tests.gateway.test_faults import event, without_end
from tests.gateway.test_serving import WAIT_SECONDS, _until_closed, serving
from tests.gateway.upstreams import EVENTS, Got, Out, upstream
from tests.sim.faces import HTTP
from thoughtline.engine.threads import WORK_SHARE, WorkShare
from thoughtline.formats import weighing
from thoughtline.gateway import relay, saving
from thoughtline.gateway.in_flight import InFlight
from thoughtline.gateway.relay import Disconnect
from thoughtline.gateway.saving import Abandoned

Result = TypeVar("Result")
MANY = b'{"model":"m","messages":[' + b"{}," * 110_000 + b"{}]}"
LONG = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}] * (weighing.MAX_TURNS + 1)}).encode()


@pytest.mark.parametrize("body", [MANY, LONG], ids=["values", "turns"])
def test_what_is_too_much_to_read_is_passed_on(body: bytes) -> None:
    """Byte for byte; the header and the log say that it was not read."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, content=body)
        assert response.status_code == 200
        assert response.headers["x-thoughtline-replay"].endswith("unread=1")
        assert up.got[0].body == body
        assert gateway.lines[-1]["note"] == "unread"


@pytest.mark.parametrize(
    ("path", "member"),
    [("/kimi/v1/responses", b'"input"'), ("/kimi/v1beta/models/m:generateContent", b'"contents"')],
)
def test_what_is_too_much_to_read_is_not_translated(path: str, member: bytes) -> None:
    """It can't be passed on: the answer is a 413, and nothing is sent."""
    with upstream(say_hi) as up, running(behind(up, "kimi")) as gateway:
        response = HTTP.post(gateway.url + path, content=MANY.replace(b'"messages"', member))
        assert response.status_code == 413
        assert up.got == []


def test_a_model_that_would_have_to_be_renamed() -> None:
    """A body that is not read can't be changed either."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        body = MANY.replace(b'"m"', b'"deepseek/m"', 1)
        assert HTTP.post(f"{gateway.url}/v1/chat/completions", content=body).status_code == 413
        assert up.got == []


@pytest.mark.parametrize(("size", "status"), [(2**20 - 2**10, 200), (3 * 2**20, 413)])
def test_few_bytes_do_not_become_very_many(size: int, status: int) -> None:
    """A hundred times as many, or a megabyte."""
    body = b'{"model":"m","messages":[],"x":"' + b"a" * size + b'"}'
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        packed = zstandard.compress(body)
        response = HTTP.post(gateway.url + CHAT, content=packed, headers={"content-encoding": "zstd"})
        assert response.status_code == status


def test_large_work_is_done_aside() -> None:
    """A long conversation is decoded and planned in a thread, for its tenant; a short one is not."""
    threads: set[str] = set()
    shares: set[WorkShare] = set()
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        work = gateway.state.background.work

        async def noted(do: Callable[[], Result]) -> Result:
            shares.add(WORK_SHARE.get())

            def there() -> Result:
                threads.add(threading.current_thread().name)
                return do()

            return await work(there)

        gateway.state.replayer._work = noted
        turns = [{"role": "user", "content": "a"}] * 50
        short = {"model": "m", "messages": turns}
        assert HTTP.post(gateway.url + CHAT, json=short).status_code == 200
        assert threads == set()
        long = json.dumps({**short, "messages": turns * 100}).encode()
        for key in ("one", "other"):
            headers = {"authorization": f"Bearer {key}"}
            assert HTTP.post(gateway.url + CHAT, content=long, headers=headers).status_code == 200
        assert {share.size for share in shares} == {len(long)}
        assert len({share.tenant for share in shares}) == 2
        assert threads
        assert all(name.startswith("thoughtline-work") for name in threads)


def asking(gateway: Running, body: bytes = b'{"model":"m","messages":[],"stream":true}') -> socket.socket:
    host, port = gateway.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    head = b"POST %b HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n"
    connection.sendall(head % (CHAT.encode(), len(body)) + body)
    return connection


def test_the_newest_abandoned_answer_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One limit for all clients together."""
    monkeypatch.setattr(saving, "MAX_ABANDONED_BYTES", 100)
    kept = Abandoned()
    first, second, third = (Disconnect(1.0, kept, InFlight()) for _ in range(3))
    for one in (first, second, third):
        one.has_left = True
    first.hold(40)
    second.hold(40)
    third.hold(30)
    assert [one.is_over for one in (first, second, third)] == [False, False, True]
    first.hold(70)
    assert [one.is_over for one in (first, second)] == [False, True]
    first.stop()
    assert kept._bytes == 0


def test_abandoned_streams_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless streams are read on only within the common limit."""
    monkeypatch.setattr(saving, "MAX_ABANDONED_BYTES", 2**20)
    monkeypatch.setattr(relay, "DRAIN_BYTES", 2**40)
    with upstream(without_end) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        clients = [asking(gateway) for _ in range(4)]
        for client in clients:
            client.recv(4096)
        for client in clients:
            client.close()
        assert {next_line().note for _ in range(4)} == {"the client left; not read to the end"}
        up.wait_until(lambda up: up.open == 0)


def test_a_long_event_is_read_aside_and_remembered() -> None:
    """An event of a megabyte is passed on unchanged, and the turn is stored."""
    text = "x" * 2**20

    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        await out.chunk(event(text))
        await out.chunk(event("", "stop"))
        await out.end()

    with upstream(answer) as up, running(behind(up)) as gateway:
        body = {"model": "m", "messages": [{"role": "user", "content": "a"}], "stream": True}
        assert text in HTTP.post(gateway.url + CHAT, json=body).text
        assert gateway.lines[-1]["captured"] == 1


def test_workers_stop_listening_at_once(tmp_path: Path) -> None:
    """While one of them is busy with a stream, no client is accepted after SIGTERM."""

    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        await out.chunk(event("a"))
        await out.until(lambda: is_closed)
        await out.chunk(event("b", "stop"))
        await out.end()

    is_closed = False
    with upstream(answer) as up:
        more = ("--workers", "2", "--upstream", up.url, "--provider", "deepseek")
        with serving(tmp_path, *more) as gateway:
            body = {"model": "m", "messages": [], "stream": True}
            with HTTP.stream("POST", f"{gateway.url}/v1/chat/completions", json=body) as response:
                pieces = response.iter_raw()
                next(pieces)
                os.kill(gateway.process.pid, signal.SIGTERM)
                _until_closed(gateway.url)
                is_closed = True
                assert b'"b"' in b"".join(pieces)
            gateway.process.wait(WAIT_SECONDS)
