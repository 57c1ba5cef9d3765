"""Connections within limits of size, time and number, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from tests import hostile
from tests.gateway.gateway_processes import started
from tests.gateway.gateways import Running, running
from tests.gateway.test_bytes import ANSWER, CHAT, behind, say_hi
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from tests.sim.faces import HTTP
from thoughtline.gateway.protocol import BoundedProtocol
from thoughtline.settings import ServerSettings, Settings

QUICK = ServerSettings(head_timeout_seconds=0.5, body_timeout_seconds=0.5)
BEGUN = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{" % CHAT.encode()
HALF_HEAD = b"GET /healthz HTTP/1.1\r\nhost: localh"
ASKED = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


def connected(gateway: Running) -> socket.socket:
    host, port = gateway.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def to_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


@contextlib.contextmanager
def bounded(server: ServerSettings, up: Upstream | None = None) -> Iterator[Running]:
    with running(behind(up) if up else {}, replace(Settings(), server=server)) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"", b""), (HALF_HEAD, b"408"), (BEGUN, b"408"), (ASKED + HALF_HEAD, b"408")],
    ids=["nothing", "half a head", "half a body", "half a head behind a request"],
)
def test_a_slow_client_is_disconnected(sent: bytes, status: bytes) -> None:
    """The connection is closed, and a client that has begun a request is told why."""
    with bounded(QUICK) as gateway, connected(gateway) as connection:
        connection.sendall(sent)
        answer = to_the_end(connection)
        assert answer.rpartition(b"HTTP/1.1 ")[2][:3] == status
        assert gateway.app.connections.held <= 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2**17,
        b"GET /healthz?" + b"a" * 40_000 + b" HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 40_000 + b"\r\n\r\n",
    ],
    ids=["without an end", "with its target"],
)
def test_a_head_has_an_end(sent: bytes) -> None:
    """The gateway doesn't wait for it once it is too large; the target is part of it."""
    with bounded(ServerSettings()) as gateway, connected(gateway) as connection:
        connection.sendall(sent)
        assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


def connections(gateway: Running) -> list[BoundedProtocol]:
    """The connections on the gateway's side."""
    return [one for one in gateway.server.server_state.connections if isinstance(one, BoundedProtocol)]


def receiving(gateway: Running) -> BoundedProtocol:
    """The only connection, after the head of a request has arrived."""
    gateway.wait_for(_until(lambda: any(one._is_in_body for one in connections(gateway))))
    (one,) = connections(gateway)
    return one


async def _is_late(one: BoundedProtocol, arrived: int) -> None:
    """`body_timeout` has elapsed, and this much of the body has arrived since the last time."""
    await _until(lambda: one._body_bytes >= arrived)
    one._late_body()


HEAD = b"POST %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"


def test_a_body_that_goes_on_is_waited_for() -> None:
    """As long as some of it arrives in time, however long the whole takes."""
    body = b'{"model":"m","messages":[],"x":"' + b"a" * 40_000 + b'"}'
    with upstream(say_hi) as up, bounded(ServerSettings(), up) as gateway, connected(gateway) as connection:
        connection.sendall(HEAD % (CHAT.encode(), len(body)))
        one = receiving(gateway)
        for start in range(0, 40_000, 8_000):
            connection.sendall(body[start : start + 8_000])
            gateway.wait_for(_is_late(one, 8_000))
        connection.sendall(body[40_000:])
        assert to_the_end(connection).endswith(ANSWER)


def test_a_trickle_is_not() -> None:
    """A few bytes now and then would hold a connection for ever."""
    with bounded(ServerSettings()) as gateway, connected(gateway) as connection:
        connection.sendall(BEGUN)
        one = receiving(gateway)
        connection.sendall(b"a" * 100)
        gateway.wait_for(_is_late(one, 100))
        assert one.transport.is_closing()
        assert to_the_end(connection).startswith(b"HTTP/1.1 408 ")


def test_no_client_is_late_while_the_gateway_does_not_read() -> None:
    """The client's data may wait in the system's buffers."""

    async def busy() -> None:
        one.flow.pause_reading()
        one._late_body()
        one.flow.resume_reading()

    body = b'{"model":"m","messages":[]}'
    with upstream(say_hi) as up, bounded(ServerSettings(), up) as gateway, connected(gateway) as connection:
        connection.sendall(HEAD % (CHAT.encode(), len(body)))
        one = receiving(gateway)
        gateway.wait_for(busy())
        connection.sendall(body)
        assert to_the_end(connection).endswith(ANSWER)


def test_a_client_answered_before_its_body_gets_no_second_answer() -> None:
    """A body that is too large is refused by its head; then the gateway doesn't wait for it, and says nothing else."""
    server = ServerSettings(max_body_bytes=1000)
    with bounded(server) as gateway, connected(gateway) as connection:
        connection.sendall(b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000\r\n\r\n{" % CHAT.encode())
        heard = connection.recv(65536)
        for one in connections(gateway):
            gateway.wait_for(_is_late(one, 0))
        heard += to_the_end(connection)
        assert (heard[:12], heard.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 413", 1)


@pytest.mark.parametrize("most", [{"max_connections": 3}, {"max_connections_per_address": 3}])
def test_connections_are_counted(most: dict[str, int]) -> None:
    """One too many is refused and logged; after another has left there is room again."""
    with bounded(replace(ServerSettings(), **most)) as gateway, contextlib.ExitStack() as held:
        first = [held.enter_context(connected(gateway)) for _ in range(3)]
        for connection in first:
            connection.sendall(ASKED)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        with connected(gateway) as refused:
            assert to_the_end(refused).startswith(b"HTTP/1.1 503")
        assert any("connections refused" in str(line) for line in gateway.lines)
        first[0].sendall(ASKED.replace(b"localhost", b"localhost\r\nconnection: close"))
        to_the_end(first[0])
        with connected(gateway) as again:
            again.sendall(ASKED)
            assert again.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("bad", [b"GET / HTTP/1.1\r\nx: " + b"a" * 2**18, b"no request at all\r\n\r\n"])
def test_a_refusal_stands_in_no_other_answer(bad: bytes) -> None:
    """An error of the next request is not written into a stream: the stream ends, then the connection closes."""

    async def stream(got: Got, out: Out) -> None:
        await out.stream(("content-type", "text/event-stream"))
        await out.chunk(b"data: one\n\n")
        await out.until(lambda: has_sent)
        await out.until_later()
        await out.chunk(b"data: two\n\n")
        await out.end()

    has_sent = False
    with upstream(stream) as up, bounded(ServerSettings(), up) as gateway, connected(gateway) as connection:
        body = b'{"model":"m","messages":[],"stream":true}'
        head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % (CHAT.encode(), len(body)) + body)
        heard = connection.recv(65536)
        connection.sendall(bad)
        has_sent = True
        heard += to_the_end(connection)
        assert heard.count(b"HTTP/1.1") == 1
        assert heard.endswith(b"0\r\n\r\n")


HI = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
POST = b"POST %b HTTP/1.1\r\nhost: localhost\r\n" % CHAT.encode()
OFFER = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAA\r\n"
WITH_LENGTH = b"content-length: %d\r\n\r\n" % len(HI) + HI
IN_CHUNKS = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(HI), HI)


@pytest.mark.parametrize("size", [1, 100, 10_000])
@pytest.mark.parametrize("body", [WITH_LENGTH, IN_CHUNKS], ids=["length", "chunks"])
def test_a_client_that_offers_another_protocol(body: bytes, size: int) -> None:
    """As Java's does with its first request. It is served over HTTP/1.1, body included, and so are the following
    ones."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"choices":[]}')

    sent = POST + OFFER + body + POST + body + POST + OFFER + b"connection: close\r\n" + body
    with upstream(answer) as up, bounded(ServerSettings(), up) as gateway, connected(gateway) as connection:
        for at in range(0, len(sent), size):
            connection.sendall(sent[at : at + size])
        assert to_the_end(connection).count(b"HTTP/1.1 200") == 3
        assert [got.body for got in up.got] == [HI] * 3
        assert all(got.header("http2-settings") is None for got in up.got)


@pytest.mark.parametrize(
    "body",
    [
        b"transfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        b"transfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"transfer-encoding: xchunked\r\n\r\nabc",
    ],
    ids=["size", "longer than told", "another coding"],
)
@pytest.mark.parametrize("before", [b"", ASKED], ids=["alone", "behind another"])
def test_a_body_that_is_malformed(body: bytes, before: bytes) -> None:
    """It is answered at once, or soon if it follows a request that is being answered."""
    with bounded(QUICK) as gateway, connected(gateway) as connection:
        connection.sendall(before + POST + body)
        status = to_the_end(connection).rpartition(b"HTTP/1.1 ")[2][:3]
        assert status == b"400" or (before and status == b"408")


def test_a_hostile_client() -> None:
    """Everything that `python -m tests.hostile` does: `/healthz` answers throughout, and nothing is left over."""
    with upstream(say_hi) as up, started("memory://", {"deepseek": up.url}) as gateway:
        host, port = gateway.url.removeprefix("http://").split(":")
        target = hostile.Target(host, int(port), CHAT, 30.0)
        assert HTTP.get(f"{gateway.url}/healthz").status_code == 200
        before, opened = hostile.rss_kilobytes(gateway.pid), hostile.descriptors(gateway.pid)
        outcomes = list(hostile.attack(target))
        assert [outcome for outcome in outcomes if outcome.problem] == []
        assert hostile.settled(gateway.pid, opened + hostile.MAX_LEFT_OPEN, 30.0) <= opened + hostile.MAX_LEFT_OPEN
        assert hostile.rss_kilobytes(gateway.pid) - before < hostile.MAX_GROWN_KB
