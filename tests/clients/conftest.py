"""Fixtures of the programs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import Place, Trap


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A home and a folder to work in, for one test. What still runs there is ended: Cline leaves a daemon."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    yield Place(home, work, Trap())
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"HOME={home}".encode() in process.read_bytes().split(b"\0"):
                os.kill(int(process.parent.name), signal.SIGKILL)
