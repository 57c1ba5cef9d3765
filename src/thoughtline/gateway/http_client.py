"""The HTTP client: HTTP/1.1 on the event loop, with keep-alive connections and requests that can be cancelled.

    HttpClient.send → Origin.idle or a new Connection → request → UpstreamResponse, whose body is read piece by piece

A caller that stops waiting closes the connection. llhttp parses strictly (`httptools`). A connection is reused only if
its response has ended and no bytes came after it; bytes without a request close it. Redirects are not followed, bodies
not decompressed, and no header is added except `host` and `content-length`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from urllib.parse import quote, urlsplit

from httptools import HttpParserError, HttpResponseParser

from thoughtline.destinations.catalogue import Timeouts
from thoughtline.gateway.connecting import Endpoint, basic_login, connected, proxy_for

MAX_HEAD_BYTES = 256 * 2**10
"""Limit for a response's head, including interim responses (1xx), and for bytes between two pieces of its body or after
it."""

MAX_UNREAD_BYTES = 256 * 2**10
"""Unread bytes of a body before reading from the connection pauses."""

MAX_PIECES = 32
"""Unread pieces of a body; further ones are joined to the last. Otherwise a server that sends chunks of one byte would
make 40,000 pieces of one read, and block all other requests for seconds."""

IDLE_SECONDS = 90.0
STALE_SECONDS, MAX_STALE = 1.0, 3
"""The other side may close an idle connection just when it is reused: then the request is sent on another one. But not
after a second, nor after the first byte: a server that disconnects then may have begun to process it."""

_JOINED_BYTES = 64 * 2**10
"""A body up to this size is written together with its head."""

_MAX_ORIGINS = 256
_USUAL = Timeouts()
_URL = re.compile(r"(https?://[^/?#]+)([/?][!-\"$-~]*)?(?:#.*)?")
"""An address and a request target, in ASCII."""

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_HAS_BODY = frozenset({"POST", "PUT", "PATCH"})
"""RFC 9110, 8.6: without a body, these send a length of 0."""


class UpstreamCut(Exception):
    """The connection broke, or stalled for too long, before the end of a response."""


class UpstreamResponse:
    """A response whose body is read piece by piece, unchanged."""

    __slots__ = (
        "_connection",
        "_is_cut",
        "_peeked",
        "_pieces",
        "_unread_bytes",
        "encoding",
        "ends_with_connection",
        "headers",
        "kind",
        "status",
        "tells_length",
    )

    def __init__(self, connection: Connection, status: int, headers: list[tuple[str, str]]) -> None:
        self._connection: Connection | None = connection
        self._pieces: list[bytes] = []
        self._peeked = self._unread_bytes = 0
        self._is_cut = False
        self.status = status
        self.headers = headers
        first = dict(reversed(headers))
        self.kind = first.get("content-type", "").partition(";")[0].strip().lower()
        """Its content type, without parameters."""
        self.tells_length = "content-length" in first
        """Whether its length is known in advance."""
        self.ends_with_connection = not self.tells_length and "transfer-encoding" not in first
        encoding = first.get("content-encoding", "").lower()
        self.encoding = "" if encoding == "identity" else encoding
        """The encoding of its body; empty if none."""

    def header(self, name: str) -> str:
        """Return the first header of this name, which is in lower case."""
        return next((value for one, value in self.headers if one == name), "")

    async def read(self) -> bytes | None:
        """Return the next piece, or None after the last. Raises `UpstreamCut`."""
        while not self._pieces:
            if self._is_cut:
                raise UpstreamCut
            if self._connection is None:
                return None
            await self._connection.more()
        piece = self._pieces.pop(0)
        self._unread_bytes -= len(piece)
        if self._peeked:
            self._peeked -= 1
        return piece

    async def read_all(self, limit: int) -> tuple[bytes, bool]:
        """Return the rest of the body, and whether it is complete: not if it breaks off, or is longer than `limit`."""
        pieces: list[bytes] = []
        size = 0
        try:
            while size <= limit:
                piece = await self.read()
                if piece is None:
                    return b"".join(pieces), True
                pieces.append(piece)
                size += len(piece)
        except UpstreamCut:
            pass
        return b"".join(pieces), False

    async def peek(self) -> bytes | None:
        """Return one more piece without consuming it: it will be read again, as will the end or a cut."""
        while len(self._pieces) <= self._peeked:
            if self._is_cut:
                raise UpstreamCut
            if self._connection is None:
                return None
            await self._connection.more()
        self._peeked += 1
        return self._pieces[self._peeked - 1]

    async def close(self) -> None:
        """Release the connection, which is closed unless the body has ended. Calling it twice is allowed."""
        if self._connection is not None:
            self._connection.abort()


class Connection(asyncio.Protocol):
    """A connection to an origin, with one request at a time. The parser calls the methods named `on_…`.

    `_waiter` waits for the head while there is no `_response`, and then for more of it.
    """

    __slots__ = (
        "_body_bytes",
        "_headers",
        "_is_ended",
        "_is_paused",
        "_is_reusable",
        "_is_watched",
        "_method",
        "_origin",
        "_other_bytes",
        "_parser",
        "_response",
        "_timeouts",
        "_timer",
        "_total_due",
        "_transport",
        "_waiter",
        "_waits_since",
        "is_heard",
        "is_kept",
    )
    _transport: asyncio.Transport

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._response: UpstreamResponse | None = None
        self._waiter: asyncio.Future[UpstreamResponse] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False
        self.is_kept = False
        """Whether it has served a request before."""

    # --- called by its user

    async def ask(self, method: str, head: bytes, body: bytes, timeouts: Timeouts) -> UpstreamResponse:
        """Send a request, and return when the head of its response has arrived. Raises `UpstreamCut`,
        `TimeoutError`."""
        loop, transport = self._origin.loop, self._transport
        self._method, self._timeouts, self._total_due = method, timeouts, loop.time() + timeouts.total
        self._headers: list[tuple[str, str]] = []
        self._other_bytes = 0
        self.is_heard = self._is_ended = self._is_reusable = self._is_watched = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(min(timeouts.first_byte, timeouts.total), self._late)
        waiter: asyncio.Future[UpstreamResponse] = loop.create_future()
        self._waiter = waiter
        if len(body) > _JOINED_BYTES:
            transport.write(head)
            transport.write(body)
        else:
            transport.write(head + body)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self.abort()
            else:  # the response has just arrived
                await waiter.result().close()
            raise

    async def more(self) -> None:
        """Wait for more of the response, or its end."""
        if self._is_paused:
            self._resume()
        loop = self._origin.loop
        self._waits_since = loop.time()
        waiter = self._waiter = loop.create_future()
        try:
            await waiter
        finally:
            if self._waiter is waiter:
                self._waiter = None

    def abort(self) -> None:
        """Close it at once, even during a response."""
        self._break(UpstreamCut())

    # --- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # one that reads and writes

    def data_received(self, data: bytes) -> None:
        parser, waiter = self._parser, self._waiter
        is_asked = self._response is not None or (waiter is not None and not waiter.cancelled())
        if parser is None or not is_asked:
            self.abort()
            return
        self.is_heard, self._body_bytes = True, 0
        try:
            parser.feed_data(data)
        except HttpParserError:
            self._is_reusable = False
            if not self._is_ended:
                self.abort()
                return
        response, others = self._response, len(data) - self._body_bytes
        if response is not None and len(response._pieces) > (kept := max(MAX_PIECES, response._peeked)):
            response._pieces[kept:] = [b"".join(response._pieces[kept:])]
        self._other_bytes = others if self._body_bytes else self._other_bytes + others
        if self._is_ended:
            self._finish()
        elif self._other_bytes > MAX_HEAD_BYTES:
            self.abort()
        elif response is not None:
            self._wake(response)
            if not self._is_watched:
                self._is_watched = True
                self._check_time()

    def eof_received(self) -> None:
        """The other side has ended, which ends a body without a length. Over TLS, uvloop reports this only after a TLS
        close; asyncio, which Windows uses, after any end."""
        if self._response is not None and self._response.ends_with_connection:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort()
        self._parser = None  # it refers to the connection

    # --- called by the parser

    def on_message_begin(self) -> None:
        if self._is_ended:
            raise ValueError("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is None:  # otherwise it is a trailer
            self._headers.append((_name(name), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status, headers, self._headers = self._parser.get_status_code(), self._headers, []
        if not 100 <= status <= 599:
            raise ValueError("a status that HTTP does not have")
        if status >= 200:
            for name, value in headers:
                if name == "transfer-encoding" and value.lower() != "chunked":
                    raise ValueError("a coding that was not asked for")
            self._response = UpstreamResponse(self, status, headers)
            self._is_ended = self._method == "HEAD"  # the parser does not know the method
        elif status == 101:
            raise ValueError("an upgrade without a request for it")

    def on_body(self, piece: bytes) -> None:
        response, size = self._response, len(piece)
        self._body_bytes += size
        if response is None or self._is_ended:
            return
        response._pieces.append(piece)
        response._unread_bytes += size
        if response._unread_bytes > MAX_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._response is not None and self._parser is not None and not self._is_ended:
            self._is_ended, self._is_reusable = True, self._parser.should_keep_alive()

    # --- the end of a response

    def _wake(self, response: UpstreamResponse) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    def _finish(self) -> None:
        """End a complete response. The connection can be reused if it is clear what would come next."""
        response, self._response = self._response, None
        assert response is not None
        response._connection = None
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(response)
        if self._is_paused:
            self._resume()
        if not self._is_reusable or self._transport.get_write_buffer_size():
            self.abort()
            return
        self.is_kept = True
        self._set_timer(IDLE_SECONDS, self.abort)
        self._origin.idle.append(self)
        all_idle = self._origin.all_idle
        all_idle[self] = None
        while len(all_idle) > self._origin.most_idle:
            next(iter(all_idle)).abort()

    def _break(self, error: Exception) -> None:
        """Close it. Calling it twice is allowed."""
        response, self._response = self._response, None
        if response is not None:
            response._connection, response._is_cut = None, True
            self._wake(response)
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._waiter = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._origin.forget(self)
        self._transport.abort()

    def _resume(self) -> None:
        self._is_paused = False
        self._transport.resume_reading()

    # --- timeouts

    def _set_timer(self, seconds: float, late: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._origin.loop.call_later(seconds, late)

    def _late(self) -> None:
        self._break(TimeoutError())

    def _check_time(self) -> None:
        """Check timeouts during a body: no wait may be longer than `read`, nor the whole longer than `total`. One timer
        that runs for as long as a wait may take costs less than one per wait."""
        now = self._origin.loop.time()
        if now >= self._total_due or (self._waiter is not None and now >= self._waits_since + self._timeouts.read):
            self.abort()
            return
        since = now if self._waiter is None else self._waits_since
        self._set_timer(min(since + self._timeouts.read, self._total_due) - now, self._check_time)


class Origin:
    """A server, by its address in requests, and its idle connections."""

    def __init__(self, url: str, most_idle: int, all_idle: dict[Connection, None]) -> None:
        parts = urlsplit(url)
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        host = parts.hostname or ""
        name = f"[{host}]" if ":" in host else host
        self.loop = asyncio.get_running_loop()
        self.host = name if port == (443 if is_tls else 80) else f"{name}:{port}"
        self.place = Endpoint(host, port, is_tls, proxy_for(url))
        self.prefix, self.login = "", ""
        if self.place.takes_whole_addresses:
            self.prefix, self.login = f"{parts.scheme}://{self.host}", basic_login(self.place.proxy)
        self.idle: list[Connection] = []
        self.most_idle, self.all_idle = most_idle, all_idle

    def forget(self, connection: Connection) -> None:
        if connection in self.idle:
            self.idle.remove(connection)
            del self.all_idle[connection]


class HttpClient:
    """Connections by origin. At most `most_idle` are kept in total, since each takes a descriptor; then the oldest is
    closed."""

    def __init__(self, most_idle: int = 8) -> None:
        self._most_idle = most_idle
        self._all_idle: dict[Connection, None] = {}
        self._origins: dict[str, Origin] = {}

    async def send(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        timeouts: Timeouts = _USUAL,
    ) -> UpstreamResponse:
        """Send a request, and return when the response has begun.

        Raises `ConnectFailed`, `UpstreamCut` if the connection broke before that, and `TimeoutError`.
        """
        found = _URL.fullmatch(url) or _URL.fullmatch(quote(url, safe=_PRINTABLE))
        if found is None:
            raise ValueError(f"no address of HTTP: {url.partition('?')[0]}")
        address, target = found[1], found[2] or "/"
        origin = self._origins.get(address) or self._origin(address)
        head = _head(method, target if target[0] == "/" else f"/{target}", origin, headers, body)
        began = time.monotonic()
        for number in range(MAX_STALE):
            if origin.idle and number < MAX_STALE - 1:
                connection = origin.idle.pop()
                del origin.all_idle[connection]
            else:
                connection = await connected(origin.place, partial(Connection, origin), timeouts.connect)
            try:
                return await connection.ask(method, head, body, timeouts)
            except UpstreamCut:
                is_stale = connection.is_kept and not connection.is_heard
                if not is_stale or time.monotonic() - began > STALE_SECONDS:
                    raise
        raise UpstreamCut

    def close(self) -> None:
        """Close idle connections; active ones end with their responses."""
        for origin in self._origins.values():
            origin.most_idle = 0
            for connection in list(origin.idle):
                connection.abort()
        self._origins.clear()

    def _origin(self, address: str) -> Origin:
        """Addresses come from settings, but clients name the location in some, so their number is limited."""
        if len(self._origins) >= _MAX_ORIGINS:
            self._origins = {name: origin for name, origin in self._origins.items() if origin.idle}
        origin = self._origins[address] = Origin(address, self._most_idle, self._all_idle)
        return origin


def _head(method: str, target: str, origin: Origin, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"{method} {origin.prefix}{target} HTTP/1.1", f"host: {origin.host}", *map(": ".join, headers)]
    if origin.login:
        lines.append(f"proxy-authorization: {origin.login}")
    if body or method in _HAS_BODY:
        lines.append(f"content-length: {len(body)}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise ValueError("a header of the request has a line break or NUL in it")
    return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")


@lru_cache(1024)
def _name(name: bytes) -> str:
    """Cached: providers use a few dozen names."""
    return name.lower().decode("latin-1")
