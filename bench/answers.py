"""A provider that answers in bad faith: how long does it hold up the gateway? `python -m bench.answers`.

Chunks of one byte, heads of 40,000 lines, lines without an end, packed bombs: each answer once, through a gateway in a
process of its own. What is told is how long the gateway held its loop at most (`bench.held`), and how much memory it
had then. Exit status 1 if it held it for longer than `MAX_HELD_MS`.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench.held import held_ms
from bench.load.usage import resident_bytes

MAX_HELD_MS = 100.0
EVENT = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def ones(data: bytes) -> bytes:
    """In chunks of one byte."""
    return b"".join(chunk(data[at : at + 1]) for at in range(len(data)))


ANSWERS: dict[str, tuple[bytes, bytes, int, bytes]] = {
    "an answer": (STREAM + CHUNKED, chunk(EVENT), 1, END),
    "events in chunks of a byte": (STREAM + CHUNKED, ones(EVENT), 6000, END),
    "line ends in chunks of a byte": (STREAM + CHUNKED, chunk(b"\n") * 1000, 400, END),
    "an error in chunks of a byte": (STREAM.replace(b"200 OK", b"400 Bad") + CHUNKED, chunk(b"a") * 1000, 400, END),
    "an event a chunk": (STREAM + CHUNKED, chunk(EVENT) * 100, 600, END),
    "empty events": (STREAM + CHUNKED, chunk(b"data:\n\n" * 1000), 600, END),
    "a line of 60 MB": (STREAM + CHUNKED + chunk(b"data: "), chunk(b"a" * 2**16), 960, END),
    "a head of 40,000 lines": (STREAM, b"a:b\r\n", 40_000, CHUNKED + chunk(EVENT) + END),
    "a trailer of 40,000 lines": (STREAM + CHUNKED + b"0\r\n", b"a:b\r\n", 40_000, b"\r\n"),
    "interim answers without an end": (b"", b"HTTP/1.1 103 Hm\r\n\r\n" * 100, 1000, b""),
    "a packed bomb": (STREAM + b"content-encoding: gzip\r\n" + CHUNKED, chunk(gzip.compress(EVENT * 200_000)), 1, END),
}
"""What comes first, what comes again and again, how often, and what comes last."""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As the request's header says, once."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, again, count, last = list(ANSWERS.values())[int(re.findall(rb"x-answer: (\d+)", head)[0])]
        writer.write(first)
        for _ in range(count):
            writer.write(again)
            await writer.drain()
        writer.write(last)
        await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def provider() -> int:
    """The port of one that answers so."""
    loop, ports = asyncio.new_event_loop(), list[int]()
    has_begun = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        has_begun.set()
        await server.serve_forever()

    threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True).start()
    has_begun.wait()
    return ports[0]


def attack(port: int) -> Iterator[tuple[str, int, int]]:
    """Ask for each answer: its name, status and size."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    for number, name in enumerate(ANSWERS):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"x-answer": str(number), "content-type": "application/json", "authorization": "Bearer key"}
        connection.request("POST", "/deepseek/v1/chat/completions", body, headers)
        status, size = 0, 0
        try:
            response = connection.getresponse()
            status, size = response.status, len(response.read())
        except http.client.HTTPException:
            pass  # cut, or more lines of a head than this client takes
        connection.close()
        yield name, status, size


def main() -> int:
    most = 0.0
    with tempfile.TemporaryDirectory(prefix="thoughtline-answers-") as name:
        folder = Path(name)
        settings, held = folder / "thoughtline.toml", folder / "held"
        settings.write_text(f'[providers.deepseek]\nbase_url = "http://127.0.0.1:{provider()}"\n')
        command = [sys.executable, "-m", "bench.held", str(held), "serve", "--port", "0", "--config", str(settings)]
        environment = {**os.environ, "HOME": name, "XDG_DATA_HOME": str(folder / "data")}
        with subprocess.Popen(
            [*command, "--store", "memory://", "--log", "json"], stderr=subprocess.PIPE, env=environment, text=True
        ) as gateway:
            assert gateway.stderr is not None
            try:
                port = next(
                    int(found[1]) for line in gateway.stderr if (found := re.search(r"listening.*:(\d+)", line))
                )
                threading.Thread(target=gateway.stderr.read, daemon=True).start()
                time.sleep(1.0)  # it has begun, and is quiet
                held_ms(gateway.pid, held)
                print(f"{'answer':<34}{'status':>7}{'bytes':>13}{'held ms':>9}{'MiB':>6}")
                for what, status, size in attack(port):
                    this = held_ms(gateway.pid, held)
                    most = max(most, this)
                    mebibytes = resident_bytes(gateway.pid) / 2**20
                    print(f"{what:<34}{status:>7}{size:>13,}{this:>9.1f}{mebibytes:>6.0f}", flush=True)
            finally:
                gateway.terminate()
    print("held: others are served meanwhile" if most <= MAX_HELD_MS else "NOT HELD")
    return 0 if most <= MAX_HELD_MS else 1


if __name__ == "__main__":
    sys.exit(main())
