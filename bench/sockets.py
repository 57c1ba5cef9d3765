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
from socket import socket

from bench.load.usage import resident_bytes
from tests.gateway.gateway_processes import started
from tests.hostile import Target, frame, upgraded

ROW = "{:<30}{:>8.1f} kB a connection\n"
WARM_UP = 50


def prewarm(connection: socket, size: int) -> None:
    said = {"type": "message", "role": "user", "content": "x" * size}
    asked = {"type": "response.create", "model": "m", "generate": False, "input": [said]}
    connection.sendall(frame(json.dumps(asked).encode()))
    heard = b""
    while b'"response.completed"' not in heard:
        heard += connection.recv(65536)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sockets", description=__doc__)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--kilobytes", type=int, default=100)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * given.connections, most), most))
    with started("memory://", {}) as gateway, ExitStack() as stack:
        host, port = gateway.url.removeprefix("http://").split(":")
        target = Target(host, int(port), "", 30.0)
        for _ in range(WARM_UP):  # what the first ones load is no part of this
            with upgraded(target) as connection:
                prewarm(connection, 1000)
        before = resident_bytes(gateway.pid)
        connections = [stack.enter_context(upgraded(target)) for _ in range(given.connections)]
        idle = resident_bytes(gateway.pid)
        sys.stdout.write(ROW.format(f"{given.connections} idle", (idle - before) / given.connections / 1000))
        for connection in connections:
            prewarm(connection, given.kilobytes * 1000)
        held = resident_bytes(gateway.pid)
        sys.stdout.write(ROW.format(f"each holding {given.kilobytes} kB", (held - before) / given.connections / 1000))


if __name__ == "__main__":
    main()
