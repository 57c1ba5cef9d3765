"""The WebSocket protocol with clients: `websockets` writes and reads frames; this module adds limits.

size     a message is as large as a body may be, and has a limited number of fragments
time     an incomplete message must progress like a body; a client that answers no ping is gone
number   at most one message waits: reading pauses until it is taken
turns    one frame is parsed per iteration of the event loop, so that others run in between; pings are rate-limited
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from thoughtline.gateway.asgi import Scope
from thoughtline.gateway.headers import Headers as HeaderPairs
from thoughtline.settings import ServerSettings

PING_SECONDS = 30.0
MAX_SILENT_PINGS = 2
"""Unanswered pings in a row before the connection is closed: 60 to 90 s. Any byte counts as an answer, because a client
can't answer in the middle of a large message."""

CLOSE_SECONDS = 10.0
"""How long a client may take to confirm a close."""

LEAST_MESSAGE_BYTES = 4 * 2**10
"""Bytes of a message that must arrive within `body_timeout`, unless it is complete."""

MAX_FRAGMENTS = 4_096
CONTROL_FRAMES_PER_SECOND = 10.0
MAX_CONTROL_FRAMES = 100
"""Pings and pongs that may come at once; each costs as much as a short message. Clients send one every 20 to 30 s."""

FAULTS = frozenset({1002, 1003, 1007, 1008, 1009})
"""Codes for a client's violations: RFC 6455, 7.4.1."""

SUBPROTOCOL = "openai-beta."
"""Prefix of the subprotocols that some clients offer, and expect in the answer."""

Serve = Callable[["WebSocket"], Awaitable[None]]


class UnparsedFrames:
    """Received bytes, returned frame by frame. An incomplete frame is returned as far as it has arrived."""

    def __init__(self) -> None:
        self._data = b""
        self._at = self._left = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def add(self, data: bytes) -> None:
        self._data = self._data[self._at :] + data if self else data
        self._at = 0

    @property
    def are_ready(self) -> bool:
        """Whether there is anything to take: the head of a frame is returned whole."""
        if not self._left and self:
            self._left = _frame_size(self._data, self._at)
        return bool(self._left) and bool(self)

    def take(self) -> bytes:
        """Return what has arrived of one frame."""
        if not self.are_ready:
            return b""
        start, end = self._at, min(self._at + self._left, len(self._data))
        taken = self._data[start:end]
        self._left -= end - start
        self._at = end
        if not self:
            self._data, self._at = b"", 0
        return taken

    def clear(self) -> None:
        self._data, self._at = b"", 0


def _frame_size(data: bytes, at: int) -> int:
    """Return the size of the frame that begins there; 0 if not known yet. RFC 6455, 5.2."""
    if len(data) - at < 2:
        return 0
    mask_bytes, length = 4 if data[at + 1] & 0x80 else 0, data[at + 1] & 0x7F
    if length < 126:
        return 2 + mask_bytes + length
    head_bytes = 4 if length == 126 else 10
    if len(data) - at < head_bytes:
        return 0
    return head_bytes + mask_bytes + int.from_bytes(data[at + 2 : at + head_bytes], "big")


class WebSocket(asyncio.Protocol):
    """One connection after its upgrade. It is refused or accepted; then messages are received and sent."""

    def __init__(self, scope: Scope, server: ServerSettings, state: ServerState) -> None:
        self.scope = scope
        self.on_disconnect: Callable[[], None] | None = None
        self.on_shutdown: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self._server = server
        self._connections, self._tasks = state.connections, state.tasks
        self._frames = ServerProtocol(state=State.OPEN, max_size=server.max_body_bytes)
        self._messages: deque[bytes] = deque()
        self._fragments: list[bytes] = []
        self._unparsed = UnparsedFrames()
        self._next_frame: asyncio.Handle | None = None
        self._controls_until = 0.0
        self._bytes_in = self._bytes_at_ping = self._bytes_of_half = 0
        self._silent_pings = 0
        self._is_over, self._is_paused = False, True
        self._waiting: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._ping_timer: asyncio.TimerHandle | None = None
        self._half_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def open(self, transport: asyncio.Transport, serve: Serve) -> None:
        """Take over a connection from HTTP. Nothing is read before it is accepted."""
        self._loop, self._transport = asyncio.get_running_loop(), transport
        transport.pause_reading()
        transport.set_protocol(self)
        self._connections.add(self)  # type: ignore[arg-type]  # of uvicorn's types it needs only `shutdown`
        task = asyncio.ensure_future(serve(self))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # called by the code that serves it

    def accept(self) -> bool:
        """Answer the upgrade, and return whether it was one."""
        headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.scope["headers"]])
        offered = [one.strip() for line in headers.get_all("Sec-WebSocket-Protocol") for one in line.split(",")]
        response = ServerProtocol().accept(Request(self.scope["path"], headers))
        del response.headers["Date"]
        named = next((one for one in offered if one.startswith(SUBPROTOCOL)), None)
        if named is not None:
            response.headers["Sec-WebSocket-Protocol"] = named
        self._transport.write(response.serialize())
        if response.status_code != 101:
            self._transport.close()
            return False
        self._is_paused = False
        self._transport.resume_reading()
        self._ping_timer = self._loop.call_later(PING_SECONDS, self._ping)
        return True

    def refuse(self, status: int, headers: HeaderPairs, body: bytes) -> None:
        """Refuse the upgrade with an ordinary HTTP answer."""
        given = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])
        given["Connection"], given["Content-Length"] = "close", str(len(body))
        self._transport.write(Response(status, HTTPStatus(status).phrase, given, body).serialize())
        self._transport.close()

    async def receive(self, until: float) -> bytes | None:
        """Return the next message; None when there are no more. Raises TimeoutError at that time of the event loop."""
        if not self._messages and not self._is_over:
            self._waiting = self._loop.create_future()
            async with asyncio.timeout_at(until):
                await self._waiting
        if self._is_over:
            return None
        message = self._messages.popleft()
        self._go_on()
        return message

    async def send(self, text: bytes) -> None:
        """Send a message when the client has taken the earlier ones; nothing if it has disconnected."""
        if self._drained is not None:
            await self._drained
        if self._frames.state is State.OPEN:
            self._frames.send_text(text)
            self._flush()

    def close(self, code: int, reason: str) -> None:
        """Close the connection in both directions."""
        self._is_over = True
        if self._frames.state is State.OPEN and not self._transport.is_closing():
            self._frames.send_close(code, reason)
            self._flush()
            self._go_on()  # the client's own close ends it
            self._abort_later()

    def fail(self, code: int, reason: str) -> None:
        """Close the connection without waiting for anything."""
        self._is_over = True
        self._frames.fail(code, reason)
        self._flush()
        self._unparsed.clear()
        self._messages.clear()
        self._wake()
        self._go_on()

    @property
    def problem(self) -> str:
        """Why it was closed early, if the client violated the protocol."""
        close = self._frames.close_sent
        if close is None or self._frames.close_rcvd_then_sent or close.code not in FAULTS:
            return ""
        return f"{close.code} {close.reason}".rstrip()

    # called by the event loop and the server

    def data_received(self, data: bytes) -> None:
        self._bytes_in += len(data)
        if self._frames.eof_sent:
            return  # it is dropped
        self._unparsed.add(data)
        if self._next_frame is None:
            self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        for timer in (self._ping_timer, self._half_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        self._is_over = True
        self._unparsed.clear()
        if self._next_frame is not None:
            self._next_frame.cancel()
        with contextlib.suppress(EOFError):
            self._frames.receive_eof()
        self.resume_writing()
        self._wake()
        self.on_lost()
        if self.on_disconnect is not None:
            self.on_disconnect()

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def shutdown(self) -> None:
        """The server is about to stop: an active answer is the last."""
        self.on_shutdown()
        self._is_over = True
        self._wake()

    # frames

    def _parse(self) -> None:
        """Parse one frame, or what has arrived of it. The next one waits for the next iteration of the event loop."""
        self._next_frame = None
        self._frames.receive_data(self._unparsed.take())
        self._flush()
        for event in self._frames.events_received():
            if isinstance(event, Frame) and not self._is_over:
                self._take(event)
        if self._frames.eof_sent:
            self._is_over = True
            self._unparsed.clear()
            self._wake()
        self._go_on()

    def _go_on(self) -> None:
        """Schedule the next frame, unless a message is waiting; resume reading when there is nothing to parse."""
        is_waiting = bool(self._messages) and not self._is_over
        is_behind = self._unparsed.are_ready
        if is_behind and not is_waiting and self._next_frame is None:
            self._next_frame = self._loop.call_soon(self._parse)
        self._pause_reading(is_waiting or is_behind)
        self._watch_half()

    def _pause_reading(self, is_paused: bool) -> None:
        if is_paused is self._is_paused:
            return
        self._is_paused = is_paused
        if self._half_timer is not None:  # the client's time starts when reading resumes
            self._half_timer.cancel()
            self._half_timer = None
        if not self._transport.is_closing():  # uvloop would raise
            (self._transport.pause_reading if is_paused else self._transport.resume_reading)()

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.PING, Opcode.PONG):
            self._count_control()
        elif frame.opcode is Opcode.BINARY:
            self.fail(1003, "text frames only")
        elif frame.opcode is not Opcode.CLOSE:
            self._fragments.append(bytes(frame.data))
            frame.data = b""  # the parser keeps its latest frame until the next one comes
            if frame.fin:
                self._messages.append(b"".join(self._fragments))
                self._fragments = []
                self._wake()
            elif len(self._fragments) >= MAX_FRAGMENTS:
                self.fail(1008, "too many fragments")

    def _count_control(self) -> None:
        now = self._loop.time()
        self._controls_until = max(self._controls_until, now) + 1 / CONTROL_FRAMES_PER_SECOND
        if self._controls_until - now > MAX_CONTROL_FRAMES / CONTROL_FRAMES_PER_SECOND:
            self.fail(1008, "too many pings")

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _flush(self) -> None:
        for data in self._frames.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._end()

    def _end(self) -> None:
        """End the connection. If the client has not closed it too, read for a moment and drop the data: otherwise the
        system would reset the connection, and the client would never see the reason. RFC 6455, 7.1.1."""
        if self._frames.close_rcvd is not None or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()
        self._abort_later()

    def _abort_later(self) -> None:
        """Don't wait for a client that does not read."""
        if self._close_timer is None:
            self._close_timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    # timeouts

    def _ping(self) -> None:
        """Ping periodically. A client is not silent if we are not reading."""
        is_silent = self._bytes_in == self._bytes_at_ping and not self._is_paused
        self._silent_pings = self._silent_pings + 1 if is_silent else 0
        self._bytes_at_ping = self._bytes_in
        if self._frames.state is not State.OPEN:
            return
        if self._silent_pings > MAX_SILENT_PINGS:
            self.fail(1011, "no answer to a ping")
            return
        self._frames.send_ping(b"")
        self._flush()
        self._ping_timer = self._loop.call_later(PING_SECONDS, self._ping)

    def _watch_half(self) -> None:
        """Run a timer while a message is incomplete."""
        is_half = not self._is_over and bool(self._fragments or self._frames.reader.buffer or self._unparsed)
        if is_half and self._half_timer is None:
            self._bytes_of_half = self._bytes_in
            self._half_timer = self._loop.call_later(self._server.body_timeout_seconds, self._late)
        elif not is_half and self._half_timer is not None:
            self._half_timer.cancel()
            self._half_timer = None

    def _late(self) -> None:
        self._half_timer = None
        if self._is_paused or self._bytes_in - self._bytes_of_half >= LEAST_MESSAGE_BYTES:
            self._watch_half()
        else:
            self.fail(1008, "too slow")
