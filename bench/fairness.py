"""Others' large requests: how long do small ones and ordinary sessions wait beside them?

    python -m bench.fairness [--seconds 20] [--clients 12] [--megabytes 1.6] [--tenants one|many]

A gateway as `thoughtline serve` runs it, before a provider that answers at once. Two bystanders ask, each with its own
key: one sends 4 kB, the other 300 kB, each time a session of 500 messages that was not seen before. First alone; then
while other clients send conversations of so many megabytes with thousands of calls, one after the other, all with one
key or each request with another one.

`held` is how long the gateway held its loop at most, whatever else the machine does (`bench.held`).

Exit status 1 if a bystander's p99 is more than three times what it is alone and more than 50 ms above that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.abandoned import Gateway, Provider
from bench.held import held_ms

WARM_UP = 5
MAX_TIMES, MAX_MORE = 3.0, 0.05
PATH = "/deepseek/chat/completions"
NUMBERS = count()


def conversation(size: int, pairs: int, mark: str) -> bytes:
    """So many calls with their results, of about so many bytes."""
    filler = "x" * max(8, size // pairs - 250)
    messages: list[object] = [{"role": "user", "content": f"Look at all of it. {mark}"}]
    for number in range(pairs):
        arguments = json.dumps({"path": f"/src/{number}.py", "lines": [1, number]})
        call = {"id": f"call_{mark}_{number}", "type": "function"}
        call_with = {**call, "function": {"name": "read", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call_with]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": filler})
    return json.dumps({"model": "m", "messages": messages}).encode()


def request(key: str, body: bytes) -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """One connection, one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, data: bytes) -> float:
        """The seconds until the whole answer was there."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        began = time.monotonic()
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request was refused: {head[:40]!r}")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        return time.monotonic() - began


def attack(port: int, clients: int, size: int, has_many_tenants: bool) -> None:
    """Large conversations, until the process is killed."""

    async def one(number: int) -> None:
        client = Client(port)
        body = conversation(size, size // 400, f"attack {number}")
        for asked in count():
            await client.ask(request(f"other-{number}-{asked}" if has_many_tenants else "other", body))

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(clients)))

    asyncio.run(all_of_them())


async def waits(port: int, seconds: float, *, is_warm_up: bool) -> dict[str, list[float]]:
    """How long the bystanders waited for each of their answers."""
    small, session = conversation(4_000, 8, "small"), conversation(300_000, 250, "MARK")
    kinds: dict[str, Callable[[], bytes]] = {
        "4 kB": lambda: request("small", small),
        # Another conversation each time: one that is remembered would need no thread.
        "300 kB session": lambda: request("session", session.replace(b"MARK", b"%d" % next(NUMBERS))),
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}

    async def one(name: str, made: Callable[[], bytes]) -> None:
        client = Client(port)
        if is_warm_up:
            for _ in range(WARM_UP):
                await client.ask(made())
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            found[name].append(await client.ask(made()))
            await asyncio.sleep(0.02)

    await asyncio.gather(*(one(name, made) for name, made in kinds.items()))
    return found


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


async def run(options: argparse.Namespace, folder: Path) -> int:
    server = await asyncio.start_server(Provider().serve, "127.0.0.1", 0, limit=2**24)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    held = folder / "held"
    gateway = await asyncio.to_thread(Gateway, folder, url, 4096, held)
    size = int(options.megabytes * 10**6)
    arguments = (gateway.port, options.clients, size, options.tenants == "many")
    attacking = multiprocessing.get_context("spawn").Process(target=attack, args=arguments, daemon=True)
    try:
        alone = await waits(gateway.port, options.seconds, is_warm_up=True)
        held_alone = await asyncio.to_thread(held_ms, gateway.process.pid, held)
        attacking.start()
        await asyncio.sleep(2.0)
        beside = await waits(gateway.port, options.seconds, is_warm_up=False)
        held_beside = await asyncio.to_thread(held_ms, gateway.process.pid, held)
    finally:
        if attacking.is_alive():
            attacking.kill()
        gateway.process.kill()
        gateway.process.wait()
    is_fair = True
    print(f"{'':<18}{'alone p50':>11}{'p99':>9}{'beside p50':>13}{'p99':>9}{'longest':>10}  ms")
    for name in alone:
        one, other = sorted(alone[name]), sorted(beside[name])
        columns = (one[len(one) // 2], p99(one), other[len(other) // 2], p99(other), other[-1])
        print("{:<18}{:>11.1f}{:>9.1f}{:>13.1f}{:>9.1f}{:>10.1f}".format(name, *(value * 1000 for value in columns)))
        is_fair = is_fair and p99(other) <= max(MAX_TIMES * p99(one), p99(one) + MAX_MORE)
    print(f"held, at most: {held_alone:.1f} ms alone, {held_beside:.1f} ms beside")
    print("fair: p99 within three times of an idle gateway's" if is_fair else "NOT FAIR")
    return 0 if is_fair else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--megabytes", type=float, default=1.6)
    parser.add_argument("--tenants", choices=("one", "many"), default="one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="thoughtline-fairness-") as folder:
        return asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
