"""Starts a stream to the client before the provider has answered: headers, then keep-alive signs.

Some providers send no headers until their model has thought; others let a request queue, and clients give up. A stream
that has started has status 200: a later error is sent as an error in mid-stream, in the client's format.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from thoughtline.formats import FORMATS
from thoughtline.gateway.asgi import Message, Send
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.translating import ClientFormat, client_headers
from thoughtline.translation.replies import error_event
from thoughtline.values.events import Failed


class EarlySend:
    """Sends to a client, and starts its answer if nothing was sent for `seconds`.

    `wait` expects an answer for a client of this format; `headers` returns those known when it starts.
    """

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._beating: asyncio.Task[None] | None = None
        self._has_begun = False
        self._client: ClientFormat | None = None
        self._status = 0
        self._error = b""

    def wait(self, client: ClientFormat, headers: Callable[[], Headers]) -> None:
        if self._timer is None:
            self._client = client
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin, client, headers)

    def stop(self) -> None:
        """Stop waiting: the answer has come, or never will."""
        if self._timer is not None:
            self._timer.cancel()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.stop()
            if self._beating is not None:
                await self._beating
            if not self._has_begun:
                await self._send(message)
            elif message["status"] >= 400:
                self._status = message["status"]
        elif not self._status:
            await self._send(message)
        else:
            self._error += message.get("body", b"")
            if not message.get("more_body"):
                await self._send({"type": "http.response.body", "body": self._error_event(), "more_body": False})

    def _begin(self, client: ClientFormat, headers: Callable[[], Headers]) -> None:
        loop = asyncio.get_running_loop()
        if self._beating is None or self._beating.done():  # a client that reads nothing needs no sign
            self._beating = loop.create_task(self._beat(client, headers))
        self._timer = loop.call_later(self._seconds, self._begin, client, headers)

    async def _beat(self, client: ClientFormat, headers: Callable[[], Headers]) -> None:
        if not self._has_begun:
            self._has_begun = True
            began = client_headers(headers(), client, is_stream=True)
            await self._send({"type": "http.response.start", "status": 200, "headers": began})
        wire = FORMATS[client.format]
        sign = b"\n" if client.is_array else wire.stream_encoder(wire.dialect).pulse()
        await self._send({"type": "http.response.body", "body": sign, "more_body": True})

    def _error_event(self) -> bytes:
        """Return the error in the form that the client's format uses in mid-stream."""
        assert self._client is not None
        wire = FORMATS[self._client.format]
        event = error_event(wire.errors.read(self._status, self._error), wire.name)
        event_bytes = wire.stream_encoder(wire.dialect).encode(Failed(event))
        return b"[" + event_bytes.strip().removeprefix(b"data: ") + b"]" if self._client.is_array else event_bytes
