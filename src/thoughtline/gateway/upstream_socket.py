"""A WebSocket to a provider's Responses API, held open for a client's own connection.

A request is a frame `response.create`; the answer is read as the stream that the same request has over HTTP. If the
connection knows the beginning of the conversation, only the rest is sent. Any problem with the connection is found
before the frame is written, and then the request is sent over HTTP: nothing is generated twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw, Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event, State

from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.threads import Work, at_once
from thoughtline.gateway.connecting import proxy_for, tls_context
from thoughtline.gateway.http_client import UpstreamCut, UpstreamResponse
from thoughtline.gateway.verdicts import broken_off, late

HELD_SOCKET = "held_socket"
"""The key of a request's scope that holds the `HeldSocket` of a client's connection."""

MAX_FRAME_BYTES = 16 * 2**20
"""OpenAI closes with 1009 beyond this size; over HTTP it accepts the same body (router-for-me/CLIProxyAPI#4017,
2026)."""

RECYCLE_SECONDS = 55 * 60.0
"""OpenAI ends a connection after 60 minutes (guide "WebSocket mode", 2026-09), even in the middle of a response."""

_FRAME_EXTRA = 1024
"""Maximum size of a frame in addition to its request."""

_TOO_BIG = 1009
_MAX_EVENT_BYTES = 32 * 2**20
_MAX_QUEUE_BYTES = 2 * 2**20
"""Limit of the events that wait for a slow client: about 2,500 deltas. Beyond it the gateway stops reading, so that the
provider waits too, and it answers no pings. A single larger event is still accepted."""

_FRAME_COST = 512
"""Approximate memory of a frame besides its bytes. It counts too, because events may be short."""

_PING_SECONDS, _PONG_SECONDS = 20.0, 60.0
_FRAME_HEAD = b'{"type":"response.create",'
_OF_A_BODY = frozenset({"accept", "accept-encoding", "content-type", "openai-beta"})
_BETA = ("openai-beta", "responses_websockets=2026-02-06")
"""The same as Codex sends; OpenAI's guide does not require it (2026-09)."""

_OF_A_TURN = ("session-id", "thread-id", "trace", "x-client-request-id", "x-codex-", "x-openai-")
"""Prefixes of headers that describe one turn: the connection outlives it, and frames contain the same data."""

_UNCOMPARED = frozenset({"input", "client_metadata", "stream_options"})
"""Members that may differ between a response and the one that continues it, as in Codex."""

_NOTHING = Raw(b"null")
_OVER = ("response.completed", "response.incomplete", "response.failed", "error")

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+: [\t\x20-\x7e\xa0-\xff]*")
"""RFC 9110, 5.1 and 5.5: values from JSON were not checked by an HTTP parser."""

_SILENT = logging.Logger("websockets of upstreams", logging.CRITICAL + 1)
"""The library would log reasoning."""


class _Event(Struct):
    """An event, decoded as far as needed; the last four members only for a few types."""

    type: str = ""
    item: Raw = _NOTHING
    response: Raw = _NOTHING
    error: Raw = _NOTHING
    headers: Raw = _NOTHING
    status: Raw = _NOTHING


class _Named(Struct):
    id: str = ""
    type: str = ""


class _Conversation(Struct, frozen=True):
    """A conversation for comparison: digests of its items, and one of all other members that must stay the same."""

    items: list[bytes]
    rest: bytes
    response_id: str = ""
    """The response that it ends with, if the provider knows it."""


class _Request(Struct, frozen=True):
    """A request, in parts."""

    members: dict[str, Raw]
    input: list[Raw]
    conversation: _Conversation


class _Connect(connect):
    """A connection that follows no redirects: addresses come only from settings."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _Connection(ClientConnection):
    """Stops reading while `_MAX_QUEUE_BYTES` of whole events wait. It completes an event that has begun, whose size has
    its own limit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sizes: deque[int] = deque()
        self._waiting_bytes = self._half_bytes = 0

    def process_event(self, event: Event) -> None:
        super().process_event(event)
        if not isinstance(event, Frame) or event.opcode not in DATA_OPCODES:
            return
        self._half_bytes += len(event.data) + _FRAME_COST
        if event.fin:
            self._sizes.append(self._half_bytes)
            self._waiting_bytes += self._half_bytes
            self._half_bytes = 0
            self._read_on(self._waiting_bytes <= _MAX_QUEUE_BYTES)
        elif self._half_bytes > 2 * _MAX_EVENT_BYTES:
            self.transport.abort()  # endless fragments that are nearly empty

    async def next_event(self) -> bytes:
        message = await self.recv(decode=False)
        self._waiting_bytes -= self._sizes.popleft()
        if self._waiting_bytes <= _MAX_QUEUE_BYTES // 2:
            self._read_on(True)
        return message

    def _read_on(self, is_reading: bool) -> None:
        if is_reading is not self.transport.is_reading() and not self.transport.is_closing():
            (self.transport.resume_reading if is_reading else self.transport.pause_reading)()


class HeldSocket:
    """One connection, to the server asked last, with one response at a time. `work_for` decides how a body is decoded:
    a long one in a thread."""

    def __init__(self, work_for: Callable[[bytes], Work] = lambda _: at_once) -> None:
        self._work_for = work_for
        self._socket: _Connection | None = None
        self._whose: tuple[str, tuple[tuple[str, str], ...]] | None = None
        self._refused_by = ""
        self._opened_at = 0.0
        self._known: _Conversation | None = None
        self._is_busy = False
        self._is_closed = False

    async def send(
        self, provider: Provider, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> UpstreamResponse | None:
        """Send a request, and return when the provider has begun to answer; None if it has to go over HTTP. Raises
        `Declined` like HTTP does."""
        if self._is_busy or self._is_closed or self._refused_by == url or len(body) >= MAX_FRAME_BYTES - _FRAME_EXTRA:
            return None
        self._is_busy = True
        try:
            request = await self._work_for(body)(partial(_read, body))
        finally:
            self.release(self._known)
        if request is None or self._is_closed:
            return None
        self._is_busy, response = True, None
        try:
            socket = await self._open(provider, url, headers)
            response = await self._ask(socket, provider, request, body=body) if socket is not None else None
            return response
        finally:
            if response is None:
                self.release(None)

    def close(self) -> None:
        """The client has disconnected. An active response is read to its end."""
        self._is_closed = True
        if not self._is_busy:
            self.drop()

    def release(self, known: _Conversation | None) -> None:
        """Free the connection after a response; `known` is what the provider can continue from."""
        self._is_busy, self._known = False, known
        if self._is_closed:
            self.drop()

    def drop(self) -> None:
        """Close without a closing handshake, which no one waits for."""
        if self._socket is not None:
            self._socket.transport.abort()
        self._socket, self._known = None, None

    async def _open(self, provider: Provider, url: str, headers: list[tuple[str, str]]) -> _Connection | None:
        """Return the connection to this address with these credentials; open a new one if there is none that works."""
        whose = (url, tuple(sorted(pair for pair in headers if not pair[0].startswith(_OF_A_TURN))))
        is_old = asyncio.get_running_loop().time() - self._opened_at > RECYCLE_SECONDS
        if self._socket is not None and self._whose == whose and not is_old and await _is_quiet(self._socket):
            return self._socket
        self.drop()
        try:
            self._socket = await _connected(url, headers, provider.timeouts.connect)
        except (OSError, TimeoutError, WebSocketException, ValueError, ImportError):
            self._refused_by = url
            return None
        self._whose, self._opened_at = whose, asyncio.get_running_loop().time()
        return self._socket

    async def _ask(
        self, socket: _Connection, provider: Provider, request: _Request, *, body: bytes
    ) -> UpstreamResponse | None:
        delta = _delta(request, self._known)
        try:
            async with asyncio.timeout(provider.timeouts.first_byte):
                await socket.send(delta or _FRAME_HEAD + body.lstrip()[1:], text=True)
                frame = await socket.next_event()
        except BaseException as problem:
            self.drop()
            if isinstance(problem, TimeoutError):
                raise late(provider.name) from None
            if not isinstance(problem, ConnectionClosed):
                raise
            if problem.rcvd is not None and problem.rcvd.code == _TOO_BIG:
                return None
            raise broken_off(provider.name) from None
        if _event(frame).type != "error":
            return SocketResponse(self, socket, provider, frame=frame, conversation=request.conversation)
        if delta is not None:
            return None  # the places that it names are not those of the request
        return RefusedFrame(self, socket, provider, frame=frame, conversation=request.conversation)


class SocketResponse(UpstreamResponse):
    """The answer to a frame, as the stream that HTTP would return."""

    def __init__(
        self,
        held: HeldSocket,
        socket: _Connection,
        provider: Provider,
        *,
        frame: bytes,
        conversation: _Conversation,
    ) -> None:
        self._held = held
        self._socket = socket
        self._conversation = conversation
        self._read_seconds = provider.timeouts.read
        self._due = asyncio.get_running_loop().time() + provider.timeouts.total
        self._outputs: list[bytes] = []
        self._known: _Conversation | None = None
        self._is_over = self._is_cut = self._is_closed = False
        self._ahead = [self._piece(frame)]
        self.status, self.kind, self.tells_length, self.encoding = 200, "text/event-stream", False, ""
        self.headers = [("content-type", self.kind)]
        self._first = dict(self.headers)

    def __del__(self) -> None:
        """An unclosed response leaves an unusable connection, so release it."""
        self._let_go()

    async def read(self) -> bytes | None:
        if self._ahead:
            return self._ahead.pop(0)
        if self._is_cut:
            raise UpstreamCut
        return None if self._is_over else await self._next()

    async def peek(self) -> bytes | None:
        try:
            piece = None if self._is_over else await self._next()
        except UpstreamCut:
            self._is_cut = True
            raise
        if piece is not None:
            self._ahead.append(piece)
        return piece

    async def close(self) -> None:
        """Release the connection, which can be reused if the response was read to its end."""
        self._let_go()

    def _let_go(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_over:
            self._held.drop()
        self._held.release(self._known)

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout_at(min(asyncio.get_running_loop().time() + self._read_seconds, self._due)):
                return self._piece(await self._socket.next_event())
        except (TimeoutError, ConnectionClosed):
            raise UpstreamCut from None

    def _piece(self, frame: bytes) -> bytes:
        """Return an event in the form of a stream. Line breaks occur in JSON only where a space may."""
        event, conversation = _event(frame), self._conversation
        if event.type == "response.output_item.done":
            self._outputs.append(_digest(event.item))
        elif event.type in _OVER:
            self._is_over = True
            response_id = _named(event.response).id
            if event.type == "response.completed" and response_id:
                self._known = _Conversation([*conversation.items, *self._outputs], conversation.rest, response_id)
        line = frame.replace(b"\r", b" ").replace(b"\n", b" ")
        return b"event: " + event.type.encode() + b"\ndata: " + line + b"\n\n"


class RefusedFrame(SocketResponse):
    """An error in place of a response, in the form of HTTP."""

    def __init__(
        self,
        held: HeldSocket,
        socket: _Connection,
        provider: Provider,
        *,
        frame: bytes,
        conversation: _Conversation,
    ) -> None:
        super().__init__(held, socket, provider, frame=frame, conversation=conversation)
        event = _event(frame)
        self._ahead = [b'{"error":' + bytes(event.error) + b"}"]
        self.status, self.kind, self.tells_length = _status(event), "application/json", True
        self.headers = [*_headers(event), ("content-type", self.kind)]
        self._first = dict(reversed(self.headers))


async def _connected(url: str, headers: list[tuple[str, str]], seconds: float) -> _Connection:
    kept = [pair for pair in headers if pair[0] not in _OF_A_BODY and not pair[0].startswith("sec-websocket-")]
    connection = await _Connect(
        "ws" + url.removeprefix("http"),
        additional_headers=[*kept, _BETA],
        user_agent_header=None,
        compression=None,
        open_timeout=seconds,
        ping_interval=_PING_SECONDS,
        ping_timeout=_PONG_SECONDS,
        max_size=_MAX_EVENT_BYTES,
        max_queue=None,
        create_connection=_Connection,
        logger=_SILENT,
        proxy=proxy_for(url) or None,
        ssl=tls_context() if url.startswith("https:") else None,
    )
    assert isinstance(connection, _Connection)
    return connection


async def _is_quiet(socket: _Connection) -> bool:
    """Whether it is open, without unrequested messages, such as that it is about to close."""
    with contextlib.suppress(TimeoutError, ConnectionClosed):
        async with asyncio.timeout(0):
            await socket.next_event()
            return False
    return socket.state is State.OPEN


def _read(body: bytes) -> _Request | None:
    """Decode a streaming request whose input is a list; None for any other."""
    try:
        members = msgspec.json.decode(body, type=dict[str, Raw])
        items = msgspec.json.decode(members.get("input", _NOTHING), type=list[Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if "type" in members or not _is(members, "stream", b"true") or _is(members, "background", b"true"):
        return None
    rest = b",".join(name.encode() + b":" + bytes(raw) for name, raw in members.items() if name not in _UNCOMPARED)
    return _Request(members, items, _Conversation([_digest(item) for item in items], _digest(rest)))


def _is(members: dict[str, Raw], name: str, value: bytes) -> bool:
    return bytes(members.get(name, _NOTHING)) == value


def _delta(request: _Request, known: _Conversation | None) -> bytes | None:
    """Return the frame that continues from what the provider knows, if the conversation begins with exactly that."""
    now = request.conversation
    if known is None or known.rest != now.rest or not _is(request.members, "previous_response_id", b"null"):
        return None
    size = len(known.items)
    if now.items[:size] != known.items:
        return None
    rest = {"previous_response_id": known.response_id, "input": request.input[size:]}
    return msgspec.json.encode({"type": "response.create", **request.members, **rest})


def _digest(raw: bytes | Raw) -> bytes:
    return blake2b(raw, digest_size=16).digest()


def _event(frame: bytes) -> _Event:
    """Decode an event. An unreadable one has no type: it is passed on and has no effect here."""
    try:
        return msgspec.json.decode(frame, type=_Event)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Event()


def _named(raw: Raw) -> _Named:
    try:
        return msgspec.json.decode(raw, type=_Named | None) or _Named()
    except msgspec.MsgspecError:
        return _Named()


def _status(event: _Event) -> int:
    """Return the frame's status. A frame without one is about the request, or a fault of the provider."""
    status = bytes(event.status)
    if len(status) == 3 and status.isdigit() and status >= b"400":
        return int(status)
    return 400 if _named(event.error).type == "invalid_request_error" else 500


def _headers(event: _Event) -> list[tuple[str, str]]:
    """Return limits and retry times. Values may be numbers (openai/codex, `responses_websocket.rs`, 2026-08)."""
    try:
        headers = msgspec.json.decode(event.headers, type=dict[str, str | int | float | bool] | None) or {}
    except msgspec.MsgspecError:
        return []
    pairs = [(name.lower(), str(value)) for name, value in headers.items()]
    return [pair for pair in pairs if pair[0] != "content-type" and _HEADER.fullmatch(": ".join(pair))]
