"""Whether others are served while one request is hard work: `python -m bench.latency`.

A gateway in a process of its own, asked for `/healthz` again and again by one client while another sends a request of
each kind: huge, long, dense, deep, packed. What is told is the longest wait, its ninety-ninth percentile, its ratio
to the idle gateway's, measured right before, and how long the gateway held its loop at most (`bench.held`).
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import zstandard

from bench.held import held_ms

LARGEST = 32 * 2**20 - 2**10
ANSWER = b'{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
HUGE_ANSWER = ANSWER.replace(b'"hi"', b'"' + b"a" * (LARGEST // 2) + b'"')
CHAT = "/deepseek/v1/chat/completions"
IDLE_SECONDS = 2.0
ROOT = Path(__file__).parents[1]


class Kind(NamedTuple):
    """A kind of request that is work."""

    name: str
    body: Callable[[], bytes]
    path: str = CHAT
    encoding: str = ""
    wants_much: bool = False


def pairs(count: int) -> bytes:
    """A conversation as an honest client has it."""
    turns = [
        {"role": role, "content": f"{role} says {number}, and that is all there is to say."}
        for number in range(count)
        for role in ("user", "assistant")
    ]
    return json.dumps({"model": "deepseek-v4-pro", "max_tokens": 9, "messages": turns}).encode()


def filled(start: bytes, pump: bytes, end: bytes, size: int = LARGEST) -> bytes:
    return start + pump * ((size - len(start) - len(end)) // len(pump)) + end


LIST = b'{"model":"m","messages":['
KINDS = (
    Kind("10,000 pairs of a chat, 1.3 MB", lambda: pairs(10_000)),
    Kind("10,000 pairs, translated from Ollama", lambda: pairs(10_000), "/deepseek/api/chat"),
    Kind("100,000 pairs, 13 MB", lambda: pairs(100_000)),
    Kind("32 MiB of {} as messages", lambda: filled(LIST, b"{},", b"{}]}")),
    Kind(
        "a million {} in 300 bytes of zstd",
        lambda: zstandard.compress(filled(LIST, b"{},", b"{}]}", 3 * 2**20)),
        CHAT,
        "zstd",
    ),
    Kind("1 MiB of {} in zstd", lambda: zstandard.compress(filled(LIST, b"{},", b"{}]}", 2**20 - 9)), CHAT, "zstd"),
    Kind("33,000 {} as messages", lambda: filled(LIST, b"{},", b"{}]}", 99_000)),
    Kind("32 MiB of text", lambda: filled(LIST + b'{"role":"user","content":"', b"word ", b'"}]}')),
    Kind("32 MiB of escapes", lambda: filled(LIST + b'{"role":"user","content":"', b"\\n", b'"}]}')),
    Kind("32 MiB of numbers", lambda: filled(b'{"model":"m","x":[', b"1,", b'1],"messages":[]}')),
    Kind("32 MiB of strings", lambda: filled(b'{"model":"m","x":[', b'"",', b'""],"messages":[]}')),
    Kind("32 MiB of brackets", lambda: filled(b'{"model":"m","messages":', b"[", b"")),
    Kind("an answer of 16 MiB", lambda: pairs(1), wants_much=True),
)


class Upstream(BaseHTTPRequestHandler):
    """Takes whatever comes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        left = int(self.headers["content-length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 2**20)))
        answer = HUGE_ANSWER if self.headers.get("x-much") else ANSWER
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def gateway() -> Iterator[tuple[str, Callable[[], float]]]:
    """A gateway of its own; gives where it listens, and how long its loop was held since that was asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as home:
        held = Path(home, "held")
        command = [sys.executable, "-m", "bench.held", str(held), "serve", "--port", "0"]
        variables = {**dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), home), "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [*command, "--upstream", upstream, "--provider", "deepseek"],
            stderr=subprocess.PIPE,
            env={**os.environ, **variables},
            cwd=home,
        )
        assert process.stderr is not None
        line = next(line.decode() for line in process.stderr if b"listening" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            place = line.partition("http://")[2].split()[0].partition("/")[0].strip(".,")
            yield place, lambda: held_ms(process.pid, held)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


class Prober:
    """Asks for `/healthz`, one request after the other, and keeps how long each took. In a process of its own: nothing
    but the gateway keeps it waiting."""

    def __init__(self, place: str) -> None:
        self._command = [sys.executable, "-m", "bench.latency", "--probe", place]
        self.seconds: list[float] = []

    def __enter__(self) -> Prober:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = json.loads(self._process.communicate()[0])


def probe(place: str) -> None:
    """Until the input is closed; then the figures."""
    over = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    seconds = []
    connection = http.client.HTTPConnection(place, timeout=120)
    while not over.is_set():
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        seconds.append(time.perf_counter() - began)
        if len(seconds) == 1:
            print("ready", flush=True)
        over.wait(0.002)
    print(json.dumps(seconds[1:] or seconds))


def post(place: str, kind: Kind, body: bytes) -> int:
    connection = http.client.HTTPConnection(place, timeout=300)
    headers = {"authorization": "Bearer key", "content-type": "application/json"}
    if kind.encoding:
        headers["content-encoding"] = kind.encoding
    if kind.wants_much:
        headers["x-much"] = "1"
    connection.request("POST", kind.path, body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def worst(seconds: list[float]) -> tuple[float, float]:
    """The longest wait and the ninety-ninth percentile, in milliseconds."""
    ordered = sorted(seconds)
    return ordered[-1] * 1000, ordered[int(len(ordered) * 0.99)] * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=1, help="so many of each kind at the same time")
    parser.add_argument("--rounds", type=int, default=1, help="so often each kind; the median of the rounds is told")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.probe:
        probe(given.probe)
        return
    with gateway() as (place, held):
        post(place, KINDS[0], pairs(1))
        columns = f"{'status':>7}{'s':>7}{'max ms':>9}{'p99 ms':>9}{'x idle p99':>12}{'held ms':>9}"
        print(f"{'/healthz while one request is worked on':42}{columns}")
        for kind in KINDS:
            body = kind.body()
            with Prober(place) as idle:
                time.sleep(IDLE_SECONDS)
            held()
            rounds = [one_round(place, kind, body, given.at_once) for _ in range(given.rounds)]
            status, took, most, high = (statistics.median_low(figures) for figures in zip(*rounds, strict=True))
            _, idle_high = worst(idle.seconds)
            figures = f"{status:>7}{took:>7.2f}{most:>9.1f}{high:>9.1f}{high / idle_high:>12.1f}{held():>9.1f}"
            print(f"{kind.name:42}{figures}", flush=True)


def one_round(place: str, kind: Kind, body: bytes, at_once: int) -> tuple[int, float, float, float]:
    """Status, seconds, and how long `/healthz` took meanwhile: at most, and in ninety-nine of a hundred."""
    statuses: list[int] = []
    with Prober(place) as probed:
        began = time.perf_counter()
        senders = [threading.Thread(target=lambda: statuses.append(post(place, kind, body))) for _ in range(at_once)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        took = time.perf_counter() - began
    return (statuses[0], took, *worst(probed.seconds))


if __name__ == "__main__":
    main()
