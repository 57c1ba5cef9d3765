"""A gateway behind a real socket, with simulators behind it: what the tests of the gateway talk to.

with running(simulators={"deepseek": served("deepseek").url}) as gateway:
    gateway.url, gateway.state, gateway.lines
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from tests.sim.served_simulators import Server
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import ClientKeys, KeyMark, NoKeys
from thoughtline.gateway.journal import Journal, Line
from thoughtline.gateway.serving import server_config
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import Settings
from thoughtline.stores import Clock, Store, open_store
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
Result = TypeVar("Result")


class Running:
    """A listening gateway, its state, and its log."""

    def __init__(
        self, url: str, app: Gateway, log: io.BytesIO, loop: asyncio.AbstractEventLoop, server: Server
    ) -> None:
        self.url = url
        self.app = app
        self.loop = loop
        self.server = server
        self._log = log

    @property
    def state(self) -> State:
        return self.app.state

    @property
    def lines(self) -> list[Json]:
        """The lines of the log so far, without those of the admin side."""
        return [line for line in self.log if line.get("event") != "admin"]

    @property
    def trail(self) -> list[Json]:
        """The lines of the admin side."""
        return [line for line in self.log if line.get("event") == "admin"]

    @property
    def log(self) -> list[Json]:
        """All lines."""
        self.loop.call_soon_threadsafe(self.app.state.journal.flush)
        done = threading.Event()
        self.loop.call_soon_threadsafe(done.set)
        assert done.wait(10)
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    def refresh(self) -> None:
        """Load changes of other processes, and share the changes of this one, now."""
        self.wait_for(self.app.refresh())

    def wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the gateway's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    @contextlib.contextmanager
    def listening(self) -> Iterator[Callable[[], Line]]:
        """Return a function that waits for the next line of the journal."""
        lines: asyncio.Queue[Line] = asyncio.Queue()
        self.state.journal.follow(lines.put_nowait)
        yield lambda: self.wait_for(lines.get())


HEADERS = {"command-code": {"x-command-code-version": "1.69.0"}}
"""Headers that a provider requires from every client."""


def moved(name: str, url: str) -> Provider:
    """A built-in provider at another address, with all its formats."""
    row = PROVIDERS[name]
    return replace(row, base_url=url, bases={}, headers=HEADERS.get(name, {}))


def moved_in(name: str, url: str, format: FormatName) -> Provider:
    """The same with one format only, at that format's own path."""
    return replace(moved(name, url), formats=(format,), paths={})


@contextlib.contextmanager
def running(
    simulators: Mapping[str, str],
    settings: Settings | None = None,
    store_url: str = "memory://",
    store: Store | None = None,
    takes_keys: bool = False,
    clock: Clock = time.time,
    mark: KeyMark | None = None,
) -> Iterator[Running]:
    """A gateway with providers at these addresses: the name of a row, or a whole row under any name."""
    settings = settings or Settings()
    providers = {**PROVIDERS, **settings.providers, **{name: moved(name, url) for name, url in simulators.items()}}
    settings = replace(settings, providers=providers, store_url=store_url)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    ready = threading.Event()
    held: list[Any] = []

    async def main() -> None:
        log = io.BytesIO()

        async def opened() -> State:
            kept = store or await open_store(store_url, settings.store)
            await kept.open()
            keys = await ClientKeys.load(kept, mark=mark) if takes_keys else NoKeys()
            keys.follow(settings)
            return make_state(settings, kept, keys, Journal(log), clock=clock)

        app = Gateway(opened)
        server = Server(server_config(app))
        held.extend((app, log, server, asyncio.get_running_loop()))
        serving = asyncio.ensure_future(server.serve([listener]))
        while not server.started:
            await asyncio.sleep(0)
        ready.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(30), "the gateway did not start"
    app, log, server, loop = held
    try:
        yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", app, log, loop, server)
    finally:
        server.stop()
        if store_url != "memory://" or store is not None:  # uvicorn takes its time, and nobody needs what was in memory
            thread.join(30)
