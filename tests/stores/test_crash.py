"""`kill -9` while saving."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.stores.places import SETTINGS, START, found
from tests.stores.servers import Valkey
from thoughtline.stores import durable_store

KILLS = 200
DRIVERS = 2
RECOVERY_SECONDS = 120


async def test_what_was_acknowledged_survives_being_killed(tmp_path: Path) -> None:
    """Two series of writers on one file, each writer killed at a random moment: 200 kills, no acknowledged turn
    lost."""
    path = tmp_path / "thoughts.db"
    command = [sys.executable, "-m", "tests.stores.killed_writers", f"sqlite:///{path}", str(KILLS // DRIVERS)]
    drivers = [
        subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        for seed in range(1, DRIVERS + 1)
    ]
    outputs = [driver.communicate()[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0] * DRIVERS
    acknowledged = [int(line) for output in outputs for line in output.split()]
    assert len(acknowledged) > 10 * KILLS

    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    (pointers,) = connection.execute(
        "SELECT count(*) FROM lookups WHERE record NOT IN (SELECT seq FROM records)"
    ).fetchone()
    assert pointers == 0
    connection.close()

    store = durable_store(f"sqlite:///{path}", SETTINGS, lambda: START)
    await store.open()
    assert [number for number in acknowledged if not await found(store, number)] == []
    stats = await store.stats()
    assert stats.disk_entries >= len(acknowledged)
    await store.close()


def test_a_writer_waits_for_a_store_that_is_away() -> None:
    """It saves again when the store is back, and is killed then: it does not save to memory alone without end."""
    server = Valkey()
    command = [sys.executable, "-m", "tests.stores.killed_writers", server.url, "3", "1"]
    server.stop()
    driver = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        assert driver.stderr is not None
        assert next((line for line in driver.stderr if "kept in memory only" in line), "")
        server.start()
        acknowledged = driver.communicate(timeout=RECOVERY_SECONDS)[0].split()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)  # and the writer that it has forked
        server.remove()
    assert driver.returncode == 0
    assert len(acknowledged) == len(set(acknowledged)) > 0
