"""A gateway in a separate process: `python -m tests.gateway.gateway_processes STORE_URL NAME=URL …`.

It listens on a port that the system chooses, prints its address in the first line of its output, and serves until it is
killed. `started` does that for a test.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import uvicorn
from msgspec.structs import replace

from tests.gateway.gateways import moved
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import NoKeys
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.serving import server_config
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import ReplaySettings, ServerSettings, Settings
from thoughtline.stores import StoreSettings, open_store

ROOT = Path(__file__).parents[2]


class Process:
    """A gateway that can be killed."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """`kill -9`: nothing is finished or flushed."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def started(store_url: str, providers: Mapping[str, str]) -> Iterator[Process]:
    """A listening gateway in a separate process; killed at the end if it still runs."""
    rows = [f"{name}={url}" for name, url in providers.items()]
    command = [sys.executable, "-m", "tests.gateway.gateway_processes", store_url, *rows]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            assert url, "the gateway did not start"
            yield Process(process, url)
        finally:
            process.kill()


def main(store_url: str, providers: Mapping[str, str]) -> None:
    rows = {**PROVIDERS, **{name: moved(name, url) for name, url in providers.items()}}
    store = StoreSettings(memory_bytes=2**30)  # more than any test here makes
    replay = ReplaySettings(hold_ms=60_000)  # a machine that is busy with other tests may take long to save
    server = ServerSettings(head_timeout_seconds=5.0, body_timeout_seconds=5.0)  # for tests of those who are slow
    settings = replace(Settings(), server=server, providers=rows, store_url=store_url, store=store, replay=replay)

    async def opened() -> State:
        return make_state(settings, await open_store(store_url, settings.store), NoKeys(), Journal())

    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    class Telling(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
            sys.stdout.flush()

    Telling(server_config(Gateway(opened))).run([listener])


if __name__ == "__main__":
    main(sys.argv[1], dict(row.split("=", 1) for row in sys.argv[2:]))
