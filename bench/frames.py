"""Whether others are served while one client floods a WebSocket: `python -m bench.frames [--seconds 4]`.

A gateway in a process of its own, with a client key that is limited to one request a minute, is asked for `/healthz`
again and again by one client. Meanwhile another one sends frames as fast as they are taken, on a connection that it
opens again whenever it is closed. What is printed is the bystander's ninety-ninth percentile and longest wait, those of
the idle gateway right before, how long the gateway held its loop at most (`bench.held`), and how many connections were
closed. Loopback only, and each flood ends.

Exit status 1 if the loop was held for longer than 50 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from websockets.frames import Frame, Opcode

from bench.held import held_ms
from bench.latency import Prober, worst

IDLE_SECONDS = 2.0
MAX_HELD_MS = 50.0
PATH = b"/v1/responses"
READ_BYTES = 256 * 2**10
"""As much as one read of the loop takes."""


class Flood(NamedTuple):
    """Frames of one kind, again and again; `bytes_per_second` of None is as fast as they are taken."""

    name: str
    data: bytes
    opcode: Opcode = Opcode.TEXT
    bytes_per_second: int | None = None
    sockets: int = 1


PREWARM = b'{"type":"response.create","model":"gpt-5","generate":false,"input":[]}'
ASKED = b'{"type":"response.create","model":"gpt-5","store":false,"input":[]}'
FLOODS = (
    Flood("frames of {}", b"{}"),
    Flood("frames of {}, 8 connections", b"{}", sockets=8),
    Flood("frames of {}, 0.6 MB/s", b"{}", bytes_per_second=600_000),
    Flood("requests beyond the key's limit", ASKED),
    Flood("prewarms beyond the key's limit", PREWARM),
    Flood("empty pings", b"", Opcode.PING),
    Flood("empty fragments", b"", Opcode.CONT),
    Flood("fragments of 16 kB", b" " * 2**14, Opcode.CONT),
    Flood("messages of 1 MB, 8 connections", b'{"a":"' + b"x" * 2**20 + b'"}', sockets=8),
    Flood("messages of 30 MB", b'{"a":[' + b"1," * 15 * 2**20 + b"1]}"),
)


class Flooded(NamedTuple):
    """A gateway: where it listens, a client key of one request a minute, and how long its loop was held since asked."""

    place: str
    key: str
    held_ms: Callable[[], float]


@contextlib.contextmanager
def gateway() -> Iterator[Flooded]:
    with tempfile.TemporaryDirectory() as home:
        names = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME")
        environment = {**os.environ, **dict.fromkeys(names, home), "PYTHONPATH": str(Path(__file__).parents[1])}
        command = [sys.executable, "-m", "thoughtline.cli"]
        add = [*command, "keys", "add", "me", "--requests-per-minute", "1"]
        made = subprocess.run(add, env=environment, cwd=home, capture_output=True, text=True, check=True)
        key = next(word for word in made.stdout.split() if word.startswith("tl-"))
        log, held = Path(home, "log"), Path(home, "held")
        serve = [sys.executable, "-m", "bench.held", str(held), "serve", "--port", "0", "--provider", "openai"]
        serve += ["--upstream", "http://127.0.0.1:9"]
        with log.open("wb") as lines, subprocess.Popen(serve, stderr=lines, env=environment, cwd=home) as process:
            try:
                while b"listening" not in (said := log.read_bytes()):
                    assert process.poll() is None, said
                    time.sleep(0.05)
                place = re.findall(rb"http://([0-9.]+:[0-9]+)", said)[0].decode()
                yield Flooded(place, key, lambda: held_ms(process.pid, held))
            finally:
                process.terminate()


def upgraded(place: str, key: str) -> socket.socket:
    host, _, port = place.partition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(
        b"GET %b HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %b\r\nconnection: upgrade\r\n"
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: %b\r\n\r\n"
        % (PATH, key.encode(), b"A" * 22 + b"==")
    )
    heard = b""
    while not heard.endswith(b"\r\n\r\n"):
        heard += connection.recv(1) or b"closed\r\n\r\n"
    assert b" 101 " in heard, heard
    return connection


def batch_of(flood: Flood) -> bytes:
    """Frames that fill one read; fragments stand behind the beginning of a message."""
    one = Frame(flood.opcode, flood.data, fin=flood.opcode is not Opcode.CONT).serialize(mask=True)
    begun = Frame(Opcode.TEXT, b"{", fin=False).serialize(mask=True) if flood.opcode is Opcode.CONT else b""
    return begun + one * max(1, READ_BYTES // len(one))


def send(place: str, key: str, flood: Flood, *, until: float) -> int:
    """Flood until then. How many connections were closed by the gateway."""
    batch, closed = batch_of(flood), 0
    while time.monotonic() < until:
        with upgraded(place, key) as connection, contextlib.suppress(OSError):
            threading.Thread(target=_drain, args=(connection,), daemon=True).start()
            while time.monotonic() < until:
                connection.sendall(batch)
                if flood.bytes_per_second is not None:
                    time.sleep(len(batch) / flood.bytes_per_second)
                if connection.fileno() < 0:
                    break
            else:
                return closed
        closed += 1
    return closed


def _drain(connection: socket.socket) -> None:
    """Read what is answered; a connection that was closed is closed on this side too."""
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.frames", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each flood goes on")
    parser.add_argument("--only", default="", metavar="WORDS", help="the floods with these words in their names")
    given = parser.parse_args()
    columns = f"{'closed':>8}{'p99 ms':>9}{'max ms':>9}{'idle p99':>10}{'idle max':>10}{'held ms':>9}"
    print(f"{'/healthz during a flood of':38}{columns}")
    longest = 0.0
    for flood in FLOODS:
        if given.only not in flood.name:
            continue
        with gateway() as (place, key, held):
            with Prober(place) as idle:
                time.sleep(IDLE_SECONDS)
            held()
            with Prober(place) as probed:
                closed = flooded(place, key, flood, given.seconds)
            longest = max(longest, held_there := held())
        (most, high), (idle_most, idle_high) = worst(probed.seconds), worst(idle.seconds)
        figures = f"{closed:>8}{high:>9.1f}{most:>9.1f}{idle_high:>10.1f}{idle_most:>10.1f}{held_there:>9.1f}"
        print(f"{flood.name:38}{figures}", flush=True)
    is_well = longest <= MAX_HELD_MS
    print(f"{'held' if is_well else 'NOT HELD'}: no flood has the loop for longer than {longest:.1f} ms")
    return 0 if is_well else 1


def flooded(place: str, key: str, flood: Flood, seconds: float) -> int:
    """Flood for so long. How many connections were closed by the gateway."""
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(flood.sockets) as senders:
        counts = [senders.submit(send, place, key, flood, until=until) for _ in range(flood.sockets)]
        return sum(count.result() for count in counts)


if __name__ == "__main__":
    sys.exit(main())
