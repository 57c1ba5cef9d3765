"""Simulators behind real sockets: each is served once per test process, on a port that the system chooses."""

from __future__ import annotations

import atexit
import functools
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import uvicorn

from thoughtline_sim.app import Receive, Scope, Send, SimulatorApp, simulator_app

NOW = 1_763_200_000.0

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Server(uvicorn.Server):
    """Says when it listens, so that nobody has to wait and see."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


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
    return Served(app, listening(app))


_running: list[tuple[_Server, threading.Thread]] = []


@atexit.register
def _stop() -> None:
    """A loop that is still at work while the interpreter ends can crash it."""
    for server, _ in _running:
        server.should_exit = server.force_exit = True
    for _, thread in _running:
        thread.join(5)


def listening(app: Application) -> str:
    """The address of an application that listens until the process ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = _Server(uvicorn.Config(app, log_level="critical", lifespan="on", timeout_keep_alive=600))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    _running.append((server, thread))
    assert server.listens.wait(30), "the server did not start"
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
