"""A light HTTP/1.1 client: connections that each send one request after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import httptools

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
HEADERS = b"host: 127.0.0.1\r\nauthorization: Bearer sk-bench\r\ncontent-type: application/json\r\n"


class Answer(NamedTuple):
    """A response that was read to its end, or up to its first byte."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    first_byte_seconds: float


class Failed(Exception):
    """The proxy answered with an error, or hung up."""


def post(body: bytes, path: str, headers: bytes = HEADERS) -> bytes:
    return b"POST %b HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n%b" % (path.encode(), headers, len(body), body)


def get(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), HEADERS)


async def _in_time(waiting: asyncio.Future[T]) -> T:
    try:
        return await asyncio.wait_for(waiting, PATIENCE_SECONDS)
    except TimeoutError:
        raise Failed(f"no answer within {PATIENCE_SECONDS:.0f} s") from None


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[Answer] | None = None
        self._begun: asyncio.Future[None] | None = None
        self._fresh()

    def _fresh(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._first = 0.0

    async def ask(self, request: bytes) -> Answer:
        """Send, and wait for the whole answer."""
        return await _in_time(self._send(request))

    async def open(self, request: bytes) -> None:
        """Send, and wait until the answer has begun."""
        self._send(request)
        self._begun = asyncio.get_running_loop().create_future()
        await _in_time(self._begun)

    def _send(self, request: bytes) -> asyncio.Future[Answer]:
        if self._transport is None:
            raise Failed("the connection is closed")
        self._fresh()
        self._done = asyncio.get_running_loop().create_future()
        self._sent = time.perf_counter()
        self._transport.write(request)
        return self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def connection_lost(self, problem: Exception | None) -> None:
        self._transport = None
        for waiting in (self._done, self._begun):
            if waiting is not None and not waiting.done():
                waiting.set_exception(Failed("the connection was closed before the answer was whole"))
                waiting.exception()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        if not self._body:
            self._first = time.perf_counter() - self._sent
            if self._begun is not None and not self._begun.done():
                self._begun.set_result(None)
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._done is not None and not self._done.done():
            self._done.set_result(Answer(status, self._headers, b"".join(self._body), self._first))


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


async def ask_once(port: int, request: bytes) -> Answer:
    connection = await connect(port)
    try:
        return _checked(await connection.ask(request))
    finally:
        connection.close()


async def ask_many(port: int, make: Callable[[int], bytes], count: int, connections: int) -> list[float]:
    """So many requests over so many connections, each sending the next as soon as it has its answer.

    Gives the time to the first byte of each.
    """
    numbers = iter(range(count))
    times: list[float] = []

    async def work(connection: Connection) -> None:
        for number in numbers:
            answer = _checked(await connection.ask(make(number)))
            times.append(answer.first_byte_seconds)

    opened = await asyncio.gather(*(connect(port) for _ in range(min(connections, count))))
    try:
        await asyncio.gather(*map(work, opened))
    finally:
        for connection in opened:
            connection.close()
    return times


async def open_many(port: int, make: Callable[[int], bytes], count: int, at_once: int = 50) -> list[Connection]:
    """So many responses that have begun and don't end."""
    opened: list[Connection] = []
    for start in range(0, count, at_once):
        batch = await asyncio.gather(*(connect(port) for _ in range(min(at_once, count - start))))
        opened += batch
        await asyncio.gather(*(one.open(make(start + number)) for number, one in enumerate(batch)))
    return opened


def _checked(answer: Answer) -> Answer:
    if answer.status != 200:
        raise Failed(f"status {answer.status}: {answer.body[:300].decode('utf-8', 'replace')}")
    return answer
