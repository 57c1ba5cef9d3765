"""The gateway as a process of its own whose wall clock stands still, and upstreams that keep what they are sent."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import uvicorn

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

NOW = 1_763_200_000.0
PATIENCE_SECONDS = 60
SEALED_ALIKE = '[store]\nencryption_key = "a key of the tools"\n'
"""Settings with which envelopes are the same in every run: ids of answers are made from requests that have some."""

START = """
import itertools, secrets, sys, time
from collections import defaultdict
counters = defaultdict(itertools.count)
time.time = lambda: NOW
secrets.token_hex = lambda size: next(counters[size]).to_bytes(size, "big").hex()
from importlib.metadata import entry_points
(program,) = entry_points(group="console_scripts", name="thoughtline")
program.load()()
"""
"""Time stands still, and ids are numbers: those of answers are made from requests that have such ids."""


class Sent(NamedTuple):
    """A request as an upstream got it."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def address_of(provider: str) -> str:
    """Where a provider is said to be. A proxy answers for it: what the gateway writes down has no port of the day."""
    return f"http://{provider}.test"


class Upstream:
    """A proxy on loopback that answers for providers. `apps` can be changed between requests; `sent` is what came."""

    def __init__(self) -> None:
        self.apps: Mapping[str, Application] = {}
        self.sent: list[Sent] = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            self._answer, interface="asgi3", log_level="error", lifespan="off", timeout_keep_alive=600
        )
        threading.Thread(target=uvicorn.Server(config).run, args=([listener],), daemon=True).start()

    def taken(self) -> list[Sent]:
        """What came since the last time this was asked."""
        sent, self.sent = self.sent, []
        return sent

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        query = scope["query_string"].decode()
        line = f"{scope['method']} {scope['raw_path'].decode()}{'?' if query else ''}{query}"
        headers = tuple(sorted((name.decode(), value.decode()) for name, value in scope["headers"]))
        self.sent.append(Sent(line, headers, body))

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        host = dict(scope["headers"])[b"host"].decode()
        app = self.apps.get(host.removesuffix(".test"), UNAVAILABLE)
        await app(scope, again, send)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def canned(status: int, content_type: str, body: bytes) -> Application:
    """An upstream that says one thing."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", content_type.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return app


UNAVAILABLE = canned(503, "application/json", b'{"error":{"message":"overloaded"}}')


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def gateway(settings: str, *, store: str = "memory://", proxy: str = "", code: str = START) -> Iterator[str]:
    """`thoughtline serve` with these settings; its address.

    `proxy` stands for every provider: their addresses can be names that nobody has. `code` is what Python runs.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "settings.toml")
        file.write_text(settings)
        options = ["--config", str(file), "--store", store, "--port", str(port)]
        command = [sys.executable, "-c", code.replace("NOW", repr(NOW)), "serve", *options]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(folder, proxy))
        try:
            _wait(process, port, Path(folder, "log"))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def environment(folder: str, proxy: str = "") -> dict[str, str]:
    """Without settings and servers of whoever runs this; what commands keep for their user goes into the folder."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("THOUGHTLINE_")}
    known = {name: value for name, value in known.items() if not name.lower().endswith("_proxy")}
    return known | {"XDG_DATA_HOME": folder, "PYTHONHASHSEED": "0"} | ({"http_proxy": proxy} if proxy else {})


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(PATIENCE_SECONDS * 20):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the gateway did not start:\n{log.read_text()}")
