"""HTTP/1.1 with clients: uvicorn's protocol, with limits on size, time and number.

head    limited size, and complete within a limited time; so is silence before it
body    at least a few bytes arrive within every `body_timeout`, as long as we are reading
        too large or too late is answered, unless another answer is being sent: then that is the last
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.gateway.access import authority_of
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.asgi import Scope
from thoughtline.gateway.relay import ON_DISCONNECT, report_disconnect
from thoughtline.gateway.routing import Route
from thoughtline.gateway.websocket_protocol import WebSocket
from thoughtline.settings import ServerSettings

LEAST_BODY_BYTES = 4 * 2**10
"""Bytes of a body that must arrive within `body_timeout`, unless it is complete."""

_FRAMING = frozenset({b"content-length", b"transfer-encoding"})

_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_LATE = b"408 Request Timeout"
_TOO_MANY = b"503 Service Unavailable"


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    _unread_bytes = 0
    _body_bytes = 0
    _is_in_head = False
    _is_in_body = False
    _is_too_large = False
    _is_deaf = False
    _is_head_known = False
    _offers_upgrade = False
    _is_admitted = False
    _waits_for_body = False
    _timer: asyncio.TimerHandle | None = None
    _websocket: Route | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # the same as uvicorn
        # asyncio disables Nagle's algorithm only for sockets that were made with IPPROTO_TCP, which those of
        # `socket.create_server` are not: every second piece would wait 40 ms for the client's acknowledgement.
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        app: Any = self.app
        while not isinstance(app, Gateway):
            app = app.app  # uvicorn's own middleware
        self._gateway, self._address = app, self.client[0] if self.client else ""
        server = app.state.settings.server
        if not app.connections.admit(self._address, server, connected.fileno()):
            self._is_deaf = True
            self._answer(_TOO_MANY)
            return
        self._is_admitted = True
        self._timer = self.loop.call_later(server.head_timeout_seconds, self._late_head)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._stop_waiting()
        if self._is_admitted:
            self._is_admitted = False
            self._gateway.connections.leave(self._address)
        if self.cycle is not None and not self.cycle.response_complete:
            report_disconnect(cast("Scope", self.cycle.scope))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if self._is_in_body:
            self._body_bytes += len(data)
        self._unset_keepalive_if_required()
        rest = data
        while rest:
            try:
                self.parser.feed_data(rest)
                break
            except HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                break
            except HttpParserUpgrade as upgrade:
                if self._websocket is not None:
                    self.handle_websocket_upgrade()
                    break
                rest = rest[upgrade.args[0] :]
                self._go_on_without_upgrade()
        # Timers are set only for what is incomplete.
        if self._is_in_head:
            self._unread_bytes += len(data)
            if self._unread_bytes > self._server.max_header_bytes:
                self._refuse(_TOO_LARGE)
            elif self._timer is None:
                self._wait(self._server.head_timeout_seconds, self._late_head)
        elif self._is_in_body and not self._waits_for_body:
            self._wait(self._server.body_timeout_seconds, self._late_body)

    def _go_on_without_upgrade(self) -> None:
        """Continue over HTTP if the client offers another protocol (`upgrade: h2c` in every first request of Java's
        client): RFC 9110, 7.8. The parser takes the body for the other protocol, so one that knows only the body's
        length continues."""
        framing = [name + b": " + value for name, value in self.headers if name in _FRAMING]
        self.parser, self.headers = HttpRequestParser(self), []
        self._offers_upgrade, self._is_head_known = False, True
        self.parser.feed_data(b"\r\n".join((b"POST / HTTP/1.1", *framing, b"", b"")))
        self._is_head_known = False

    def on_message_begin(self) -> None:
        if self._is_head_known:
            return
        self._is_in_head, self._unread_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._is_head_known:
            return
        self._is_in_head = False
        head_bytes = len(self.url)
        for name, value in self.headers:
            head_bytes += len(name) + len(value) + 4
        if head_bytes > self._gateway.state.settings.server.max_header_bytes:
            self._is_too_large = True
            raise ValueError("the head of a request is too large")  # this stops the parser
        if not self.url.startswith((b"/", b"*")):
            # Our own key: ASGI has none for the authority of an absolute address.
            self.scope["authority"] = authority_of(self.url)  # type: ignore[typeddict-unknown-key]
        cast("Scope", self.scope)[ON_DISCONNECT] = None  # a new request
        self._is_in_body, self._body_bytes = True, 0
        self._websocket, self._offers_upgrade = None, self.parser.should_upgrade()
        if self._offers_upgrade:
            self._websocket = self._websocket_route()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self._offers_upgrade and self._websocket is None:
            return  # its body follows
        self._is_in_body = self._waits_for_body = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_message_complete()

    def _websocket_route(self) -> Route | None:
        """Return the route of a WebSocket that can be opened now; any other upgrade is answered over HTTP."""
        is_get = self.parser.get_method() == b"GET" and self.parser.get_http_version() == "1.1"
        if not is_get or self._is_answering or self._get_upgrade() != b"websocket":
            return None
        return self._gateway.websocket_route(self.url.partition(b"?")[0])

    def _should_upgrade(self) -> bool:
        """uvicorn calls it for each part of a request that would upgrade."""
        return self._websocket is not None

    def handle_websocket_upgrade(self) -> None:
        """Continue as a WebSocket; the connection is still counted."""
        assert self._websocket is not None
        self._stop_waiting()
        self.connections.discard(self)
        path, _, query = self.url.partition(b"?")
        scope: Scope = {**self.scope, "path": unquote(path.decode("latin-1")), "raw_path": path, "query_string": query}
        gateway = self._gateway
        socket = WebSocket(scope, self._server, self.server_state)
        socket.on_shutdown, socket.on_lost = gateway.leave, partial(gateway.connections.leave, self._address)
        socket.open(self.transport, partial(gateway.serve_websocket, self._websocket))

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls it when the parser stops."""
        if self._is_too_large:
            self._refuse(_TOO_LARGE)
        elif self._is_answering and (self.pipeline or self.cycle.response_started or not self._is_in_body):
            self._be_deaf()
        else:
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """The server calls it for each connection before it stops."""
        self._gateway.leave()
        super().shutdown()

    @property
    def _server(self) -> ServerSettings:
        return self._gateway.state.settings.server

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: bytes) -> None:
        """Refuse a request. Nothing is sent in the middle of another answer: that one is the last."""
        self._stop_waiting()
        if self._is_answering:
            self._be_deaf()
        else:
            self._answer(status)

    def _be_deaf(self) -> None:
        self._is_deaf = True
        self.cycle.keep_alive = False

    def _answer(self, status: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
        self.transport.close()

    def _late_head(self) -> None:
        """The head is late. A client that has sent nothing gets no answer."""
        self._timer = None
        if self._is_in_head:
            self._refuse(_TOO_LATE)
        elif not self._is_answering:
            self.transport.close()

    def _late_body(self) -> None:
        """A body interval has ended: continue if some of the body came, or if it was us who did not read."""
        self._timer = None
        if self._body_bytes >= LEAST_BODY_BYTES or self.flow.read_paused:
            self._body_bytes = 0
            self._wait(self._server.body_timeout_seconds, self._late_body)
        elif self.pipeline or self.cycle.response_started:
            self.transport.close()
        else:
            self._answer(_TOO_LATE)

    def _wait(self, seconds: float, late: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, late)
        self._waits_for_body = self._is_in_body

    def _stop_waiting(self) -> None:
        self._waits_for_body = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
