"""WebSockets: one connection over ASGI. Streams run concurrently, frames of one stream in order."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from thoughtline_sim.connection import SimConnection, SocketAnswer, connect, life_over
from thoughtline_sim.log import SimLog
from thoughtline_sim.simulation import HttpResponse, Simulation, setting
from thoughtline_sim.values import HttpRequest

MAX_AT_ONCE = 16
"""Concurrent responses on one connection; further ones wait."""

LIFE_MS = 3_600_000

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def serve_websocket(
    simulation: Simulation, upgrade: HttpRequest, receive: Receive, *, send: Send, log: SimLog | None
) -> None:
    """Answer an upgrade and everything that follows."""
    await receive()
    connection = connect(simulation, upgrade)
    if isinstance(connection, HttpResponse):
        await _refuse_upgrade(connection, send)
        return
    await send({"type": "websocket.accept"})
    await _OpenConnection(simulation, connection, receive, send=send, log=log).run(
        (setting(upgrade, "life") or LIFE_MS) / 1000
    )


async def _refuse_upgrade(response: HttpResponse, send: Send) -> None:
    headers = [(b"content-type", response.content_type.encode())]
    await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b"".join(response.frames), "more_body": False})


class _OpenConnection:
    """An accepted connection, until one side closes it or it reaches its maximum age."""

    def __init__(
        self, simulation: Simulation, connection: SimConnection, receive: Receive, *, send: Send, log: SimLog | None
    ) -> None:
        self._simulation = simulation
        self._connection = connection
        self._receive = receive
        self._send = send
        self._log = log
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._at_once = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = asyncio.Event()

    async def run(self, life_seconds: float) -> None:
        reading = asyncio.ensure_future(self._read())
        self._tasks.add(reading)
        try:
            async with asyncio.timeout(life_seconds):
                await self._is_over.wait()
        except TimeoutError:
            await self._send_event(life_over())
            await self._send({"type": "websocket.close", "code": 1000, "reason": "connection limit reached"})
        finally:
            for task in self._tasks:
                task.cancel()

    async def _read(self) -> None:
        """Messages are read at once, so that pings are answered while a response is sent."""
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            if text is None:
                await self._send({"type": "websocket.close", "code": 1003, "reason": "only text frames are taken"})
                break
            task = asyncio.ensure_future(self._answer(text))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._is_over.set()

    async def _answer(self, text: str) -> None:
        frame = self._connection.read(text)
        if isinstance(frame, SocketAnswer):
            await self._send_answer(frame)
            return
        async with self._locks[frame.stream_id], self._at_once:
            await self._send_answer(self._connection.answer(frame))

    async def _send_answer(self, answer: SocketAnswer) -> None:
        began, entry = time.perf_counter(), self._simulation.take_entry()
        for event in answer.events:
            await self._send_event(event)
            await asyncio.sleep(answer.delay_ms / 1000)
        if self._log is not None and entry is not None:
            self._log.ended(entry, time.perf_counter() - began)
        if answer.is_cut:
            self._is_over.set()

    async def _send_event(self, event: str) -> None:
        try:
            await self._send({"type": "websocket.send", "text": event})
        except OSError:  # the client disconnected
            self._is_over.set()
