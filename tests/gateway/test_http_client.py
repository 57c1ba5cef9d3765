"""The HTTP client: its requests, its responses, and its connections."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import uvloop

from tests.gateway.tls_front import certify
from thoughtline.destinations.catalogue import Timeouts
from thoughtline.gateway import http_client
from thoughtline.gateway.connecting import ConnectFailed
from thoughtline.gateway.http_client import (
    MAX_HEAD_BYTES,
    MAX_PIECES,
    MAX_UNREAD_BYTES,
    Connection,
    HttpClient,
    Origin,
    UpstreamCut,
    UpstreamResponse,
)

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"content-length: 2\r\n\r\nhi"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request on a connection as scripted, and records connections."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.asked: list[bytes] = []
        self.accepted = 0
        self.closed = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().rpartition(b"content-length: ")[2].partition(b"\r\n")[0]
                body = await reader.readexactly(int(length)) if length.isdigit() else b""
                self.asked.append(head + body)
                answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
                if not answer:
                    break
                writer.write(answer.removesuffix(b"<end>"))
                if answer.endswith(b"<end>"):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def serving(server: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[HttpClient]:
    """A listening server, and a client for it."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    scheme = "https" if context else "http"
    server.url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    client = HttpClient()
    try:
        yield client
    finally:
        client.close()
        listening.close()


async def whole(response: UpstreamResponse) -> bytes:
    """Return the whole body. Raises `UpstreamCut`."""
    pieces = []
    while (piece := await response.read()) is not None:
        pieces.append(piece)
    await response.close()
    return b"".join(pieces)


async def get(client: HttpClient, server: Server, method: str = "GET") -> tuple[int, bytes]:
    response = await client.send(method, f"{server.url}/")
    return response.status, await whole(response)


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS context; its authority is trusted."""
    certify(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    return context


# --- responses that are good ------------------------------------------------------------------------------------------


class Good(NamedTuple):
    """A response in wire form, its content, and whether its connection is reusable."""

    name: str
    wire: bytes
    body: bytes = b""
    status: int = 200
    is_kept: bool = True
    method: str = "GET"


CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
GOOD = [
    Good("length", HI, b"hi"),
    Good("empty", OK + b"content-length: 0\r\n\r\n"),
    Good("chunks", CHUNKED + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"abc"),
    Good("chunk extension", CHUNKED + b"1;x=y\r\na\r\n0\r\n\r\n", b"a"),
    Good("trailers", CHUNKED + b"1\r\na\r\n0\r\nx-after: 1\r\n\r\n", b"a"),
    Good("until the end", OK + b"\r\nabc<end>", b"abc", is_kept=False),
    Good("close", OK + b"connection: close\r\ncontent-length: 2\r\n\r\nhi<end>", b"hi", is_kept=False),
    Good("no content", b"HTTP/1.1 204 No Content\r\n\r\n", status=204),
    Good("not modified", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", status=304),
    Good("interim", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + HI, b"hi"),
    Good("HTTP/1.0", b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi<end>", b"hi", is_kept=False),
    Good("HTTP/1.0 until the end", b"HTTP/1.0 200 OK\r\n\r\nhi<end>", b"hi", is_kept=False),
    Good("HEAD", OK + b"content-length: 9\r\n\r\n", is_kept=False, method="HEAD"),
    Good("no reason", b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", b"hi"),
    Good("redirect", b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", status=302),
]


@pytest.mark.parametrize("good", GOOD, ids=[one.name for one in GOOD])
async def test_a_response_is_read_to_its_end(good: Good) -> None:
    """And its connection serves the next request, if possible."""
    server = Server(good.wire)
    async with serving(server) as client:
        for _ in range(3):
            assert await get(client, server, good.method) == (good.status, good.body)
        assert server.accepted == (1 if good.is_kept else 3)


class Transport(asyncio.Transport):
    """A transport that records what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = self.is_paused = False
        self.unwritten = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return self.unwritten


class Fed:
    """A connection with a request, which is fed byte by byte."""

    def __init__(self, method: str = "GET", timeouts: Timeouts | None = None) -> None:
        self.origin = Origin("http://127.0.0.1:9", 8, {})
        self.connection = Connection(self.origin)
        self.transport = Transport()
        self.connection.connection_made(self.transport)
        self.asking = asyncio.ensure_future(self.connection.ask(method, b"head", b"", timeouts or Timeouts()))

    async def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            await asyncio.sleep(0)
            self.connection.data_received(piece)
        await asyncio.sleep(0)

    @property
    def is_kept(self) -> bool:
        return self.connection in self.origin.idle and not self.transport.is_aborted


@pytest.mark.parametrize("good", GOOD, ids=[one.name for one in GOOD])
async def test_a_response_may_be_cut_anywhere(good: Good) -> None:
    """In two reads, cut at each byte, the result is the same."""
    wire = good.wire.removesuffix(b"<end>")
    for at in range(len(wire)):
        fed = Fed(good.method)
        await fed.feed(wire[:at], wire[at:])
        if good.wire.endswith(b"<end>"):
            fed.connection.eof_received()
        assert await whole(await fed.asking) == good.body
        assert fed.is_kept == good.is_kept


@pytest.mark.parametrize("good", GOOD[:5], ids=[one.name for one in GOOD[:5]])
async def test_a_response_that_ends_too_early_is_cut(good: Good) -> None:
    """Wherever its connection ends, it is never complete."""
    for at in range(len(good.wire)):
        fed = Fed()
        await fed.feed(good.wire[:at])
        fed.connection.eof_received()
        fed.connection.connection_lost(None)
        with pytest.raises(UpstreamCut):
            await whole(await fed.asking)


async def test_pieces_that_come_together_stay_apart() -> None:
    fed = Fed()
    await fed.feed(CHUNKED + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")
    response = await fed.asking
    assert [await response.peek(), await response.peek(), await response.peek()] == [b"a", b"bc", None]
    assert [await response.read(), await response.read(), await response.read()] == [b"a", b"bc", None]


async def test_a_read_of_very_many_pieces_becomes_a_few() -> None:
    """Byte for byte the same, even if some were peeked at before."""
    body = bytes(range(256)) * 20
    for peeks in (0, 3, MAX_PIECES + 5):
        fed = Fed()
        await fed.feed(CHUNKED)
        response = await fed.asking
        for _ in range(peeks):
            fed.connection.data_received(b"1\r\n#\r\n")
            assert await response.peek() == b"#"
        chunks = b"".join(b"1\r\n%c\r\n" % one for one in body)
        for at in range(0, len(chunks), 6_000):
            fed.connection.data_received(chunks[at : at + 6_000])
        assert len(response._pieces) <= max(MAX_PIECES, peeks) + 1
        fed.connection.data_received(b"0\r\n\r\n")
        assert await whole(response) == b"#" * peeks + body


async def test_a_stream_may_have_any_number_of_chunks() -> None:
    """Chunk framing does not add up to a head that is too large."""
    fed, chunk = Fed(), b"1\r\na\r\n"
    await fed.feed(CHUNKED + chunk)
    response, count = await fed.asking, MAX_HEAD_BYTES // 5 + 2
    for _ in range(count):
        assert await response.read() == b"a"
        fed.connection.data_received(chunk)
    assert not fed.transport.is_aborted


# --- responses that are not -------------------------------------------------------------------------------------------

LENGTH = OK + b"content-length: "
BAD = {
    "no HTTP": b"<html>hello</html>\r\n\r\n",
    "another version": b"HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\ncontent-length: 0\r\n\r\n",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x46",
    "two lengths": LENGTH + b"2\r\ncontent-length: 3\r\n\r\nhi!",
    "two lengths in one": LENGTH + b"2, 2\r\n\r\nhi",
    "length and chunks": LENGTH + b"2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
    "negative length": LENGTH + b"-1\r\n\r\n",
    "signed length": LENGTH + b"+2\r\n\r\nhi",
    "length with letters": LENGTH + b"0x2\r\n\r\nhi",
    "length too large": LENGTH + b"99999999999999999999999\r\n\r\nhi",
    "folded line": OK + b"x-a: 1\r\n 2\r\ncontent-length: 2\r\n\r\nhi",
    "folded length": LENGTH + b"2\r\n 3\r\n\r\nhi",
    "space before colon": OK + b"content-length : 2\r\n\r\nhi",
    "no colon": OK + b"content-length 2\r\n\r\nhi",
    "name in no token": OK + b"x(a): 1\r\ncontent-length: 2\r\n\r\nhi",
    "NUL in a value": OK + b"x-a: 1\0\r\ncontent-length: 2\r\n\r\nhi",
    "CR in a value": OK + b"x-a: 1\r2\r\ncontent-length: 2\r\n\r\nhi",
    "chunk size with a sign": CHUNKED + b"+1\r\na\r\n0\r\n\r\n",
    "chunk size with 0x": CHUNKED + b"0x1\r\na\r\n0\r\n\r\n",
    "chunk size with a space": CHUNKED + b"1 \r\na\r\n0\r\n\r\n",
    "chunk size too large": CHUNKED + b"fffffffffffffffff\r\na\r\n",
    "chunk longer than told": CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    "chunk without an end": CHUNKED + b"1\r\na0\r\n\r\n",
    "a status below all": b"HTTP/1.1 099 Hm\r\ncontent-length: 0\r\n\r\n",
    "a status above all": b"HTTP/1.1 600 Hm\r\ncontent-length: 0\r\n\r\n",
    "another coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "another coding in a line of its own": OK
    + b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    "endless head": OK + b"x-a: " + b"a" * MAX_HEAD_BYTES,
    "many headers": OK + b"x-a: 1\r\n" * (MAX_HEAD_BYTES // 8),
    "endless interim": b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD_BYTES // 25 + 1),
    "endless trailer": CHUNKED + b"1\r\na\r\n0\r\nx-a: " + b"a" * MAX_HEAD_BYTES,
    "endless chunk extension": CHUNKED + b"1;" + b"a" * MAX_HEAD_BYTES,
}


@pytest.mark.parametrize("wire", BAD.values(), ids=BAD.keys())
async def test_a_malformed_response_is_refused(wire: bytes) -> None:
    """In one read and byte by byte; its connection is closed."""
    for size in (len(wire), 4096, 1 if len(wire) < 200 else 1000):
        fed = Fed()
        with contextlib.suppress(UpstreamCut):
            await fed.feed(*(wire[at : at + size] for at in range(0, len(wire), size)))
        with pytest.raises(UpstreamCut):
            await whole(await fed.asking)
        assert fed.transport.is_aborted
        assert not fed.is_kept


EXTRA = {"another response": HI, "a byte": b"H", "a line": b"x\r\n", "a length": b"0\r\n\r\n"}


@pytest.mark.parametrize("extra", EXTRA.values(), ids=EXTRA.keys())
@pytest.mark.parametrize("wire", [HI, GOOD[2].wire], ids=["length", "chunks"])
async def test_unrequested_bytes_do_not_answer_the_next_request(wire: bytes, extra: bytes) -> None:
    """The response is valid, and its connection is closed: with the last byte, and while it is idle."""
    fed = Fed()
    await fed.feed(wire + extra)
    assert await whole(await fed.asking)
    assert fed.transport.is_aborted
    assert not fed.is_kept
    fed = Fed()
    await fed.feed(wire)
    assert await whole(await fed.asking)
    assert fed.is_kept
    await fed.feed(extra)
    assert fed.transport.is_aborted
    assert not fed.is_kept


async def test_a_request_that_is_still_being_written_keeps_its_connection() -> None:
    """An early answer is valid, and the rest of the body must not begin the next request."""
    fed = Fed()
    fed.transport.unwritten = 1
    await fed.feed(HI)
    assert await whole(await fed.asking) == b"hi"
    assert fed.transport.is_aborted
    assert not fed.is_kept


async def test_a_body_that_is_not_read_is_not_taken_in() -> None:
    """Beyond a limit the connection stops reading, and resumes on demand."""
    fed = Fed()
    await fed.feed(LENGTH + b"9999999\r\n\r\n" + b"x" * (MAX_UNREAD_BYTES + 1))
    response = await fed.asking
    assert fed.transport.is_paused
    await response.read()
    assert fed.transport.is_paused
    reading = asyncio.ensure_future(response.read())
    await asyncio.sleep(0)
    assert not fed.transport.is_paused
    await fed.feed(b"more")
    assert await reading == b"more"


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("is_tls", [False, True], ids=["http", "TLS"])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", OK + b"\r\n: hi\n\n"], ids=["silent", "begun", "streaming"])
def test_a_request_that_is_cancelled_closes_its_connection(
    loop: Callable[[], asyncio.AbstractEventLoop], is_tls: bool, answer: bytes, secure: ssl.SSLContext
) -> None:
    """Before the first byte, in the head and in the body: the server sees it at once."""

    async def run() -> None:
        has_come = asyncio.Event()

        class Silent(Server):
            async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                has_come.set()
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    assert await reader.read(1) == b""
                self.closed.set()
                writer.close()

        server = Silent()
        async with serving(server, secure if is_tls else None) as client:
            asking = asyncio.ensure_future(get(client, server))
            await has_come.wait()
            asking.cancel()
            async with asyncio.timeout(20):
                await server.closed.wait()
            with pytest.raises(asyncio.CancelledError):
                await asking

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


async def test_a_cancellation_that_comes_with_the_response() -> None:
    """No caller gets it, so its connection is closed; one that is idle by then is left alone."""
    fed = Fed()
    await asyncio.sleep(0)
    fed.connection.data_received(OK + b"\r\n")
    fed.asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fed.asking
    assert fed.transport.is_aborted
    fed = Fed()
    await asyncio.sleep(0)
    fed.connection.data_received(HI)
    fed.asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fed.asking
    assert fed.is_kept


async def test_a_response_that_comes_behind_a_cancellation() -> None:
    """Its connection is closed before another request gets it."""
    fed = Fed()
    await asyncio.sleep(0)
    fed.asking.cancel()
    fed.connection.data_received(HI)
    assert not fed.is_kept
    assert fed.transport.is_aborted


@pytest.mark.parametrize("is_tls", [False, True], ids=["http", "TLS"])
async def test_a_response_that_is_closed_early_closes_its_connection(is_tls: bool, secure: ssl.SSLContext) -> None:
    server = Server(CHUNKED + b"1\r\na\r\n")
    async with serving(server, secure if is_tls else None) as client:
        response = await client.send("GET", server.url)
        assert await response.read() == b"a"
        await response.close()
        await response.close()
        async with asyncio.timeout(20):
            await server.closed.wait()


@pytest.mark.parametrize("has_farewell", [True, False])
def test_a_body_until_the_end_ends_over_tls_with_its_farewell(has_farewell: bool, secure: ssl.SSLContext) -> None:
    """Without a TLS close, the end could have been forged."""

    async def run() -> None:
        class Ending(Server):
            async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(OK + b"\r\nabc")
                await writer.drain()
                if has_farewell:
                    writer.close()
                else:
                    writer.transport.abort()

        server = Ending()
        async with serving(server, secure) as client:
            response = await client.send("GET", server.url)
            if has_farewell:
                assert await whole(response) == b"abc"
            else:
                with pytest.raises(UpstreamCut):
                    await whole(response)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


# --- connections that are kept ----------------------------------------------------------------------------------------


async def test_a_kept_connection_that_is_closed_just_then() -> None:
    """The request is sent on another one, once; a failure of a new connection is not retried."""
    server = Server(HI, b"", HI, b"")
    async with serving(server) as client:
        assert await get(client, server) == (200, b"hi")
        assert await get(client, server) == (200, b"hi")
        assert (server.accepted, len(server.asked)) == (2, 3)
    server = Server(b"")
    async with serving(server) as client:
        with pytest.raises(UpstreamCut):
            await get(client, server)
        assert len(server.asked) == 1


async def test_a_kept_connection_that_breaks_after_a_byte() -> None:
    """The server has begun to process the request, so it is not sent again."""
    server = Server(HI, b"HTTP/1.1 2<end>")
    async with serving(server) as client:
        await get(client, server)
        with pytest.raises(UpstreamCut):
            await get(client, server)
        assert len(server.asked) == 2


async def test_so_many_connections_are_kept_and_no_longer_than_so(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(HI)
    async with serving(server) as client:
        client._most_idle = 2
        responses = [await client.send("GET", server.url) for _ in range(1)]
        assert await whole(responses[0]) == b"hi"
        [origin] = client._origins.values()
        answers = await asyncio.gather(*(get(client, server) for _ in range(5)))
        assert answers == [(200, b"hi")] * 5
        assert len(origin.idle) == 2
        monkeypatch.setattr(http_client, "IDLE_SECONDS", 0.0)
        assert await get(client, server) == (200, b"hi")
        async with asyncio.timeout(20):
            while len(origin.idle) == 2:
                await asyncio.sleep(0)


async def test_so_many_connections_are_kept_to_all_servers_together() -> None:
    """The one that has been idle longest is closed."""
    first, second = Server(HI), Server(HI)
    async with serving(first) as client, serving(second):
        client._most_idle = 2
        for server in (first, second, second):
            await asyncio.gather(get(client, server), get(client, server))
        assert [len(origin.idle) for origin in client._origins.values()] == [0, 2]
        assert (len(client._all_idle), first.accepted, second.accepted) == (2, 2, 2)
        client.close()
        assert len(client._all_idle) == 0


async def test_addresses_that_were_asked_are_not_remembered_without_bound() -> None:
    server = Server(HI)
    async with serving(server) as client:
        await get(client, server)
        for number in range(2 * http_client._MAX_ORIGINS):
            client._origin(f"http://h{number}.example")
        assert len(client._origins) <= http_client._MAX_ORIGINS + 1
        await get(client, server)
        assert server.accepted == 1


# --- time -------------------------------------------------------------------------------------------------------------

SHORT = 0.05
LONG = 60.0


@pytest.mark.parametrize("times", [(SHORT, LONG, LONG), (LONG, LONG, SHORT)], ids=["first byte", "total"])
async def test_a_response_that_does_not_begin(times: tuple[float, float, float]) -> None:
    fed = Fed(timeouts=Timeouts(LONG, *times))
    with pytest.raises(TimeoutError):
        await fed.asking
    assert fed.transport.is_aborted


@pytest.mark.parametrize("times", [(LONG, SHORT, LONG), (LONG, LONG, SHORT)], ids=["read", "total"])
async def test_a_body_that_stands_still(times: tuple[float, float, float]) -> None:
    fed = Fed(timeouts=Timeouts(LONG, *times))
    await fed.feed(OK + b"\r\n", b"a")
    response = await fed.asking
    assert await response.read() == b"a"
    with pytest.raises(UpstreamCut):
        await response.read()
    assert fed.transport.is_aborted


async def test_a_body_that_never_ends_ends_with_its_time() -> None:
    """However often bytes arrive."""
    fed = Fed(timeouts=Timeouts(LONG, LONG, LONG, SHORT))
    await fed.feed(OK + b"\r\n")
    response = await fed.asking

    async def read_on() -> None:
        while True:
            fed.connection.data_received(b"a")
            await asyncio.sleep(0)
            assert await response.read() == b"a"

    with pytest.raises(UpstreamCut):
        await read_on()


async def test_a_body_that_is_read_slowly_does_not_stand_still() -> None:
    """`read` limits the wait for bytes, not the reader's pauses."""
    fed = Fed(timeouts=Timeouts(LONG, LONG, 0.001, LONG))
    await fed.feed(OK + b"\r\n", b"a")
    await asyncio.sleep(0.02)  # the timer runs out meanwhile
    response = await fed.asking
    assert await response.read() == b"a"


# --- requests ---------------------------------------------------------------------------------------------------------


async def test_a_request_goes_out_as_it_is() -> None:
    """Names, order, repetitions and bytes; only these two headers are added."""
    server = Server(HI)
    raw = b"caf\xe9".decode("utf-8", "surrogateescape")
    headers = [("x-b", "1"), ("x-a", "é"), ("x-b", "2"), ("x-raw", raw)]
    async with serving(server) as client:
        await whole(await client.send("POST", f"{server.url}/a%2Fb?x=|[]", headers, b"body"))
        host = server.url.removeprefix("http://").encode()
        assert server.asked == [
            b"POST /a%2Fb?x=|[] HTTP/1.1\r\nhost: "
            + host
            + b"\r\nx-b: 1\r\nx-a: \xc3\xa9\r\nx-b: 2\r\nx-raw: caf\xe9\r\n"
            b"content-length: 4\r\n\r\nbody"
        ]


@pytest.mark.parametrize(
    ("method", "url", "line"),
    [
        ("GET", "", "GET / HTTP/1.1"),
        ("GET", "?a=b", "GET /?a=b HTTP/1.1"),
        ("GET", "/a b/é?ü#part", "GET /a%20b/%C3%A9?%C3%BC HTTP/1.1"),
        ("DELETE", "/x#y", "DELETE /x HTTP/1.1"),
    ],
)
async def test_an_address_is_written_in_ascii(method: str, url: str, line: str) -> None:
    server = Server(HI)
    async with serving(server) as client:
        await whole(await client.send(method, server.url + url))
        assert server.asked[0].decode().split("\r\n")[0] == line
        assert b"content-length" not in server.asked[0]


async def test_a_post_without_a_body_says_so() -> None:
    server = Server(HI)
    async with serving(server) as client:
        await get(client, server, "POST")
        assert b"\r\ncontent-length: 0\r\n" in server.asked[0]


@pytest.mark.parametrize("header", [("x-a", "1\r\nx-b: 2"), ("x-a", "1\n"), ("x\r\ny", "1"), ("x-a", "1\0")])
async def test_no_header_brings_another(header: tuple[str, str]) -> None:
    server = Server(HI)
    async with serving(server) as client:
        with pytest.raises(ValueError, match="a header of the request"):
            await client.send("GET", server.url, [header])
        assert server.accepted == 0


async def test_large_bodies_go_out_whole() -> None:
    server, body = Server(HI), b"x" * 3_000_000
    async with serving(server) as client:
        await whole(await client.send("POST", server.url, [], body))
        assert server.asked[0].endswith(b"\r\n\r\n" + body)


async def test_headers_of_a_response_come_as_they_are() -> None:
    """Names in lower case; order, repetitions and every byte of the values stay."""
    server = Server(OK + b"X-B: 1\r\nx-a: caf\xe9\r\nX-b: \xc3\xa9\r\nContent-Length: 0\r\n\r\n")
    async with serving(server) as client:
        response = await client.send("GET", server.url)
        names = [("x-b", "1"), ("x-a", "caf\xe9"), ("x-b", "\xc3\xa9"), ("content-length", "0")]
        assert response.headers == names
        assert response.header("x-b") == "1"
        assert await whole(response) == b""


async def test_ipv6() -> None:
    server = Server(HI)
    try:
        listening = await asyncio.start_server(server.serve, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    port, client = listening.sockets[0].getsockname()[1], HttpClient()
    server.url = f"http://[::1]:{port}"
    assert await get(client, server) == (200, b"hi")
    assert f"host: [::1]:{port}".encode() in server.asked[0]
    client.close()
    listening.close()


async def test_no_address() -> None:
    with pytest.raises(ValueError, match="no address"):
        await HttpClient().send("GET", "ftp://x/")
    with pytest.raises(ConnectFailed):
        await HttpClient().send("GET", f"http://{'a' * 64}.example/")
