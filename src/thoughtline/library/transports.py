"""Transports for httpx and httpx2, whose classes are the same: built from the library that a client uses.

A transport wraps the client's own, so that its proxies, certificates and timeouts stay. It sees every attempt of an
SDK, sends a healed request again before the caller has seen a byte, and reads the answer on its way.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from thoughtline.destinations.request_url import AskedAddress, read_address
from thoughtline.engine.capture import log_problem
from thoughtline.formats.encodings import unpacked
from thoughtline.library.exchange import AsyncExchange, ExchangeState, SyncExchange
from thoughtline.values.errors import ThoughtlineError

if TYPE_CHECKING:
    from thoughtline.library.door import ReplayLine

LIBRARIES = ("httpx2", "httpx")
Serves: TypeAlias = Callable[[str], bool]
"""Whether requests to a host are remembered."""
MAX_REFUSAL_BYTES = 4 * 2**20
"""Maximum size of an error that is read: some providers repeat the refused input in it. A longer one is passed on
unread."""

_REFUSALS = frozenset({400, 404, 413, 422})
"""Errors about the request itself. Any other error of a second attempt (429, 5xx) is new, and passed on instead."""


def library_of(thing: object) -> ModuleType | None:
    """Return the HTTP library of an object, or of its base classes."""
    names = (base.__module__.partition(".")[0] for base in type(thing).__mro__)
    return next((sys.modules[name] for name in names if name in LIBRARIES), None)


def loaded_library() -> ModuleType:
    """Return the library that was imported; the newer one if both were."""
    found = next((sys.modules[name] for name in LIBRARIES if name in sys.modules), None)
    if found is None:
        raise RuntimeError("neither httpx nor httpx2 is loaded: import the SDK first, or name the library")
    return found


class Transports(NamedTuple):
    """The transports for one HTTP library."""

    sync: type[_SyncTransport]
    asynchronous: type[_AsyncTransport]


@cache
def transports(library: ModuleType) -> Transports:
    """Make them, once per library."""
    sync_stream = type("Stream", (_SyncStream, library.SyncByteStream), {})
    async_stream = type("AsyncStream", (_AsyncStream, library.AsyncByteStream), {})
    sync = {"library": library, "stream": sync_stream}
    asynchronous = {"library": library, "stream": async_stream}
    return Transports(
        type("Transport", (_SyncTransport, library.BaseTransport), sync),
        type("AsyncTransport", (_AsyncTransport, library.AsyncBaseTransport), asynchronous),
    )


def wrap(client: Any, line: ReplayLine, *, serves: Serves | None = None) -> None:
    """Make a client of either library remember. With `serves`, only requests that it allows, and only if nothing else
    wraps the client: `install` does that, and a line given for the client replaces it."""
    library = library_of(client)
    assert library is not None
    check_library(library)
    found = wrapped_by(client)
    if found is not None:
        if serves is not None or (found.line is line and found.serves is None):
            return
        if found.serves is None and not found.line.is_closed:
            raise ValueError(f"this client of {library.__name__} remembers in {found.line}, not in {line}")
        unwrap(client)
    made = transports(library)
    kind = made.asynchronous if isinstance(client, library.AsyncClient) else made.sync
    client._mounts = {at: inner if inner is None else kind(inner, line, serves) for at, inner in client._mounts.items()}
    client._transport = kind(client._transport, line, serves)


def wrapped_by(client: Any) -> RememberingTransport | None:
    """Return the client's wrapper, if it has one."""
    outer = client._transport
    return outer if isinstance(outer, RememberingTransport) else None


def unwrap(client: Any) -> None:
    """Unwrap a client. Active requests continue as they began."""
    client._mounts = {at: _unwrapped(inner) for at, inner in client._mounts.items()}
    client._transport = _unwrapped(client._transport)


def _unwrapped(inner: Any) -> Any:
    return inner.inner if isinstance(inner, RememberingTransport) else inner


@cache
def check_library(library: ModuleType) -> None:
    """Raise if a release keeps its transports elsewhere, rather than wrap nothing."""
    client = library.Client(transport=library.BaseTransport(), trust_env=False)
    if not {"_transport", "_mounts"} <= vars(client).keys():
        version = getattr(library, "__version__", "")
        raise RuntimeError(
            f"{library.__name__} {version} is newer than this version of thoughtline: update thoughtline"
        )


class RememberingTransport:
    """The common part of both kinds."""

    library: Any
    stream: type[Any]

    def __init__(self, inner: Any, line: ReplayLine, serves: Serves | None = None) -> None:
        self.inner = inner
        self.line = line
        self.serves = serves

    def __getattr__(self, name: str) -> Any:
        """Return attributes of the inner transport, which the client's owner may look for."""
        if name == "inner":  # not set yet: this is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _address(self, request: Any) -> tuple[AskedAddress | None, str]:
        """Return the parsed address of a request; None if it is not one of ours."""
        url = str(request.url)
        address = read_address(request.method, url)
        if address is not None and self.serves is not None and not self.serves(request.url.host):
            return None, url
        return address, url

    def _with_body(self, request: Any, body: bytes) -> Any:
        """Return the request to send: the caller's own if nothing changes."""
        own = [name for name, _ in request.headers.raw if name.lower().startswith(b"x-thoughtline-")]
        if not own and body == request.content:
            return request
        stream, given = self.library.ByteStream(body), request.extensions
        changed = self.library.Request(
            request.method, request.url, headers=request.headers, stream=stream, extensions=given
        )
        for name, _ in request.headers.raw:
            if name.lower() == b"content-length":
                changed.headers[name.decode("latin-1")] = str(len(body))
        for name in own:
            del changed.headers[name.decode("latin-1")]
        changed.read()  # so that its content can be read
        return changed

    def _listen(self, exchange: ExchangeState, response: Any) -> bool:
        """Add our header to the answer, and read it on its way to the caller. Returns whether it was already read."""
        try:
            for name, value in exchange.headers.items():
                response.headers[name] = value
            is_read = response.is_stream_consumed
            # A body that was read is decompressed, whatever its headers say.
            head = {"content-type": response.headers.get("content-type", "")} if is_read else response.headers
            if not exchange.answer(response.status_code, head):
                return False
            if is_read:
                exchange.feed(response.content)
            else:
                response.stream = self.stream(response.stream, exchange)
            return bool(is_read)
        except Exception as problem:
            log_problem("an answer could not be read", problem)
            return False


class _Refusal:
    """An error that was read to classify it. `rest` is the unread part."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.pieces: list[bytes] = []
        self.rest: Any = None
        self._size = 0

    def add(self, piece: bytes) -> bool:
        """Add a piece, and return whether the limit is exceeded."""
        self.pieces.append(piece)
        self._size += len(piece)
        return self._size > MAX_REFUSAL_BYTES

    @property
    def body(self) -> bytes:
        """The body without compression; empty if it is too long, or can't be decompressed."""
        body, encoding = b"".join(self.pieces), self.response.headers.get("content-encoding", "")
        try:
            return b"" if self.rest is not None else unpacked(body, encoding, MAX_REFUSAL_BYTES) if encoding else body
        except ThoughtlineError:
            return b""


class _SyncTransport(RememberingTransport):
    def handle_request(self, request: Any) -> Any:
        address, url = self._address(request)
        if address is None:
            return self.inner.handle_request(request)
        body = request.read()
        exchange = self.line.begin_at_sync(address, url, headers=request.headers.raw, body=body)
        try:
            response = self.inner.handle_request(self._with_body(request, exchange.body))
            if response.status_code >= 400 and exchange.is_healable:
                response = self._healed(request, exchange, response)
        except BaseException:
            exchange.cut()
            raise
        if self._listen(exchange, response):
            exchange.end()
        return response

    def _healed(self, request: Any, exchange: SyncExchange, response: Any) -> Any:
        """Return the answer to a corrected request; if nothing helps, the first refusal unchanged."""
        first: _Refusal | None = None
        while response.status_code >= 400:
            refusal = self._read(response)
            if first is None or response.status_code not in _REFUSALS:
                first = refusal
            if not refusal.body or not exchange.heal(response.status_code, refusal.body):
                first.response.stream = self.stream(_Read(first), None)
                return first.response
            response = self.inner.handle_request(self._with_body(request, exchange.body))
        return response

    def _read(self, response: Any) -> _Refusal:
        refusal, pieces = _Refusal(response), iter(response.stream)
        for piece in pieces:
            if refusal.add(piece):
                refusal.rest = pieces
                return refusal
        response.stream.close()
        return refusal

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> Any:
        self.inner.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self.inner.__exit__(*problem)


class _AsyncTransport(RememberingTransport):
    async def handle_async_request(self, request: Any) -> Any:
        address, url = self._address(request)
        if address is None:
            return await self.inner.handle_async_request(request)
        body = await request.aread()
        exchange = await self.line.begin_at(address, url, headers=request.headers.raw, body=body)
        try:
            response = await self.inner.handle_async_request(self._with_body(request, exchange.body))
            if response.status_code >= 400 and exchange.is_healable:
                response = await self._healed(request, exchange, response)
        except BaseException:
            exchange.cut()
            raise
        if self._listen(exchange, response):
            await exchange.end()
        return response

    async def _healed(self, request: Any, exchange: AsyncExchange, response: Any) -> Any:
        first: _Refusal | None = None
        while response.status_code >= 400:
            refusal = await self._read(response)
            if first is None or response.status_code not in _REFUSALS:
                first = refusal
            if not refusal.body or not await exchange.heal(response.status_code, refusal.body):
                first.response.stream = self.stream(_AsyncRead(first), None)
                return first.response
            response = await self.inner.handle_async_request(self._with_body(request, exchange.body))
        return response

    async def _read(self, response: Any) -> _Refusal:
        refusal, pieces = _Refusal(response), aiter(response.stream)
        async for piece in pieces:
            if refusal.add(piece):
                refusal.rest = pieces
                return refusal
        await response.stream.aclose()
        return refusal

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> Any:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self.inner.__aexit__(*problem)


class _Read:
    """The body of an error that was already read."""

    def __init__(self, refusal: _Refusal) -> None:
        self._refusal = refusal
        self._inner = refusal.response.stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._refusal.pieces
        yield from self._refusal.rest or ()

    def close(self) -> None:
        self._inner.close()


class _AsyncRead(_Read):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._refusal.pieces:
            yield piece
        if self._refusal.rest is not None:
            async for piece in self._refusal.rest:
                yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _SyncStream:
    """An answer on its way to the caller. The piece that ends a turn waits until the turn is saved."""

    def __init__(self, inner: Any, exchange: SyncExchange | None) -> None:
        self._inner = inner
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        if exchange is None:
            yield from self._inner
            return
        held = b""
        try:
            for piece in self._inner:
                if exchange.feed(piece):
                    exchange.save()
                if exchange.is_whole:
                    held, piece = piece, held
                if piece:
                    yield piece
            exchange.end()
        finally:
            exchange.cut()
        if held:
            yield held

    def close(self) -> None:
        if self._exchange is not None:
            self._exchange.cut()
        self._inner.close()


class _AsyncStream:
    def __init__(self, inner: Any, exchange: AsyncExchange | None) -> None:
        self._inner = inner
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange, held = self._exchange, b""
        try:
            async for piece in self._inner:
                if exchange is not None and exchange.feed(piece):
                    await exchange.save()
                if exchange is not None and exchange.is_whole:
                    held, piece = piece, held
                if piece:
                    yield piece
            if exchange is not None:
                await exchange.end()
        finally:
            if exchange is not None:
                exchange.cut()
        if held:
            yield held

    async def aclose(self) -> None:
        if self._exchange is not None:
            self._exchange.cut()
        await self._inner.aclose()
