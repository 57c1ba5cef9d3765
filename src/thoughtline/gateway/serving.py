"""Runs the gateway: a server for the application, in one or several processes on one port and one store."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvicorn
from msgspec.structs import replace

from thoughtline.gateway.app import Gateway
from thoughtline.gateway.checking import checked
from thoughtline.gateway.client_keys import ClientKeys, KeyMark
from thoughtline.gateway.journal import Journal, event_line, log_into
from thoughtline.gateway.limits import make_counts
from thoughtline.gateway.log_styles import style_of
from thoughtline.gateway.log_writer import LogWriter, open_log
from thoughtline.gateway.metrics import FOLDER_VARIABLE, Totals, totals_of_workers
from thoughtline.gateway.protocol import BoundedProtocol
from thoughtline.gateway.state import State, make_state, with_settings
from thoughtline.gateway.supervisor import Supervisor
from thoughtline.gateway.tracing import TracesUnavailable, open_tracing
from thoughtline.settings import Flags, Settings, data_directory, home_folder, load_settings
from thoughtline.stores import open_store
from thoughtline.terminal import LogOptions, counted, duration
from thoughtline.values.errors import InputProblem, SettingsError, ThoughtlineError

GRACE_SECONDS = 30
"""How long streams may continue after a shutdown begins."""

KEEP_ALIVE_SECONDS = 75

SWITCH_SECONDS = 0.001
"""How long a thread with a large request may keep the interpreter while the event loop waits for it. With Python's 5
ms, each step of each small request would wait that long."""

COLLECT_AFTER = 10_000
"""Allocations before a garbage collection: a few hundred open requests."""

YOUNG_COLLECTIONS, MIDDLE_COLLECTIONS = 2, 150
"""How many collections of a generation come before one of the next. A collection holds the interpreter for as long as
it has objects to visit. With 20 of the youngest, one of the middle generation took up to 58 ms beside conversations of
24,000 messages; with 2, up to 25 ms, at the same cost. Full collections are as rare as with 20 and 20."""


class ServeOptions(NamedTuple):
    """The options of `serve`: all that is needed to read the settings again."""

    file: Path | None
    flags: Flags
    admin_token: str | None = None
    login_code: str = ""
    log: LogOptions = LogOptions()

    def settings(self) -> Settings:
        return load_settings(self.file, os.environ, self.flags, home_folder())

    @property
    def mark(self) -> KeyMark:
        return KeyMark(data_directory(os.environ, home_folder()))

    def open_log(self) -> LogWriter:
        return open_log(self._lost_line)

    def _lost_line(self, count: int) -> bytes:
        text = event_line("log lines lost", f"{count:,}: the log was not read in time", style_of(self.log))
        return (text or b"") + b"\n"

    def journal(self, log: LogWriter) -> Journal:
        return Journal(log, style=style_of(self.log))


class OwnProcess(Gateway):
    """The application of a process with checked settings. It reads them again on SIGHUP."""

    def __init__(
        self, options: ServeOptions, settings: Settings, log: LogWriter, on_up: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(self._open)
        self._options = options
        self._log = log
        self._settings = settings
        self._began = time.monotonic()
        self._on_up = on_up
        self.failure: ThoughtlineError | None = None

    async def _open(self) -> State:
        settings, journal = self._settings, self._options.journal(self._log)
        log_into(journal)
        store = await open_store(settings.store_url, settings.store)
        keys = await ClientKeys.load(store, mark=self._options.mark)
        keys.follow(settings)
        token, code = self._options.admin_token, self._options.login_code
        state = make_state(settings, store, keys, journal, token, login_code=code)
        try:
            return state._replace(tracing=open_tracing(os.environ))
        except TracesUnavailable as problem:
            journal.say("no traces", str(problem))
            return state

    async def start(self) -> None:
        try:
            await super().start()
        except ThoughtlineError as error:
            self.failure = error  # the server only knows that it failed
            raise
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        _spare_collections()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._on_up()

    async def stop(self) -> None:
        try:
            await super().stop()
            self._say_goodbye()
        finally:  # the signal that stopped it may end the process right after this
            await asyncio.to_thread(self._log.close)

    def _say_goodbye(self) -> None:
        self.state.journal.say(*goodbye(self.state.metrics.totals, time.monotonic() - self._began))

    def reload(self) -> None:
        """Apply settings that can change at runtime. Settings that fail a check change nothing, and are reported."""
        try:
            settings = checked(self._options.settings(), self.state.keys, self.state.admin.loaded)
        except ThoughtlineError as error:
            self.state.journal.say("settings not reloaded", str(error))
            return
        self.state = with_settings(self.state, settings)
        self.state.journal.say("settings reloaded", "address, store and workers stay until a restart")


class Worker(OwnProcess):
    """One of several processes. It ends without the interpreter's cleanup, see `thoughtline.cli.program`."""

    def reload(self) -> None:
        """Nothing: the supervisor reloads. A terminal that hangs up signals all processes."""

    def _say_goodbye(self) -> None:
        """Nothing: the supervisor logs it for all."""

    async def stop(self) -> None:
        await super().stop()
        atexit.register(os._exit, 0)


def goodbye(totals: Totals, seconds: float) -> tuple[str, str]:
    """Return the last line of the log: the totals of the run."""
    words = [
        counted(totals.requests, "request"),
        f"restored {counted(totals.restored, 'turn')}",
        f"healed {totals.healed}",
        f"avoided {counted(totals.avoided, 'refusal')}",
        *([_observed(totals)] if totals.observed else []),
        f"up {duration(seconds)}",
    ]
    return "goodbye", ", ".join(words)


def _observed(totals: Totals) -> str:
    would = f"would have changed {counted(totals.observed, 'observed request')}"
    return f"{would}, of which {totals.preventable} failed for that"


def server_config(app: Gateway | Callable[[], Gateway]) -> uvicorn.Config:
    """Return uvicorn's configuration: without its own WebSockets and headers, and logging only errors."""
    return uvicorn.Config(
        app,
        factory=not isinstance(app, Gateway),
        http=BoundedProtocol,
        ws="none",  # `protocol.py` handles them
        interface="asgi3",
        proxy_headers=False,  # with X-Forwarded-For, callers could choose their own tenant
        lifespan="on",
        server_header=False,
        date_header=False,
        access_log=False,
        log_config=None,
        log_level="critical",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


def _spare_collections() -> None:
    """Exempt existing objects from garbage collection, since they live as long as the process.

    A request makes some hundred objects that are gone with it. Python's default runs a collection every 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, YOUNG_COLLECTIONS, MIDDLE_COLLECTIONS)


class AppFactory:
    """Makes the application in a worker. It is a class so that it can be pickled."""

    def __init__(self, options: ServeOptions, settings: Settings) -> None:
        self._options = options
        self._settings = settings

    def __call__(self) -> Gateway:
        log = self._options.open_log()
        atexit.register(log.close)  # for a worker that never reaches its stop
        return Worker(self._options, self._settings, log)


OnUp = Callable[[LogWriter], None]


def serve(
    options: ServeOptions, settings: Settings, listener: socket.socket, *, on_up: OnUp = lambda log: None
) -> bool:
    """Serve with checked settings until a signal stops it; running streams may finish.

    Returns whether it started; `on_up` is called with the log when it does. Raises the reason if it did not start, if
    known.
    """
    log = options.open_log()
    try:
        if settings.server.workers == 1:
            return _serve_alone(options, settings, listener, log, on_up=partial(on_up, log))
        return _serve_with_workers(options, settings, listener, log, on_up=partial(on_up, log))
    finally:
        log.close()


def _serve_alone(
    options: ServeOptions, settings: Settings, listener: socket.socket, log: LogWriter, *, on_up: Callable[[], None]
) -> bool:
    app = OwnProcess(options, settings, log, on_up)
    server = uvicorn.Server(server_config(app))
    server.run(sockets=[listener])
    if app.failure is not None:
        raise app.failure
    return server.started


def _serve_with_workers(
    options: ServeOptions, settings: Settings, listener: socket.socket, log: LogWriter, *, on_up: Callable[[], None]
) -> bool:
    began, journal = time.monotonic(), options.journal(log)
    log_into(journal)
    with _temporary_folder() as folder:
        counts = os.environ.setdefault(FOLDER_VARIABLE, folder)
        before = totals_of_workers(counts)
        bus = Path(folder) / "bus"
        bus.mkdir(mode=0o700)
        make_counts(bus)
        settings = replace(settings, bus_directory=str(bus))
        config, reload = _worker_config(options, settings), partial(_reloaded, options, settings)
        Supervisor(config, listener, reload, journal, on_up=on_up).run()
        journal.say(*goodbye(totals_of_workers(counts) - before, time.monotonic() - began))
    return True


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder shared by the workers."""
    try:
        return tempfile.TemporaryDirectory(prefix="thoughtline-")
    except OSError:
        remedy = "set TMPDIR to a folder that can be written, or serve with --workers 1, which needs none"
        problem = InputProblem("settings", "server.workers", "there is no folder for temporary files", remedy)
        raise SettingsError([problem]) from None


def _worker_config(options: ServeOptions, settings: Settings) -> uvicorn.Config:
    config = server_config(AppFactory(options, settings))
    config.workers = settings.server.workers
    return config


def _reloaded(options: ServeOptions, running: Settings) -> uvicorn.Config:
    """Return the workers' configuration with reloaded and checked settings."""

    async def settings() -> Settings:
        store = await open_store(running.store_url, running.store)
        try:
            return checked(options.settings(), await ClientKeys.load(store, mark=options.mark), running)
        finally:
            await store.close()

    return _worker_config(options, asyncio.run(settings()))
