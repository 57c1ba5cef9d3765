"""Upstreams behind TLS: HTTP/1.1, whatever else is offered, and no request without a trusted certificate."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.gateway.forgetful_clients import TWO_TURNS, Forgetful
from tests.gateway.gateways import Running, running
from tests.gateway.test_bounds import asking
from tests.gateway.tls_front import Front, certify, front
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import CASES, HTTP, Case
from tests.sim.served_simulators import served

AT_ONCE = 24
MORE = 150

DEEPSEEK, CLAUDE = (
    next(case for case in CASES if case.id.startswith(start)) for start in ("deepseek-openai_chat", "anthropic-bound")
)
CHAT = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hello"}]}
EVENTS = [
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n',
    b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the system's own store is trusted")

Trust = Callable[[Front], None]
Place = tuple[Running, Front]


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Trust:
    """The setting for a provider with an internal certificate."""
    return lambda nginx: monkeypatch.setenv("SSL_CERT_FILE", str(nginx.authority))


@contextlib.contextmanager
def before(provider: str, url: str, trust: Trust, http2: str = "on", requests: int = 1000) -> Iterator[Place]:
    """A gateway, and the front between it and its provider."""
    with front(url, http2=http2, requests=requests) as nginx:
        trust(nginx)
        with running({provider: nginx.url}) as gateway:
            yield gateway, nginx


def talk_at_once(gateway: Running, case: Case) -> None:
    """Many clients that strip everything, half of them streaming, with two turns each: all are restored."""
    simulation = served(case.simulator, case.profile).app.simulation

    def talk(number: int) -> httpx.Response:
        opening = TWO_TURNS.format(mark=f"{case.id} {gateway.url} {number}")
        dialogue = Forgetful(f"{gateway.url}/{case.simulator}", case, opening)
        dialogue.go_on(dialogue.ask(is_streaming=number % 2 == 0))
        return dialogue.post()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(talk, range(AT_ONCE)))
    assert {answer.status_code for answer in answers} == {200}
    verdicts = [line["verdicts"] for line in list(simulation.log)[-2 * AT_ONCE :]]
    assert sorted(verdicts) == AT_ONCE * [[]] + AT_ONCE * [["whole"]]


@pytest.mark.parametrize("case", [DEEPSEEK, CLAUDE], ids=lambda case: case.id)
@pytest.mark.parametrize("http2", ["on", "off"])
def test_many_at_once(case: Case, http2: str, trust: Trust) -> None:
    """Whole and streamed, whatever is offered; the answers are right, and connections are reused."""
    with before(case.simulator, served(case.simulator, case.profile).url, trust, http2=http2) as (gateway, nginx):
        talk_at_once(gateway, case)
        seen = nginx.seen(2 * AT_ONCE)
    assert {one.protocol for one in seen} == {"HTTP/1.1"}
    assert len({one.connection for one in seen}) < 2 * AT_ONCE


def test_a_connection_that_is_given_up(trust: Trust) -> None:
    """A server closes a connection of its own accord: requests use another one."""
    with before("deepseek", served("deepseek").url, trust, requests=2) as (gateway, nginx):
        talk_at_once(gateway, DEEPSEEK)
        seen = nginx.seen(2 * AT_ONCE)
    assert len({one.connection for one in seen}) >= AT_ONCE


def _ask(
    gateway: Running, *, is_streaming: bool, client: httpx.Client = HTTP
) -> contextlib.AbstractContextManager[httpx.Response]:
    url, body = f"{gateway.url}/deepseek/v1/chat/completions", {**CHAT, "stream": is_streaming}
    return client.stream("POST", url, json=body, headers={"authorization": "Bearer k"})


def test_a_stream_goes_on_as_it_comes(trust: Trust) -> None:
    """The provider sends the second event only when the client has the first; all bytes are the provider's."""
    has_first = threading.Event()

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(EVENTS[0])
        await out.until(has_first.is_set)
        await out.chunk(EVENTS[1])
        await out.end()

    with (
        upstream(answer) as up,
        before("deepseek", up.url, trust) as (gateway, _),
        _ask(gateway, is_streaming=True) as response,
    ):
        pieces = response.iter_raw()
        heard = next(pieces)
        assert heard == EVENTS[0]
        has_first.set()
        heard += b"".join(pieces)
    assert heard == b"".join(EVENTS)


async def test_very_many_at_once(trust: Trust) -> None:
    """Nobody waits for the end of another client's answer: none of these ends before all of them have arrived."""

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(EVENTS[0])
        await out.until(lambda: len(up.got) == MORE)
        await out.chunk(EVENTS[1])
        await out.end()

    with upstream(answer) as up, before("deepseek", up.url, trust) as (gateway, nginx):
        async with httpx.AsyncClient(limits=httpx.Limits(), timeout=30) as client:
            url, body = f"{gateway.url}/deepseek/v1/chat/completions", {**CHAT, "stream": True}
            answers = await asyncio.gather(*(client.post(url, json=body) for _ in range(MORE)))
        seen = nginx.seen(MORE)
    assert {answer.content for answer in answers} == {b"".join(EVENTS)}
    assert len({one.connection for one in seen}) == MORE


def narrow() -> httpx.Client:
    """A client with a small receive buffer."""
    options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)]
    return httpx.Client(transport=httpx.HTTPTransport(socket_options=options))


def test_a_client_that_does_not_read_delays_no_other(trust: Trust) -> None:
    """Its answer stalls; those of others continue long after that."""
    whole = json.dumps({"id": "c", "choices": []}).encode()
    sent: list[int] = []

    async def answer(got: Got, out: Out) -> None:
        if not json.loads(got.body)["stream"]:
            await out.whole(200, whole)
            return
        await out.stream()
        for piece in range(1024):
            await out.chunk(b": " + b"x" * 2**16 + b"\n\n")
            sent.append(piece)
        await out.end()

    with (
        upstream(answer) as up,
        before("deepseek", up.url, trust) as (gateway, _),
        narrow() as client,
        _ask(gateway, is_streaming=True, client=client),
    ):
        seen: list[int] = []
        while seen[-100:].count(len(sent)) < 100:
            seen.append(len(sent))
            with _ask(gateway, is_streaming=False) as response:
                assert response.read() == whole
        assert len(sent) < 1024


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_what_breaks_off_breaks_off_for_the_client(is_streaming: bool, trust: Trust) -> None:
    """It never looks like an end; and the next request is served."""
    whole = json.dumps({"id": "c", "choices": []}).encode()

    async def answer(got: Got, out: Out) -> None:
        if len(up.got) > 1:
            await out.whole(200, whole)
        elif is_streaming:
            await out.stream()
            await out.chunk(EVENTS[0])
            out.cut()
        else:
            await out.head(200, ("content-type", "application/json"), ("content-length", "999"))
            await out.write(whole)
            out.cut()

    with upstream(answer) as up, before("deepseek", up.url, trust) as (gateway, _):
        with _ask(gateway, is_streaming=is_streaming) as response, pytest.raises(httpx.RemoteProtocolError):
            response.read()
        with _ask(gateway, is_streaming=False) as response:
            assert response.read() == whole


def test_an_untrusted_certificate() -> None:
    """Nothing is sent to a server with such a certificate."""
    with (
        front(served("deepseek").url) as nginx,
        running({"deepseek": nginx.url}) as gateway,
        _ask(gateway, is_streaming=False) as response,
    ):
        error = json.loads(response.read())["error"]
    assert (response.status_code, error["code"]) == (502, "upstream_unreachable")


def test_a_request_that_is_left_before_its_first_byte(trust: Trust, tmp_path: Path) -> None:
    """The provider sees its connection close at once."""
    certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    has_come, has_gone = threading.Event(), threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.recv(65536)
            has_come.set()
            with contextlib.suppress(OSError):
                while wrapped.recv(65536):
                    pass
            has_gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        trust(Front("", tmp_path / "authority.pem", io.StringIO()))
        with running({"deepseek": f"https://127.0.0.1:{listener.getsockname()[1]}"}) as gateway:
            with asking(gateway):
                assert has_come.wait(30)
                assert not has_gone.is_set()
            assert has_gone.wait(30)
