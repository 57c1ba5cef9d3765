"""The upstream side: how a response is read, and what happens to its connection."""

from __future__ import annotations

import asyncio

import pytest

from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.upstream import Upstreams

BODY = b"x" * 70_000
LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 70000\r\n\r\n" + BODY
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11170\r\n" + BODY + b"\r\n0\r\n\r\n"


class Provider:
    """Gives the same answer to every request, and counts connections."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while not reader.at_eof():
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            writer.write(self._answer)
        writer.close()


@pytest.mark.parametrize("answer", [LENGTH, CHUNKED], ids=["length told", "in chunks"])
async def test_a_response_is_read_whole_and_its_connection_serves_the_next(answer: bytes) -> None:
    """All bytes arrive, then the end, repeatedly; with or without a declared length, one connection is enough."""
    provider, upstreams = Provider(answer), Upstreams()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for _ in range(5):
        response = await upstreams.send(PROVIDERS["deepseek"], "GET", f"http://127.0.0.1:{port}/", [], b"")
        pieces = []
        while (piece := await response.read()) is not None:
            pieces.append(piece)
        assert b"".join(pieces) == BODY
        assert await response.read() is None
        assert response.tells_length is (answer is LENGTH)
        await response.close()
    assert provider.connections == 1
    await upstreams.close()
    server.close()
