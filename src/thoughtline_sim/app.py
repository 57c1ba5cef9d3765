"""A simulation as an ASGI application, and the command that serves it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import resources
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import uvicorn

from thoughtline_sim.log import SimLog
from thoughtline_sim.simulation import HttpResponse, Simulation, json_response
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest
from thoughtline_sim.websocket import serve_websocket

MAX_BODY_BYTES = 32 * 1024 * 1024
"""The largest request of any provider named in contracts.md (Anthropic: 32 MB)."""

KEEP_ALIVE_SECONDS = 75
"""Longer than the five seconds of many clients, so that it is always the client that closes first."""

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def simulator_app(
    name: str,
    profile: str | None = None,
    *,
    seed: int = 0,
    now: Callable[[], float] = time.time,
    log: SimLog | None = None,
) -> SimulatorApp:
    """The application of one simulator, for a server or a test."""
    simulator = SIMULATORS[name]
    return SimulatorApp(Simulation(simulator, profile or simulator.profiles[0], seed, now), log)


class SimulatorApp:
    """ASGI over a simulation. `/`, `/_log` and `/_stats` are for people; every other path is the provider's."""

    def __init__(self, simulation: Simulation, log: SimLog | None = None) -> None:
        self.simulation = simulation
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            body = await _read_body(receive)
            if body is None:
                response = HttpResponse(413, "application/json", [b'{"error":{"message":"request too large"}}'])
            else:
                response = self._respond(_request(scope, body))
            await self._answer(response, send)
        elif scope["type"] == "websocket":
            upgrade = _request({**scope, "method": "GET"}, b"")
            await serve_websocket(self.simulation, upgrade, receive, send=send, log=self._log)

    async def _answer(self, response: HttpResponse, send: Send) -> None:
        began, entry = time.perf_counter(), self.simulation.take_entry()
        if self._log is None or entry is None:
            await _send(response, send)
            return
        if len(response.frames) > 1:
            self._log.begun(entry)
        await _send(response, send)
        self._log.ended(entry, time.perf_counter() - began)

    def _respond(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET" and request.path in ("", "/"):
            page = resources.files("thoughtline_sim").joinpath("page.html").read_bytes()
            return HttpResponse(200, "text/html; charset=utf-8", [page])
        if request.method == "GET" and request.path == "/_log":
            return json_response(200, list(self.simulation.log))
        if request.method == "GET" and request.path == "/_stats":
            return json_response(200, self.simulation.stats())
        return self.simulation.respond(request)


def _request(scope: Scope, body: bytes) -> HttpRequest:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    raw = scope.get("raw_path") or b""
    return HttpRequest(scope["method"], scope["path"], query, headers, body=body, raw_path=raw.decode("latin-1"))


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or `None` if it is too large; then it is read to its end and discarded."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts) if size <= MAX_BODY_BYTES else None


async def _send(response: HttpResponse, send: Send) -> None:
    headers = [(b"content-type", response.content_type.encode())]
    headers += [(name.encode(), value.encode()) for name, value in response.headers]
    is_stream = len(response.frames) != 1 or response.is_cut
    if not is_stream:
        headers.append((b"content-length", str(len(response.frames[0])).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for frame in response.frames:
        await send({"type": "http.response.body", "body": frame, "more_body": is_stream})
        if is_stream:
            await asyncio.sleep(response.delay_ms / 1000)
    if is_stream and not response.is_cut:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def sim_server(app: Any) -> uvicorn.Server:
    """A server for an application. A stream that is cut on purpose logs no error."""
    return uvicorn.Server(
        uvicorn.Config(app, log_level="critical", timeout_keep_alive=KEEP_ALIVE_SECONDS, server_header=False)
    )


def serve(
    name: str, profile: str | None, host: str, *, port: int, tell: Callable[[str], object], log: SimLog | None = None
) -> None:
    """Serve a simulator until it is interrupted. `tell` gets its URL; port 0 lets the system choose one."""
    began = time.monotonic()
    app = simulator_app(name, profile, seed=time.time_ns(), log=log)
    with socket.create_server((host, port), backlog=512) as listener:
        tell(f"http://{host}:{listener.getsockname()[1]}")
        try:
            sim_server(app).run(sockets=[listener])
        finally:
            if log is not None:
                log.goodbye(time.monotonic() - began)
