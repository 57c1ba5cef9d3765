"""The log is written in a thread: a pipe that is not read holds up no request.

Lines wait in a queue of so many bytes and keep their order. What finds no room there is dropped, and the log says how
many lines are missing, at their place. `close` writes what still waits, for as long as somebody reads.
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

MOST_BYTES = 4 * 2**20
"""What may wait: some thousand lines."""

CLOSE_SECONDS = 5.0
"""How long a stop waits for a reader."""

_RETRY_SECONDS = 0.1


class LogWriter:
    """Writes lines to a descriptor. `lost` counts those that found no room in the queue; `lost_line` says it."""

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
        """Queue whole lines, or drop them where there is no room. Never waits for the reader."""
        with self._changed:
            if self._untold or self._waiting_bytes + len(data) > MOST_BYTES:
                lines = data.count(b"\n")
                self._untold += lines
                self.lost += lines
                return
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, while somebody reads it."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        """Write until the end. What is being written still takes up room."""
        with contextlib.suppress(OSError):  # nothing reads it any more: a closed pipe is no reason to stop serving
            while data := self._take():
                self._write_whole(data)
                with self._changed:
                    self._waiting_bytes -= len(data)
        with self._changed:
            self._waiting_bytes = MOST_BYTES
            self._waiting.clear()

    def _take(self) -> bytes:
        """What waits; nothing at the end."""
        with self._changed:
            while not self._waiting and not self._untold and not self._is_closing:
                self._changed.wait()
            lines, self._waiting = self._waiting, []
            if self._untold:  # all of it came after these lines, and nothing was queued since
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
            except BlockingIOError:  # another process has set the pipe to that
                _wait_until_writable(self._descriptor)


def _wait_until_writable(descriptor: int) -> None:
    if sys.platform == "win32":  # which selects sockets alone
        time.sleep(_RETRY_SECONDS)
    else:
        select.select([], [descriptor], [])


class LogRecords(logging.Handler):
    """What other packages say through `logging`, in the same queue. Our own warnings go into the journal."""

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
    """The log of this process, on its standard error output. All that goes through `logging` goes there too."""
    log = LogWriter(sys.stderr.fileno(), lost_line)
    logging.getLogger().addHandler(LogRecords(log))
    return log
