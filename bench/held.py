"""How long the gateway's loop is held, whatever else the machine does: `python -m bench.held FILE serve …`.

Runs a command of thoughtline. Every millisecond the loop takes down how long the process has computed since the last
time, and how long that was: the most of the lesser of both is what a bystander waited for the gateway itself, and not
for a core. All threads count, since one that keeps the interpreter holds the loop too. SIGUSR1 writes the most, in
milliseconds, to FILE, and begins again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from thoughtline import cli
from thoughtline.gateway.serving import OwnProcess

BEAT_SECONDS = 0.001


class Heart:
    """Beats on the loop."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._most = 0.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGUSR1, self._tell)
        self._computed, self._at = time.process_time(), time.monotonic()
        self._beat()

    def _beat(self) -> None:
        computed, at = time.process_time(), time.monotonic()
        self._most = max(self._most, min(computed - self._computed, at - self._at))
        self._computed, self._at = computed, at
        self._loop.call_later(BEAT_SECONDS, self._beat)

    def _tell(self) -> None:
        most, self._most = self._most, 0.0
        written = self._file.with_suffix(".new")
        written.write_text(f"{most * 1000}")
        written.rename(self._file)


def held_ms(process: int, file: Path) -> float:
    """The most since it was asked the last time, of a process that runs so."""
    file.unlink(missing_ok=True)
    os.kill(process, signal.SIGUSR1)
    while not file.exists():
        time.sleep(0.01)
    return float(file.read_text())


def main() -> None:
    heart, start = Heart(Path(sys.argv.pop(1))), OwnProcess.start

    async def started(self: OwnProcess) -> None:
        await start(self)
        heart.start()

    OwnProcess.start = started  # type: ignore[method-assign]  # the one process that this is
    cli.program()


if __name__ == "__main__":
    main()
