"""The way up: one pooled client for each provider, and a response as it comes.

The one module that knows the HTTP client; `upstream_socket.py` is the way over WebSocket. Redirects are not followed:
addresses come from settings alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from datetime import timedelta
from itertools import chain
from weakref import ref

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.http import HeaderMap
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response

from thoughtline.catalogue import Provider, Timeouts
from thoughtline.gateway.access import Neighbours
from thoughtline.gateway.signing import Signers
from thoughtline.values.errors import Declined

_IDLE_SECONDS = 90.0
_STALE_SECONDS, _MOST_STALE = 1.0, 3
"""A kept connection may be closed by the other side just as it is used again: then the request is sent on another one.
Not after a second: who broke off that late may have begun to work on it."""

_READ_AHEAD_BYTES = 0
"""pyreqwest 0.15 reads this much of a body before it gives the response out at all: a stream would wait for it."""


_MOST_STREAMS = 100
"""A connection in HTTP/2 takes as many requests at once as the server says, and lets the next ones wait for these to
end. Servers are asked to take no fewer than so many (RFC 9113, 6.5.2); what is more goes over another connection."""

_STREAM_WINDOW, _CONNECTION_WINDOW = 512 * 2**10, 2**31 - 1
"""What may arrive ahead of whoever reads it, in HTTP/2. One bound for each answer, and none for all of them together:
the answer of a client that reads slowly, or not at all, would use it up, and hold up everybody else's."""


MOST_LEFT_ALONE = 64
"""Of one caller. People who press Escape leave a few in the minutes that an answer may take to begin."""


class UpstreamCut(Exception):
    """The connection broke, or stood still for too long, in the middle of a response."""


class _Pool:
    """A client, which has one connection to a server that speaks HTTP/2; and who is on it: requests that `wait` for
    their responses, and those. One that nobody closed is on it no more, either, when it is gone."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.waiting = 0
        self.responses: set[ref[UpstreamResponse]] = set()


class UpstreamResponse:
    """A response whose body is read piece by piece."""

    def __init__(self, pool: _Pool, request: StreamRequest, response: Response) -> None:
        self._is_closed = False
        self._pool = pool
        self._place = ref(self, pool.responses.discard)
        pool.responses.add(self._place)
        self._request = request
        self._reader = response.body_reader
        self._ahead: list[bytes] = []
        self._is_over = False
        self._is_cut = False
        self.status = response.status
        try:
            self.headers = list(response.headers.items())
        except ValueError:
            self.headers = _ascii_only(response.headers)
        first = dict(reversed(self.headers))
        self.kind = first.get("content-type", "").partition(";")[0].strip().lower()
        """What it says of its body, without parameters."""
        length = "" if "transfer-encoding" in first else first.get("content-length", "")
        has_length = length.isascii() and length.isdigit() and response.version == "HTTP/1.1"
        self._left = int(length) if has_length else None
        self.tells_length = has_length
        """Then all of it is there, or about to be."""
        encoding = first.get("content-encoding", "").lower()
        self.encoding = "" if encoding == "identity" else encoding
        """How its body is packed; empty if it is not."""

    def header(self, name: str) -> str:
        """The first of this name. The client gives names in lower case."""
        return next((value for one, value in self.headers if one == name), "")

    async def read(self) -> bytes | None:
        """The next piece as it came, or None after the last."""
        if self._ahead:
            return self._ahead.pop(0)
        if self._is_cut:
            raise UpstreamCut
        if self._is_over:
            return None
        try:
            piece = await self._reader.read_chunk()
        except PyreqwestError:
            raise UpstreamCut from None
        if piece is None:
            self._is_over = True
            return None
        data = piece.to_bytes()
        if self._left is not None:  # then the end is known without another turn through the client's own thread
            self._left -= len(data)
            self._is_over = self._left == 0
        return data

    async def read_all(self, limit: int) -> tuple[bytes, bool]:
        """What is left of it, and whether that is all: not if it breaks off, or is longer than `limit`."""
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
        """One piece more, ahead of whoever reads: it is read again, and so is the end, or that it broke off."""
        ahead, self._ahead = self._ahead, []
        try:
            data = await self.read()
        except UpstreamCut:
            self._is_cut = True
            raise
        finally:
            self._ahead = ahead
        if data is not None:
            ahead.append(data)
        return data

    async def close(self) -> None:
        """Let go of the connection: back into the pool if the body was read to its end. Doing it twice is fine."""
        if not self._is_closed:
            self._is_closed = True
            self._pool.responses.discard(self._place)
            await self._request.__aexit__(None, None, None)


class LeftAlone:
    """Requests whose askers have left before the answer began, by caller.

    pyreqwest 0.15 can't break a request off that has no response yet: neither cancelling, nor closing its client. Its
    connection is open until `first_byte` or `read` is over. So a caller may leave so many of them and no more.
    """

    def __init__(self) -> None:
        self.until: dict[str, deque[float]] = {}

    def check(self, caller: str, now: float) -> None:
        left = self.until.get(caller)
        while left and left[0] <= now:
            left.popleft()
        if left is not None and not left:
            del self.until[caller]
        if left and len(left) >= MOST_LEFT_ALONE:
            raise Declined(
                429,
                "too_many_abandoned",
                f"{MOST_LEFT_ALONE} abandoned requests of this caller are still under way.",
                "Wait for some of them to end.",
                max(1.0, left[0] - now),
            )

    def add(self, caller: str, until: float) -> None:
        self.until.setdefault(caller, deque()).append(until)


class Upstreams:
    """Pools by timeouts: providers that agree in them share one, and have several when much is under way."""

    def __init__(self) -> None:
        self._pools: defaultdict[Timeouts, list[_Pool]] = defaultdict(list)
        self.neighbours = Neighbours()
        self.signers = Signers()
        self._left_alone = LeftAlone()

    async def send(
        self,
        provider: Provider,
        method: str,
        url: str,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        caller: str = "",
    ) -> UpstreamResponse:
        """Ask, and return when the provider has begun to answer. Raises `Declined` if it doesn't."""
        timeouts, began = provider.timeouts, time.monotonic()
        if self._left_alone.until:
            self._left_alone.check(caller, began)
        # The HTTP client's own timer runs for the longer one of the two, see `_built`.
        needs_timer = timeouts.first_byte < timeouts.read
        for _ in range(_MOST_STALE):
            pool = self._pool(timeouts, url)
            builder = pool.client.request(method, url).headers(headers)
            builder = builder.body_bytes(body) if body else builder
            request = builder.streamed_read_buffer_limit(_READ_AHEAD_BYTES).build_streamed()
            pool.waiting += 1
            try:
                begun = _begun_in_time(request, timeouts) if needs_timer else request.__aenter__()
                return UpstreamResponse(pool, request, await begun)
            except (PyreqwestError, TimeoutError) as error:
                if _is_unconnected(error):
                    raise _unreachable(provider) from None
                if isinstance(error, TimeoutError):
                    raise late(provider) from None
            except asyncio.CancelledError:
                self._left_alone.add(caller, began + min(max(timeouts.read, timeouts.first_byte), timeouts.total))
                raise
            finally:
                pool.waiting -= 1
            if time.monotonic() - began > _STALE_SECONDS:
                break
        raise broken_off(provider)

    async def close(self) -> None:
        for pool in chain.from_iterable(self._pools.values()):
            await pool.client.close()
        self._pools.clear()

    def _pool(self, timeouts: Timeouts, url: str) -> _Pool:
        """The first with room, so that few connections serve all there is. HTTP/2 is spoken only where there is TLS."""
        pools = self._pools[timeouts]
        for pool in pools:
            if pool.waiting + len(pool.responses) < _MOST_STREAMS:
                return pool
        if pools and not url.startswith("https:"):
            return pools[0]
        pools.append(_Pool(_built(timeouts)))
        return pools[-1]


async def _begun_in_time(request: StreamRequest, timeouts: Timeouts) -> Response:
    async with asyncio.timeout(timeouts.first_byte):
        return await request.__aenter__()


def _ascii_only(headers: HeaderMap) -> list[tuple[str, str]]:
    """All headers whose values are ASCII: pyreqwest 0.15 gives out no others, and raises on them."""
    return [(name, value) for name in dict.fromkeys(headers.keys()) for value in _values(headers, name)]


def _values(headers: HeaderMap, name: str) -> list[str]:
    try:
        return headers.getall(name)
    except ValueError:
        return []


def _built(timeouts: Timeouts) -> Client:
    """HTTP/2 where the provider offers it. Bodies stay as they came: decoding them is the watch's business."""
    return (
        ClientBuilder()
        .follow_redirects(False)
        .referer(False)
        .http2(True)
        .http2_initial_stream_window_size(_STREAM_WINDOW)
        .http2_initial_connection_window_size(_CONNECTION_WINDOW)
        .gzip(False)
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .http1_lower_case_headers()
        .connect_timeout(timedelta(seconds=timeouts.connect))
        .read_timeout(timedelta(seconds=max(timeouts.read, timeouts.first_byte)))
        .timeout(timedelta(seconds=timeouts.total))
        .pool_idle_timeout(timedelta(seconds=_IDLE_SECONDS))
        .tcp_keepalive(timedelta(seconds=60))
        .build()
    )


def _is_unconnected(error: Exception) -> bool:
    """Whether no connection was made, rather than one that broke or stayed silent. The class of the error doesn't tell:
    pyreqwest 0.15 calls whatever runs out before the status line a `ConnectTimeoutError`."""
    return "client error (Connect)" in str(getattr(error, "details", ""))


def late(provider: Provider) -> Declined:
    return Declined(
        504,
        "upstream_timeout",
        f"{provider.name} did not answer in time.",
        f"Set a longer [providers.{provider.name}] timeout, or use a faster model.",
    )


def broken_off(provider: Provider) -> Declined:
    return Declined(502, "upstream_failed", f"{provider.name} closed the connection before it answered.")


def _unreachable(provider: Provider) -> Declined:
    return Declined(
        502,
        "upstream_unreachable",
        f"{provider.name} can't be reached.",
        f"Is [providers.{provider.name}] base_url correct, and is it up? `thoughtline doctor` checks it.",
    )
