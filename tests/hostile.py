"""A client that means harm, against any gateway: `python -m tests.hostile URL [--pid PID]`.

Slow, half, huge, deep, repeated, compressed, malformed; over HTTP and over WebSockets. While each attack goes on
`/healthz` is asked again and again; every attack gets an answer or a closed connection, and with the process id of a
local gateway its memory and descriptors are looked at before and after.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import json
import os
import resource
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import zstandard
from websockets.frames import Frame, Opcode

MAX_BODY = 32 * 2**20
MAX_GROWN_KB = 400 * 2**10
MAX_LEFT_OPEN = 20
HEALTH_SECONDS = 20.0
"""How long `/healthz` may take on a machine that is busy with other things: whether it answers at all is looked at
here, how soon in `bench/latency.py`."""


class Target(NamedTuple):
    """Where to go, and how long a connection that brings nothing may stay open."""

    host: str
    port: int
    path: str
    patience: float

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=self.patience)


def request(target: Target, body: bytes = b"{}", *headers: bytes, path: str = "") -> bytes:
    head = [b"POST %b HTTP/1.1" % (path or target.path).encode(), b"host: localhost", b"authorization: Bearer key"]
    head += [b"content-type: application/json", *headers]
    if not any(name.lower().startswith((b"content-length", b"transfer-encoding")) for name in headers):
        head.append(b"content-length: %d" % len(body))
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def said(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed, or nothing comes any more."""
    pieces = []
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def ask(target: Target, data: bytes) -> int:
    """The status of the answer to these bytes; 0 if the connection was closed without one."""
    with target.connect() as connection:
        with contextlib.suppress(OSError):  # an answer may come, and the connection be closed, before all is sent
            connection.sendall(data)
        return status_of(first_line(connection))


def first_line(connection: socket.socket) -> bytes:
    heard = b""
    with contextlib.suppress(OSError):
        while b"\r\n" not in heard and (piece := connection.recv(4096)):
            heard += piece
    return heard


def status_of(answer: bytes) -> int:
    words = answer.split(None, 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def expect(status: int, *allowed: int) -> None:
    """One of these, or what an upstream that is not there makes of it; never a fault of the gateway's own."""
    assert status in allowed or (not allowed and status != 500), f"{status}, not one of {allowed}"


# Slow


def slow(target: Target) -> None:
    """Heads and bodies that never end, and clients that say nothing: each connection is closed."""
    begun = request(target, b"x" * 10, b"content-length: 100000")
    opened = [target.connect() for _ in range(30)]
    try:
        for number, connection in enumerate(opened):
            connection.sendall((b"", b"POST /deepseek HTTP/1.1\r\nx: ", begun)[number % 3])
        over = time.monotonic() + target.patience
        for connection in opened:
            connection.settimeout(max(0.1, over - time.monotonic()))
            answer = b"".join(iter(lambda c=connection: c.recv(4096), b""))  # type: ignore[misc]  # raises if it is late
            expect(status_of(answer), 0, 408)
    finally:
        for connection in opened:
            connection.close()


def trickling(target: Target) -> None:
    """A head that comes letter by letter is not waited for longer than one that does not come at all."""
    over = time.monotonic() + target.patience
    with target.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        while time.monotonic() < over:
            connection.sendall(b"x")
            connection.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                if not connection.recv(4096):
                    return
    assert time.monotonic() < over, "still open"


# Half


def half(target: Target) -> None:
    """Clients that leave in the middle: of the head, of the body, and with a reset."""
    whole = request(target, b'{"model":"m","messages":[]}')
    for end in (1, 20, 60, len(whole) - 5, len(whole)):
        for is_reset in (False, True):
            with target.connect() as connection:
                connection.sendall(whole[:end])
                if is_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# Huge


def huge_heads(target: Target) -> None:
    """More than a head may hold, in one header, in many, and in the path."""
    expect(ask(target, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2**20), 431, 0)
    expect(ask(target, b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: a\r\n" * 200_000 + b"\r\n"), 431, 0)
    expect(ask(target, request(target, path="/deepseek" + "/models/a" * 6_900)), 414)
    expect(ask(target, request(target, path="/v1" * 20_000 + "/models")), 414)
    expect(ask(target, b"GET /healthz?" + b"a=b&" * 15_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"), 200, 431)


def huge_bodies(target: Target) -> None:
    """More than a body may be, told and untold, and all that it may be of what is work."""
    expect(ask(target, request(target, b"{", b"content-length: 999999999999")), 413)
    chunk = b"100000\r\n" + b"a" * 2**20 + b"\r\n"
    expect(ask(target, request(target, chunk * 40, b"transfer-encoding: chunked")), 413, 0)
    for pump in (b"{},", b"1,", b'"",', b'{"role":"user","content":"a"},', b"[],"):
        expect(ask(target, request(target, filled(pump))))


def filled(pump: bytes, size: int = MAX_BODY - 4096) -> bytes:
    return b'{"model":"m","messages":[' + pump * (size // len(pump)) + b"0]}"


def long_answers_unread(target: Target) -> None:
    """Clients that ask and never read."""
    opened = [target.connect() for _ in range(20)]
    for connection in opened:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 50)
    for connection in opened:
        connection.close()


# Deep


def deep(target: Target) -> None:
    """Arrays and objects in each other, more of them than anybody can follow."""
    for opening in (b"[", b'{"a":', b'[{"a":'):
        for size in (1_000, 100_000, 2**20):
            expect(ask(target, request(target, b'{"model":"m","messages":' + opening * (size // len(opening)))))


# Repeated


def repeated(target: Target) -> None:
    """The same again and again: headers, members, chunks, requests on one connection, connections."""
    expect(ask(target, request(target, b"{}", *[b"x-a: b"] * 2_000)))
    expect(ask(target, request(target, b"{" + b'"model":"m",' * 100_000 + b'"messages":[]}')))
    expect(ask(target, request(target, b"1\r\n{\r\n" * 200_000 + b"0\r\n\r\n", b"transfer-encoding: chunked")))
    with target.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 500)
        connection.shutdown(socket.SHUT_WR)
        assert said(connection).count(b"HTTP/1.1 200") >= 1
    for _ in range(5):
        opened = [target.connect() for _ in range(100)]
        for one in opened:
            one.close()


# Compressed


def compressed(target: Target) -> None:
    """Few bytes that would become very many, and what can't be unpacked at all."""
    bomb = filled(b"{},", 3 * 2**20)
    expect(ask(target, request(target, zstandard.compress(bomb), b"content-encoding: zstd")), 413)
    expect(ask(target, request(target, gzip.compress(filled(b"{},", 2**30 // 8)), b"content-encoding: gzip")), 413)
    twice = gzip.compress(gzip.compress(filled(b"{},", 2**30 // 8)))
    expect(ask(target, request(target, twice, b"content-encoding: gzip, gzip")), 413)
    for encoding in (b"gzip", b"zstd", b"br", b"deflate", b"gzip, gzip, gzip, gzip, gzip", b"lzma"):
        status = ask(target, request(target, b"\x00\xffno such thing" * 99, b"content-encoding: " + encoding))
        assert 400 <= status < 500, (encoding, status)


# Malformed

LINES = (
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\na\x00b: c\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\n broken: fold\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    b"TRACE / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
)


def malformed(target: Target) -> None:
    """What is no request gets no answer that looks like success."""
    for line in LINES:
        with target.connect() as connection:
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            status = status_of(said(connection))
            assert status == 0 or 400 <= status < 500, (line, status)
    for body in (b"", b"null", b"[]", b'"', b"{", b"\xff\xfe", b'{"messages":3}', b'{"model":{},"messages":{}}'):
        expect(ask(target, request(target, body)))


def refused_between_answers(target: Target) -> None:
    """A head that is too large behind another request: what is said about it stands in no other answer."""
    with target.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(request(target, b'{"model":"m","messages":[],"stream":true}'))
            connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2**18)
            connection.shutdown(socket.SHUT_WR)
        answer = said(connection)
        assert answer.rfind(b"HTTP/1.1 431") <= 0 or answer[answer.rfind(b"HTTP/1.1 431") - 1 :][:1] in (b"\n", b"}")


# WebSockets

SOCKETS = "/openai/v1/responses"
IDLE_SOCKETS = 1_000
WRONG_FRAMES = (b"", b"{", b"[]", b"null", b'"', b"\xff", b'{"type":"response.append"}', b"[" * 2**20, b'{"type":[]}')


def upgraded(target: Target) -> socket.socket:
    """A connection that is a WebSocket from now on."""
    connection = target.connect()
    connection.sendall(
        b"GET %b HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer key\r\nconnection: upgrade\r\n"
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: %b\r\n\r\n"
        % (SOCKETS.encode(), b"A" * 22 + b"==")
    )
    heard = b""
    while not heard.endswith(b"\r\n\r\n"):
        heard += connection.recv(1) or b"closed\r\n\r\n"
    assert status_of(heard) == 101, heard
    return connection


def frame(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def is_closed(connection: socket.socket) -> bool:
    """Whether it is, before anybody loses patience; what is still said is left unheard."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def half_frames(target: Target) -> None:
    """A message that begins and does not go on, with fragments that say nothing: closed."""
    whole, begun = frame(b'{"type":"response.create"}'), frame(b"{", fin=False)
    for data in (whole[:1], whole[:3], whole[:-1], begun, begun + frame(b"", Opcode.CONT, fin=False) * 5_000):
        with upgraded(target) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            assert is_closed(connection), data[:20]


def huge_frames(target: Target) -> None:
    """Messages larger than a body may be, told at once or in fragments."""
    piece = frame(b"a" * 2**20, Opcode.CONT, fin=False)
    for data in (b"\x81\xff" + (2**40).to_bytes(8, "big") + bytes(8), frame(b"{", fin=False) + piece * 40):
        with upgraded(target) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            assert is_closed(connection)


def pings(target: Target) -> None:
    """Pings without end, whose answers nobody reads."""
    with upgraded(target) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(frame(b"x" * 125, Opcode.PING) * 100_000)
        assert is_closed(connection)


def wrong_frames(target: Target) -> None:
    """What is no request is answered, each; a connection that brings nothing else is closed."""
    for data in (*WRONG_FRAMES, frame_of_values()):
        with upgraded(target) as connection:
            connection.sendall(frame(data))
            assert b'"type":"error"' in connection.recv(65536), data[:20]
            with contextlib.suppress(OSError):
                connection.sendall(frame(b"{}") * 20)
            assert is_closed(connection), data[:20]


def frame_of_values() -> bytes:
    return b'{"type":"response.create","input":[' + b"{}," * 200_000 + b"0]}"


def many_sockets(target: Target) -> None:
    """A thousand that ask for nothing: others are served, and so is each of them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * IDLE_SOCKETS, most), most))
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(upgraded(target)) for _ in range(IDLE_SOCKETS)]
        for connection in opened[::100]:
            connection.sendall(frame(b'{"type":"response.create","generate":false}'))
            assert b"response.created" in connection.recv(65536)


ATTACKS: tuple[Callable[[Target], None], ...] = (
    slow,
    trickling,
    half,
    huge_heads,
    huge_bodies,
    long_answers_unread,
    deep,
    repeated,
    compressed,
    malformed,
    refused_between_answers,
    half_frames,
    huge_frames,
    pings,
    wrong_frames,
    many_sockets,
)


class Health:
    """Asks for `/healthz` as long as an attack goes on."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers = 0
        self.longest = 0.0
        self.problem = ""

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self.answers or not self._over.is_set():
                began = time.monotonic()
                connection = http.client.HTTPConnection(self._target.host, self._target.port, timeout=HEALTH_SECONDS)
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                answer.read()
                connection.close()
                assert answer.status == 200, answer.status
                self.answers += 1
                self.longest = max(self.longest, time.monotonic() - began)
                self._over.wait(0.02)
        except (OSError, http.client.HTTPException, AssertionError) as problem:
            self.problem = f"/healthz: {type(problem).__name__} {problem}"


class Outcome(NamedTuple):
    name: str
    seconds: float
    longest: float
    problem: str


def attack(target: Target) -> Iterator[Outcome]:
    """One attack after the other, and what became of each."""
    for do in ATTACKS:
        began, problem = time.monotonic(), ""
        with Health(target) as health:
            try:
                do(target)
            except (AssertionError, OSError) as error:
                problem = f"{type(error).__name__}: {error}"
        yield Outcome(do.__name__, time.monotonic() - began, health.longest, problem or health.problem)


def rss_kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def settled(pid: int, most: int, patience: float) -> int:
    """How many descriptors are open, when those of closed connections are gone."""
    over = time.monotonic() + patience
    while descriptors(pid) > most and time.monotonic() < over:
        threading.Event().wait(0.1)
    return descriptors(pid)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("url", help="where the gateway listens")
    parser.add_argument("--path", default="/deepseek/v1/chat/completions", help="an address that is worked on")
    parser.add_argument("--patience", type=float, default=90.0, help="seconds after which all that is slow is closed")
    parser.add_argument("--pid", type=int, help="of a local gateway: its memory and descriptors are looked at")
    given = parser.parse_args()
    place = urlsplit(given.url)
    target = Target(place.hostname or "127.0.0.1", place.port or 80, given.path, given.patience)
    before = (rss_kilobytes(given.pid), descriptors(given.pid)) if given.pid else (0, 0)
    failed = 0
    for outcome in attack(target):
        failed += bool(outcome.problem)
        took = f"{outcome.seconds:7.1f} s  /healthz at most {outcome.longest * 1000:7.1f} ms"
        sys.stdout.write(f"{outcome.name:26}{took}  {outcome.problem}\n")
    if given.pid:
        grown = rss_kilobytes(given.pid) - before[0]
        left = settled(given.pid, before[1] + MAX_LEFT_OPEN, given.patience) - before[1]
        sys.stdout.write(json.dumps({"memory_grown_kb": grown, "descriptors_left": left}) + "\n")
        failed += grown > MAX_GROWN_KB or left > MAX_LEFT_OPEN
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
