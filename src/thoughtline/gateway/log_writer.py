"""Writes the log in a thread, so that a pipe without a reader blocks no request.

Lines wait, in order, in a queue of limited size. Lines without room are dropped, and the log says how many are missing
at that place. `close` writes the rest, as long as it is being read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable

MAX_BYTES = 4 * 2**20
"""Maximum size of the queue: some thousand lines."""

CLOSE_SECONDS = 5.0
"""How long a shutdown waits for a reader."""

_RETRY_SECONDS = 0.1


class LogWriter:
    """Writes lines to a descriptor. `lost` counts those that had no room in the queue; `lost_line` formats the
    notice."""

    def __init__(self, descriptor: int, lost_line: Callable[[int], bytes]) -> None:
        self._descriptor = descriptor
        self._lost_line = lost_line
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._untold = self.lost = 0
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue whole lines, or drop them if there is no room. Never waits for the reader."""
        with self._changed:
            if self._untold or self._waiting_bytes + len(data) > MAX_BYTES:
                lines = data.count(b"\n")
                self._untold += lines
                self.lost += lines
                return
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify()

    def close(self) -> None:
        """Write everything that is waiting, as long as it is being read."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        """Write until the end. Bytes that are being written still count as queued."""
        with contextlib.suppress(OSError):  # the pipe is closed, which must not stop the gateway
            while data := self._take():
                self._write_whole(data)
                with self._changed:
                    self._waiting_bytes -= len(data)
        with self._changed:
            self._waiting_bytes = MAX_BYTES
            self._waiting.clear()

    def _take(self) -> bytes:
        """Return everything that is waiting; nothing at the end."""
        with self._changed:
            while not self._waiting and not self._untold and not self._is_closing:
                self._changed.wait()
            lines, self._waiting = self._waiting, []
            if self._untold:  # lost lines came after these, and none was queued since
                lost = self._lost_line(self._untold)
                lines.append(lost)
                self._waiting_bytes += len(lost)
                self._untold = 0
            return b"".join(lines)

    def _write_whole(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another process has made the pipe non-blocking
                _wait_until_writable(self._descriptor)


def _wait_until_writable(descriptor: int) -> None:
    if sys.platform == "win32":  # its select supports only sockets
        time.sleep(_RETRY_SECONDS)
    else:
        select.select([], [descriptor], [])


class LogRecords(logging.Handler):
    """Puts other packages' `logging` output in the same queue. Our own warnings go into the journal."""

    def __init__(self, log: LogWriter) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self.addFilter(lambda record: not record.name.startswith("thoughtline"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.write(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except Exception:
            self.handleError(record)


def open_log(lost_line: Callable[[int], bytes]) -> LogWriter:
    """Open the log of this process, on standard error. It includes all `logging` output."""
    log = LogWriter(sys.stderr.fileno(), lost_line)
    logging.getLogger().addHandler(LogRecords(log))
    return log
