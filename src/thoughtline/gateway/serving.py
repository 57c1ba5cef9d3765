"""Running the gateway: a server for the application, in one process or in several on one port and one store."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn
from msgspec.structs import replace
from uvicorn.supervisors import Multiprocess

from thoughtline.errors import Declined, SettingsError
from thoughtline.gateway import shared_counts
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.journal import Journal, standard_log
from thoughtline.gateway.protocol import BoundedProtocol
from thoughtline.gateway.state import State, make_state, with_settings
from thoughtline.settings import Flags, Settings, check_exposure, load_settings
from thoughtline.stores import open_store

GRACE_SECONDS = 30
"""How long streams may go on after a stop was asked for."""

KEEP_ALIVE_SECONDS = 75

COLLECT_AFTER = 10_000
"""Objects made and not yet gone before the garbage among them is looked for: a few hundred open requests."""

_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Options(NamedTuple):
    """What `serve` was asked for: all that is needed to read the settings again, in another process too."""

    file: Path | None
    flags: Flags
    admin_token: str | None = None
    bus_directory: str | None = None

    def settings(self) -> Settings:
        settings = load_settings(self.file, os.environ, self.flags, Path.home())
        return replace(settings, server=replace(settings.server, bus_directory=self.bus_directory))


class OwnProcess(Gateway):
    """The application of a process that owns its settings: it reads them again on SIGHUP."""

    def __init__(self, options: Options) -> None:
        super().__init__(self._open)
        self._options = options

    async def _open(self) -> State:
        settings = self._options.settings()
        store = await open_store(settings.store_url, settings.store)
        keys = await ClientKeys.load(store)
        refusal = check_exposure(settings, has_client_keys=not keys.is_empty)
        if refusal is not None:
            await store.close()
            raise refusal
        return make_state(settings, store, keys, Journal(standard_log()), self._options.admin_token)

    async def start(self) -> None:
        await super().start()
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        _spare_collections()

    def reload(self) -> None:
        """Take over what can be changed while running. Settings that can't be read change nothing, and are told."""
        try:
            settings = self._options.settings()
        except SettingsError as error:
            self.state.journal.say("settings not reloaded", str(error))
            return
        self.state = with_settings(self.state, settings)
        self.state.journal.say("settings reloaded", "address, store and workers stay until a restart")


class Worker(OwnProcess):
    """One of several processes. Its end is not left to the interpreter, see `thoughtline.cli.program`."""

    async def stop(self) -> None:
        await super().stop()
        atexit.register(os._exit, 0)


def server_config(app: Gateway | Callable[[], Gateway]) -> uvicorn.Config:
    """uvicorn as we use it: no websockets, no headers of its own, nothing in its log but what is broken."""
    return uvicorn.Config(
        app,
        factory=not isinstance(app, Gateway),
        http=BoundedProtocol,
        ws="none",
        proxy_headers=False,  # whoever sends X-Forwarded-For would choose its own tenant
        lifespan="on",
        server_header=False,
        date_header=False,
        access_log=False,
        log_level="critical",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


def _spare_collections() -> None:
    """What was made until now lives as long as the process: the collector need not look at it again and again.

    A request makes some hundred objects that are gone with it. Python's default has them looked at every 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


class Workers(Multiprocess):
    """uvicorn's supervisor, which stops listening in the moment a stop is asked for, not when its next look is due."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """In a thread: whoever is interrupted by a signal may hold the lock of `should_exit`."""
        self.signal_queue.append(number)
        threading.Thread(target=self._leave, daemon=True).start()

    def _leave(self) -> None:
        self.should_exit.set()  # also ends a replacement of workers that is under way
        for listener in self.sockets:
            listener.close()
        for process in list(self.processes):
            if process.pid is not None and process.exitcode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGTERM)

    def run(self) -> None:
        try:
            super().run()
        except (OSError, ValueError):  # a worker was being started on the socket that was closed
            if not self.should_exit.is_set():
                raise
            self.terminate_all()
            self.join_all()


class AppFactory:
    """Makes the application in a worker. A class, so that it can be sent to another process."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def __call__(self) -> Gateway:
        return Worker(self._options)


def listen(settings: Settings) -> socket.socket:
    """The socket that all workers share, or a refusal that says who is in the way."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise Declined(
            500,
            "address_in_use",
            f"{host}:{port} can't be listened on: {error.strerror}.",
            "Is a gateway running there? Choose another with --port.",
        ) from None


def serve(options: Options, settings: Settings, listener: socket.socket) -> bool:
    """Serve until a signal says to stop; running streams may finish. Whether it came up at all."""
    if settings.server.workers == 1:
        server = uvicorn.Server(server_config(OwnProcess(options)))
        server.run(sockets=[listener])
        return server.started
    with tempfile.TemporaryDirectory(prefix="thoughtline-") as folder:
        os.environ.setdefault(_METRICS_FOLDER, folder)
        bus = Path(folder) / "bus"
        bus.mkdir(mode=0o700)
        shared_counts.make(bus)
        options = options._replace(bus_directory=str(bus))
        config = server_config(AppFactory(options))
        config.workers = settings.server.workers
        Workers(config, sockets=[listener]).run()
    return True
