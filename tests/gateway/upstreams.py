"""An upstream whose behaviour a test defines, byte by byte, behind a real socket.

async def answer(got: Got, out: Out) -> None:
    await out.head(200, ("content-type", "application/json"), ("content-length", "2"))
    await out.write(b"{}")

with upstream(answer) as up:
    up.url, up.got, up.is_idle()
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple


class Got(NamedTuple):
    """A request as it arrived."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class Out:
    """The response to the client. `cut` breaks the connection; a proper end leaves it open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_cut = False

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int, *headers: tuple[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in headers), "", ""]
        await self.write("\r\n".join(lines).encode("latin-1"))

    async def whole(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        named = headers if any(name == "content-type" for name, _ in headers) else (*headers, JSON)
        await self.head(status, *named, ("content-length", str(len(body))))
        await self.write(body)

    async def stream(self, *headers: tuple[str, str]) -> None:
        await self.head(200, *(headers or (EVENTS,)), ("transfer-encoding", "chunked"))

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.write(b"0\r\n\r\n")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns when a condition that another thread brings about is true."""
        while not holds():
            await asyncio.sleep(0.0005)

    async def until_later(self) -> None:
        await asyncio.sleep(0.01)

    async def gone(self) -> None:
        """Returns when the client has closed the connection."""
        await self._reader.read(1)

    def cut(self) -> None:
        self.is_cut = True


JSON = ("content-type", "application/json")
EVENTS = ("content-type", "text/event-stream")
Answer = Callable[[Got, Out], Awaitable[None]]


class Upstream:
    """A server and the requests that it received."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self.got: list[Got] = []
        self.open = 0
        self.accepted = 0
        self.url = ""

    def wait_until(self, holds: Callable[[Upstream], bool]) -> None:
        """Returns when a condition is true; fails if that takes too long."""
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self), 20)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._change(opened=1)
        try:
            while (got := await _read(reader)) is not None:
                self.got.append(got)
                self._change()
                out = Out(reader, writer)
                await self._answer(got, out)
                if out.is_cut:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._change(opened=-1)

    def _change(self, opened: int = 0) -> None:
        with self._changed:
            self.open += opened
            self.accepted += max(opened, 0)
            self._changed.notify_all()


async def _read(reader: asyncio.StreamReader) -> Got | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
    length = int(dict(headers).get("content-length", "0"))
    return Got(method, target, headers, await reader.readexactly(length))


@contextlib.contextmanager
def upstream(answer: Answer) -> Iterator[Upstream]:
    """A server with this behaviour, on a port that the system chooses, for the duration of the test."""
    served = Upstream(answer)
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(served.serve, "127.0.0.1", 0, limit=2**20)
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await asyncio.Event().wait()

    def run() -> None:
        task = loop.create_task(main())
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join(30)
