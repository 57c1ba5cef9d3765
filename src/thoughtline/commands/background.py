"""A gateway in the background, for as long as the process that started it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from thoughtline.settings import data_directory, home_folder
from thoughtline.values.errors import Declined

START_SECONDS = 30
_LOOK_SECONDS = 0.5


def start_gateway(config: Path | None, answers: Callable[[], bool]) -> None:
    """Start one and wait until it answers. What it logs goes to a file: the terminal is the client's."""
    folder = data_directory(os.environ, home_folder())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "gateway.log"
    words = [sys.executable, "-m", "thoughtline.cli", "serve", "--log", "text", "--while-parent-lives"]
    if config is not None:
        words += ["--config", str(config)]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened, start_new_session=True
        )
    until = time.monotonic() + START_SECONDS
    while not answers():
        if process.poll() is not None or time.monotonic() > until:
            raise Declined(500, "no_gateway", f"The gateway did not start. {_last_line(log)}", f"The whole log: {log}")
        time.sleep(0.1)
    sys.stderr.write(f"thoughtline run: started a gateway for the client; its log: {log}\n")


def end_with_parent() -> None:
    """Stop this process, in order, once the one that started it has gone."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="end-with-parent", daemon=True).start()


def _last_line(log: Path) -> str:
    return log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
