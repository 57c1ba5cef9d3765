"""The HTTP client of commands that call a gateway or a simulator."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from thoughtline.gateway.connecting import ConnectFailed
from thoughtline.gateway.http_client import HttpClient, UpstreamCut, UpstreamResponse

NO_ANSWER = (ConnectFailed, UpstreamCut, TimeoutError)
"""Raised if there is no answer."""


@contextlib.asynccontextmanager
async def answer_to(
    method: str, url: str, headers: list[tuple[str, str]] | None = None, body: bytes = b""
) -> AsyncIterator[UpstreamResponse]:
    """Send one request. Raises one of `NO_ANSWER`."""
    client = HttpClient()
    try:
        response = await client.send(method, url, headers or [], body)
        try:
            yield response
        finally:
            await response.close()
    finally:
        client.close()


async def read_whole(response: UpstreamResponse) -> bytes:
    """The whole body. Raises `UpstreamCut`."""
    pieces = []
    while (piece := await response.read()) is not None:
        pieces.append(piece)
    return b"".join(pieces)
