"""The floor: the gateway's server and HTTP client, and nothing in between. `python -m bench.load.bare PORT URL`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from thoughtline.gateway.http_client import HttpClient

Message = MutableMapping[str, Any]

_HOP = (b"host", b"connection", b"content-length", b"transfer-encoding")


class Bare:
    """An ASGI application that passes on what it gets."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._client: HttpClient | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        if self._client is None:
            self._client = HttpClient(256)
        body = await _body(receive)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in _HOP]
        response = await self._client.send(scope["method"], self._upstream + scope["path"], headers, body)
        try:
            down = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
            down = [(name, value) for name, value in down if name not in (b"transfer-encoding", b"connection")]
            await send({"type": "http.response.start", "status": response.status, "headers": down})
            while (piece := await response.read()) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.close()


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    message = await receive()
    pieces = [message.get("body", b"")]
    while message.get("more_body", False):
        message = await receive()
        pieces.append(message.get("body", b""))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


if __name__ == "__main__":
    uvicorn.run(
        Bare(sys.argv[2]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        backlog=4096,
    )
