"""The log's own thread: order, limits, and pipes that are read slowly, late or never."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.gateway.test_serving import WAIT_SECONDS, command, home
from tests.stores.servers import free_port
from thoughtline.gateway import log_writer
from thoughtline.gateway.log_writer import LogRecords, LogWriter

PIPE_BYTES = 4096


@contextlib.contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """A small pipe without a reader."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    try:
        yield reader, writer
    finally:
        for one in (reader, writer):
            with contextlib.suppress(OSError):
                os.close(one)


def lost_line(count: int) -> bytes:
    return b"lost %d\n" % count


def all_of(reader: int) -> list[bytes]:
    with os.fdopen(reader, "rb") as file:
        return file.read().splitlines()


def test_lines_keep_their_order() -> None:
    """Everything queued is written when `close` returns, including `logging` output."""
    with pipe() as (reader, writer):
        log = LogWriter(writer, lost_line)
        records = LogRecords(log)
        for number in range(100):
            log.write(b"%d\n" % number)
            records.emit(logging.makeLogRecord({"msg": f"{number} too", "levelno": logging.WARNING}))
        log.close()
        os.close(writer)
        assert all_of(reader) == [b"%d%b" % (number, end) for number in range(100) for end in (b"", b" too")]


def test_what_finds_no_room_is_dropped_and_counted_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines before the gap, the count, and the lines after it: each is written or counted, in order."""
    monkeypatch.setattr(log_writer, "MAX_BYTES", 4 * PIPE_BYTES)
    with pipe() as (reader, writer):
        log = LogWriter(writer, lost_line)
        for number in range(10_000):
            log.write(b"%08d\n" % number)
        assert log.lost > 0
        lines: list[bytes] = []
        reading = threading.Thread(target=lambda: lines.extend(all_of(reader)))
        reading.start()
        log.close()
        os.close(writer)
        reading.join()
        place = 0
        for line in lines:
            if line.startswith(b"lost"):
                place += int(line.split()[1])
            else:
                assert int(line) == place
                place += 1
        assert place == 10_000


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    """Another program with the pipe open may have made it non-blocking."""
    with pipe() as (reader, writer):
        os.set_blocking(writer, False)
        log = LogWriter(writer, lost_line)
        data = b"".join(b"%08d\n" % number for number in range(PIPE_BYTES))
        log.write(data)
        lines: list[bytes] = []
        reading = threading.Thread(target=lambda: lines.extend(all_of(reader)))
        reading.start()
        log.close()
        os.close(writer)
        reading.join()
        assert lines == data.splitlines()


def test_a_pipe_whose_reader_has_gone_takes_nothing_more() -> None:
    """The thread ends; later lines are dropped."""
    with pipe() as (reader, writer):
        os.close(reader)
        log = LogWriter(writer, lost_line)
        log.write(b"one\n")
        log.close()
        log.write(b"two\n")
        assert log.lost == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_requests_are_served_while_the_log_is_not_read(tmp_path: Path, workers: str) -> None:
    """A pipe that is full from the start blocks neither the start nor a request nor the end; no client waits."""
    port = free_port()
    with pipe() as (_, writer):
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * PIPE_BYTES)
        os.set_blocking(writer, True)
        arguments = command(tmp_path, "--workers", workers, "--port", str(port))
        with subprocess.Popen(arguments, stderr=writer, env=home(tmp_path)) as process:
            try:
                with httpx.Client(
                    base_url=f"http://127.0.0.1:{port}",
                    transport=httpx.HTTPTransport(retries=10),
                    timeout=WAIT_SECONDS,
                ) as client:
                    for _ in range(200):
                        assert client.get("/no/such/address").status_code == 404
                process.send_signal(signal.SIGTERM)
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()


def test_a_stop_loses_no_line(tmp_path: Path) -> None:
    """Every request has its line, including the last ones, followed by the goodbye."""
    with subprocess.Popen(command(tmp_path), stderr=subprocess.PIPE, env=home(tmp_path)) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"listening" in line)
        url = next(word for word in line.decode().split() if word.startswith("http://"))
        with httpx.Client(timeout=WAIT_SECONDS) as client:
            asked = [client.get(f"{url}/no/such/{n}").headers["x-thoughtline-request"] for n in range(50)]
        process.send_signal(signal.SIGTERM)
        told = [json.loads(line) for line in process.stderr if line.startswith(b"{")]
        assert [line["request"] for line in told if "request" in line] == asked
        assert told[-1]["event"] == "goodbye"
