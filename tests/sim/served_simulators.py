"""Applications behind real sockets, on ports that the system chooses. A simulator is served once per test process."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

import uvicorn

from thoughtline_sim.app import Receive, Scope, Send, SimulatorApp, simulator_app

NOW = 1_763_200_000.0

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Server(uvicorn.Server):
    """Reports when it listens, waits for requests, and stops on request."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()
        self._over = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.listens.set()

    async def main_loop(self) -> None:
        """uvicorn's looks ten times a second whether it is to stop: hundreds of servers do hardly anything else."""
        await self.on_tick(0)
        await self._over.wait()

    def stop(self) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self._over.set)


class _Listener(Server):
    """In a thread of its own. Listeners that are still connected when it stops are left alone."""

    def __init__(self, app: Application) -> None:
        super().__init__(uvicorn.Config(app, log_level="critical", lifespan="on", timeout_keep_alive=600))
        socket_ = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{socket_.getsockname()[1]}"
        self._thread = threading.Thread(target=self.run, args=([socket_],), daemon=True)
        self._thread.start()
        assert self.listens.wait(30), "the server did not start"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def join(self) -> None:
        self._thread.join(5)


class Served:
    """A simulator and its address."""

    def __init__(self, app: SimulatorApp, url: str) -> None:
        self.app = app
        self.url = url


def served(name: str, profile: str | None = None) -> Served:
    """The simulator, listening until the process ends."""
    return _served(name, profile)


@functools.cache
def _served(name: str, profile: str | None) -> Served:
    app = simulator_app(name, profile, seed=7, now=lambda: NOW)
    server = _Listener(app)
    _lasting.append(server)
    return Served(app, server.url)


_lasting: list[_Listener] = []
_passing: list[_Listener] = []


def listening(app: Application) -> str:
    """The address of an application that listens until the test is over; or until the process ends, if a fixture of
    more than one test asks."""
    server = _Listener(app)
    _passing.append(server)
    return server.url


@contextlib.contextmanager
def listening_no_longer() -> Iterator[None]:
    """Stop what begins to listen in here."""
    before = len(_passing)
    yield
    for server in _passing[before:]:
        server.stop()
    del _passing[before:]


@atexit.register
def _stop() -> None:
    """A loop that is still at work while the interpreter ends can crash it."""
    for server in (*_lasting, *_passing):
        server.stop()
    for server in (*_lasting, *_passing):
        server.join()
