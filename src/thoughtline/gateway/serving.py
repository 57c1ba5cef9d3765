"""Running the gateway: a server for the application, in one process or in several on one port and one store."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.gateway.app import Gateway

GRACE_SECONDS = 30
"""How long streams may go on after a stop was asked for."""

KEEP_ALIVE_SECONDS = 75


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a bound on the head of a request: the parser itself has none. Small pieces go out at once."""

    _head_bytes = 0
    _unread_bytes = 0
    _is_in_head = False
    _is_too_large = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        # asyncio switches Nagle's delay off only for sockets that were made with IPPROTO_TCP, which those of
        # `socket.create_server` are not: every second piece would wait 40 ms for the client's acknowledgement.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            self._unread_bytes += len(data)
            if self._unread_bytes > self._most_head_bytes:
                self._refuse_head()

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes, self._unread_bytes = True, 0, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._head_bytes + len(self.url) > self._most_head_bytes:
            self._is_too_large = True
            raise ValueError("the head of a request is too large")  # which stops the parser
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn says when the parser stops."""
        if self._is_too_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    @property
    def _most_head_bytes(self) -> int:
        return self.config.h11_max_incomplete_event_size or 0

    def _refuse_head(self) -> None:
        self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()


def server_config(app: Gateway | Callable[[], Gateway], max_header_bytes: int = 64 * 2**10) -> uvicorn.Config:
    """uvicorn as we use it: no websockets, no headers of its own, nothing in its log but what is broken."""
    return uvicorn.Config(
        app,
        factory=not isinstance(app, Gateway),
        http=BoundedProtocol,
        h11_max_incomplete_event_size=max_header_bytes,
        ws="none",
        lifespan="on",
        server_header=False,
        date_header=False,
        access_log=False,
        log_level="critical",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
