"""Requests whose clients leave, at few file descriptors: are others served, do the descriptors come back?

    python -m bench.abandoned [--requests 5000] [--descriptors 1024] [--leave-after 0.3]

A gateway as `thoughtline serve` runs it, with so many descriptors, before a provider that says nothing to three
requests of four, and begins to answer the fourth. Fifty clients at once send requests, each with another made-up key,
and leave after a moment. Beside them, from the same address and from another one, new clients with new keys ask for
something that is answered at once, and `/healthz` is asked. Then the provider breaks off, and all descriptors have to
come back.

Exit status 1 if a bystander was not served, `/healthz` did not answer, a request that was left before its first byte
still has a connection to the provider, the descriptors ran out or did not come back, or the log misses a request.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

AT_ONCE = 50
SPARE = 24
"""Descriptors that may stay open afterwards: connections kept for later requests."""

BYSTANDER_SECONDS = 0.25
PATIENCE_SECONDS = 20.0
BODY = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}'
REPLY = b'{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'
EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
BEGINNING = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + EVENT
HEAD = b"POST /deepseek/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %b\r\n"


class Provider:
    """Answers what asks for an answer; is silent to all others, or begins and goes no further, until `break_off`."""

    def __init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self.silenced = self.begun = self.waiting = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if b"silence" in body:
                    await self._be_silent(reader)
                    return
                if b"begin" in body:
                    self.begun += 1
                    writer.write(BEGINNING)
                    await reader.read(1)
                    return
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n%b" % (len(REPLY), REPLY))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _be_silent(self, reader: asyncio.StreamReader) -> None:
        self.silenced += 1
        self.waiting += 1
        try:
            await reader.read(1)
        finally:
            self.waiting -= 1

    def break_off(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


class Gateway:
    """`thoughtline serve` with few descriptors. `held` is what `bench.held` writes."""

    def __init__(self, folder: Path, provider: str, descriptors: int, held: Path | None = None) -> None:
        program = "thoughtline.cli" if held is None else f"bench.held {held}"
        serve = f"{sys.executable} -m {program} serve --port 0 --provider deepseek --upstream {provider}"
        command = f"ulimit -n {descriptors}; exec {serve} --store memory:// --log json"
        environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(["sh", "-c", command], stderr=log, stdout=log, env=environment)
        self.port = self._listening_port()

    def _listening_port(self) -> int:
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends:
            if found := re.search(rb"http://127\.0\.0\.1:(\d+)", self.log):
                return int(found[1])
            time.sleep(0.05)
        raise SystemExit("the gateway did not start")

    @property
    def log(self) -> bytes:
        return self._log.read_bytes()

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


async def asked(port: int, data: bytes, address: str = "127.0.0.1") -> int:
    """The status of an answer; 0 if there is none."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            writer.write(data)
            line = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return 0
    return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0


def chat(key: str, words: bytes) -> bytes:
    body = BODY % words
    return HEAD % key.encode() + b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body)


async def abandon(port: int, numbers: list[int], seconds: float) -> None:
    """Send requests one after the other, and leave each of them."""
    while numbers:
        number = numbers.pop()
        key, words = f"made-up-{number}", b"silence" if number % 4 else b"begin"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(chat(key, words))
            await asyncio.sleep(seconds)
            writer.transport.abort()
        except OSError:
            await asyncio.sleep(seconds)


class Bystanders:
    """New clients, and what became of them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.statuses: Counter[str] = Counter()
        self.longest: dict[str, float] = {}
        self.most_descriptors = 0

    async def ask(self) -> None:
        """Ask again and again, until cancelled."""
        number = 0
        health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        while True:
            number += 1
            await asyncio.gather(
                self._one("/healthz", health),
                self._one("same address", chat(f"here-{number}", b"hello")),
                self._one("other address", chat(f"there-{number}", b"hello"), "127.0.0.2"),
            )
            self.most_descriptors = max(self.most_descriptors, self._gateway.descriptors)
            await asyncio.sleep(BYSTANDER_SECONDS)

    async def _one(self, name: str, data: bytes, address: str = "127.0.0.1") -> None:
        began = time.monotonic()
        status = await asked(self._gateway.port, data, address)
        self.longest[name] = max(self.longest.get(name, 0.0), time.monotonic() - began)
        self.statuses[f"{name} {status}"] += 1


async def settled(gateway: Gateway, most: int) -> int:
    """How many descriptors are open, when there are few enough or patience is over."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while gateway.descriptors > most and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    return gateway.descriptors


async def run(options: argparse.Namespace, folder: Path) -> int:
    provider = Provider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, backlog=512)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    gateway = await asyncio.to_thread(Gateway, folder, url, options.descriptors)
    try:
        await asked(gateway.port, chat("first", b"hello"))
        before = gateway.descriptors
        bystanders = Bystanders(gateway)
        asking = asyncio.ensure_future(bystanders.ask())
        numbers, began = list(range(options.requests)), time.monotonic()
        await asyncio.gather(*(abandon(gateway.port, numbers, options.leave_after) for _ in range(AT_ONCE)))
        seconds = time.monotonic() - began
        await asyncio.sleep(2 * BYSTANDER_SECONDS)
        asking.cancel()
        held, waiting = gateway.descriptors, provider.waiting
        provider.break_off()
        after = await settled(gateway, before + SPARE)
    finally:
        gateway.process.kill()
        gateway.process.wait()
    lines = [what for what in ("requests abandoned", "requests cancelled") if what.encode() in gateway.log]
    left = gateway.log.count(b'"client_gone"')
    refused = {name: count for name, count in bystanders.statuses.items() if not name.endswith(" 200")}
    print(f"{options.requests} requests in {seconds:.0f} s; the provider was silent to {provider.silenced} of them")
    print(f"and began to answer {provider.begun}; {waiting} of the silent ones still had a connection to it")
    print(f"descriptors: {before} before, {bystanders.most_descriptors} at most, {held} at the end, {after} afterwards")
    for name, longest in bystanders.longest.items():
        print(f"{name:<15}{bystanders.statuses[f'{name} 200']:>6} served, the longest wait {longest:.2f} s")
    print(f"in the log: client_gone {left} times, {', '.join(lines) or 'nothing else'}")
    is_logged = bool(lines) and left >= provider.silenced
    is_held = not refused and after <= before + SPARE and is_logged and not waiting
    print("held: nobody else was refused, and the descriptors came back" if is_held else f"NOT HELD: {refused}")
    return 0 if is_held else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.abandoned")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--descriptors", type=int, default=1024)
    parser.add_argument("--leave-after", type=float, default=0.3, help="seconds after which a client leaves")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="thoughtline-abandoned-") as folder:
        return asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
