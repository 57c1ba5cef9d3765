"""Running the gateway: a server for the application, one process or several on one port."""

from __future__ import annotations

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.gateway.app import Gateway

GRACE_SECONDS = 30
"""How long streams may go on after a stop was asked for."""

MAX_HEADER_BYTES = 64 * 2**10


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a bound on the head of a request: the parser itself has none."""

    _head_bytes = 0
    _is_in_head = True

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEADER_BYTES + len(data):
                self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n")
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next bytes are a head again. A body that nobody waits for any more is none, however long it is."""
        self._head_bytes, self._is_in_head = 0, True
        super().on_message_complete()

    def shutdown(self) -> None:
        """The server is about to stop; called for each connection."""
        if isinstance(self.config.app, Gateway):
            self.config.app.leave()
        super().shutdown()


def server_config(app: Gateway) -> uvicorn.Config:
    """uvicorn as we use it: no websockets, no headers of its own, nothing in its log but what is broken."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        server_header=False,
        date_header=False,
        access_log=False,
        log_level="critical",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
