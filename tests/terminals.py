"""A command of ours on a terminal of its own: what a person sees there, and what the keys do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping

WAIT_SECONDS = 60
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CTRL_C = b"\x03"


class Terminal:
    """What was written on it so far, line by line."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._raw = b""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: nobody writes there any more
            while piece := os.read(self._descriptor, 4096):
                with self._changed:
                    self._raw += piece
                    self._changed.notify_all()

    @property
    def raw(self) -> str:
        return self._raw.decode("utf-8", "replace")

    @property
    def lines(self) -> list[str]:
        """Without colours."""
        return _COLOURS.sub("", self.raw).splitlines()

    def wait_for(self, is_it: Callable[[str], bool]) -> str:
        """The first line that is it, when it is there to its end."""

        def found() -> str | None:
            return next((line for line in self.lines[: self.raw.count("\n")] if is_it(line)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: found() is not None, WAIT_SECONDS), self.lines
            line = found()
        assert line is not None
        return line

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait(self) -> int:
        """Its exit status, when all that it wrote is here."""
        status = self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        return status


@contextlib.contextmanager
def on_terminal(*arguments: str, environment: Mapping[str, str], cwd: str) -> Iterator[Terminal]:
    """`thoughtline` with these arguments, in a session whose terminal it is."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "thoughtline.cli", *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment, "TERM": "xterm"},
        cwd=cwd,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    try:
        yield Terminal(process, ours)
    finally:
        process.terminate()
        try:
            process.wait(WAIT_SECONDS)
        finally:
            process.kill()
            os.close(ours)
