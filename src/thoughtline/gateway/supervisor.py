"""Several workers on one port, each with its own socket: starts and watches them, and replaces them when settings
change.

Workers get settings that were checked here; no worker reads the file. A worker that fails to start is retried with
growing pauses, while the others serve.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from thoughtline.gateway.journal import Journal
from thoughtline.gateway.listening import for_another
from thoughtline.values.errors import ThoughtlineError

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 1.0, 60.0
START_SECONDS = 60.0
"""How long a worker may take until it serves."""


@dataclass
class _Start:
    """The state of the latest start of a worker."""

    began: float
    pause: float = 0.0
    is_ready: bool = False


class Supervisor(Multiprocess):
    """uvicorn's supervisor with three differences: one worker's failure does not end all, a reload can be refused, and
    it stops listening as soon as a shutdown begins."""

    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket,
        reload: Callable[[], uvicorn.Config],
        journal: Journal,
        *,
        on_up: Callable[[], None] = lambda: None,
    ) -> None:
        others = [for_another(listener) for _ in range(1, config.workers)]
        super().__init__(config, sockets=[listener, *others])
        self._on_up: Callable[[], None] | None = on_up
        self._reload = reload
        self._journal = journal
        self._starts: dict[int, _Start] = {}
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def run(self) -> None:
        try:
            super().run()
        except (OSError, ValueError):  # a worker was being started on the closed socket
            if not self.should_exit.is_set():
                raise
            self.terminate_all()
            self.join_all()

    def init_processes(self) -> None:
        for place in range(self.processes_num):
            self.processes.append(self._start(place))

    def _start(self, place: int) -> Process:
        process = Process(self.config, [self.sockets[place]])
        process.start()
        return process

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Runs in a thread, because the signal may interrupt code that holds the lock of `should_exit`."""
        self.signal_queue.append(number)
        threading.Thread(target=self._leave, daemon=True).start()

    def _leave(self) -> None:
        self.should_exit.set()  # also ends a running replacement of workers
        for listener in self.sockets:
            listener.close()
        for process in list(self.processes):
            if process.pid is not None and process.exitcode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGTERM)

    def keep_subprocess_alive(self) -> None:
        """Check each worker, and replace those that have ended."""
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            start = self._starts.setdefault(place, _Start(time.monotonic()))
            if not self._is_well(place, process, start):
                self._replace(place, process, start)

    def _is_well(self, place: int, process: Process, start: _Start) -> bool:
        if not process.process.is_alive():
            return False
        if start.is_ready:
            return process.is_alive(timeout=self.config.timeout_worker_healthcheck)
        if process.is_ready(timeout=0.1):
            start.is_ready = True
            if self._on_up is not None:
                self._on_up()
                self._on_up = None
            self._journal.say("worker serves", f"{place + 1} of {self.processes_num}")
        return start.is_ready or time.monotonic() - start.began < START_SECONDS

    def _replace(self, place: int, process: Process, start: _Start) -> None:
        """Restart a worker: at once if it had served; after a growing pause if it did not even start."""
        process.kill()
        process.join()
        now = time.monotonic()
        if not start.is_ready:
            self._leave_to_others(place)
            start.pause = start.pause or FIRST_PAUSE_SECONDS
            if now - start.began < start.pause:
                return
        pause = 0.0 if start.is_ready else min(2 * start.pause, LAST_PAUSE_SECONDS)
        what = "worker ended" if start.is_ready else "worker could not start"
        self._journal.say(what, f"another is started in the place of {place + 1} of {self.processes_num}")
        self.processes[place] = self._start(place)
        self._starts[place] = _Start(now, pause)

    def _leave_to_others(self, place: int) -> None:
        """Let the other workers take connections that would wait for this one."""
        if any(start.is_ready for other, start in self._starts.items() if other != place):
            former, self.sockets[place] = self.sockets[place], for_another(self.sockets[place])
            former.close()

    def handle_hup(self) -> None:
        """Reload and check the settings. If they fail, nothing changes."""
        try:
            config = self._reload()
        except ThoughtlineError as error:
            self._journal.say("settings not reloaded", str(error))
            return
        former, self.config = self.config, config
        if self._replace_all():
            self._journal.say("settings reloaded", "address, store and workers stay until a restart")
        else:
            self.config = former

    def _replace_all(self) -> bool:
        """Replace the workers one by one, each when its successor serves. If the first successor fails, nothing has
        changed."""
        for place, process in enumerate(self.processes):
            successor = self._start(place)
            if not successor.wait_until_ready(START_SECONDS, self.should_exit):
                successor.kill()
                successor.join()
                self._journal.say("settings not reloaded", f"worker {place + 1} could not start with them")
                return place > 0
            process.terminate()
            process.join()
            self.processes[place] = successor
            self._starts[place] = _Start(time.monotonic(), is_ready=True)
        return True
