"""What an open WebSocket costs: `python -m bench.sockets [--connections 1000] [--kilobytes 100]`.

A gateway in a process of its own, and clients that open a connection each and ask for nothing; then a prewarm with a
conversation of so many kilobytes on each, which the connection holds. Memory is the resident size of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from contextlib import ExitStack

from websockets.sync.client import ClientConnection, connect

from bench.load.usage import resident_bytes
from tests.gateway.driver import started

ROW = "{:<44}{:>10.1f} kB a connection\n"


def opened(url: str, stack: ExitStack) -> ClientConnection:
    head = {"authorization": "Bearer a-key", "openai-beta": "responses_websockets=2026-02-06"}
    return stack.enter_context(connect(url, additional_headers=head, ping_interval=None, compression=None))


def prewarm(connection: ClientConnection, size: int) -> None:
    said = {"type": "message", "role": "user", "content": "x" * size}
    connection.send(json.dumps({"type": "response.create", "model": "m", "generate": False, "input": [said]}))
    while json.loads(connection.recv())["type"] != "response.completed":
        pass


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sockets", description=__doc__)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--kilobytes", type=int, default=100)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * given.connections, most), most))
    with started("memory://", {}) as gateway, ExitStack() as stack:
        url = gateway.url.replace("http", "ws") + "/openai/v1/responses"
        with ExitStack() as first:  # what the first ones load is no part of this
            for _ in range(10):
                prewarm(opened(url, first), 1000)
        before = resident_bytes(gateway.pid)
        connections = [opened(url, stack) for _ in range(given.connections)]
        idle = resident_bytes(gateway.pid)
        sys.stdout.write(ROW.format(f"{given.connections} idle", (idle - before) / given.connections / 1000))
        for connection in connections:
            prewarm(connection, given.kilobytes * 1000)
        held = resident_bytes(gateway.pid)
        sys.stdout.write(ROW.format(f"each holding {given.kilobytes} kB", (held - before) / given.connections / 1000))


if __name__ == "__main__":
    main()
