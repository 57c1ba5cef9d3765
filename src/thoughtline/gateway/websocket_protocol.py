"""A WebSocket as it is spoken with clients: `websockets` makes and reads its frames; here are the bounds around them.

size     a message is as large as a body may be, and of so many fragments
time     half a message goes on as a body does; who answers no ping is gone
number   one message waits at most: then nothing more is read until it is taken
turns    one frame is parsed in a turn of the loop, so that others are served between any two; pings have a rate
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
MOST_SILENT_PINGS = 2
"""After so many pings in a row nothing at all came back: 60 to 90 s. Any byte counts, for a client that is sending a
large message can't answer in the middle of it."""

CLOSE_SECONDS = 10.0
"""How long a client may take to confirm that a connection is closed."""

LEAST_MESSAGE_BYTES = 4 * 2**10
"""What comes of a message within `body_timeout`, at least, if it is not all of it."""

MOST_FRAGMENTS = 4_096
CONTROL_FRAMES_PER_SECOND = 10.0
MOST_CONTROL_FRAMES = 100
"""How many pings and pongs may come at once; each costs as much as a short message. Clients send one in 20 to 30 s."""

FAULTS = frozenset({1002, 1003, 1007, 1008, 1009})
"""Codes that say a client did what it may not: RFC 6455, 7.4.1."""

SUBPROTOCOL = "openai-beta."
"""How the subprotocols begin that some clients offer, and expect to be named."""

Serve = Callable[["WebSocket"], Awaitable[None]]


class UnparsedFrames:
    """Bytes as they came, given out frame by frame. A frame that is not whole is given as far as it has come."""

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
        """Whether there is anything to take: the head of a frame is given whole."""
        if not self._left and self:
            self._left = _frame_size(self._data, self._at)
        return bool(self._left) and bool(self)

    def take(self) -> bytes:
        """What is there of one frame."""
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
    """The size of the frame that begins there; 0 while that is not known. RFC 6455, 5.2."""
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
    """One connection, from its upgrade on. It is refused, or accepted; then messages are received and sent."""

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
        """Take a connection over from HTTP. Nothing is read before it is accepted."""
        self._loop, self._transport = asyncio.get_running_loop(), transport
        transport.pause_reading()
        transport.set_protocol(self)
        self._connections.add(self)  # type: ignore[arg-type]  # of uvicorn's kinds it needs `shutdown` alone
        task = asyncio.ensure_future(serve(self))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # what is served with

    def accept(self) -> bool:
        """Answer the upgrade. Whether it was one."""
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
        """Answer the upgrade as any other request that is not served."""
        given = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])
        given["Connection"], given["Content-Length"] = "close", str(len(body))
        self._transport.write(Response(status, HTTPStatus(status).phrase, given, body).serialize())
        self._transport.close()

    async def receive(self, until: float) -> bytes | None:
        """The next message; None when no more will be taken. Raises TimeoutError at that time of the loop."""
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
        """A message, when the client has taken what came before; nothing if it has left."""
        if self._drained is not None:
            await self._drained
        if self._frames.state is State.OPEN:
            self._frames.send_text(text)
            self._flush()

    def close(self, code: int, reason: str) -> None:
        """No more messages, either way."""
        self._is_over = True
        if self._frames.state is State.OPEN and not self._transport.is_closing():
            self._frames.send_close(code, reason)
            self._flush()
            self._go_on()  # the client's own close ends it
            self._abort_later()

    def fail(self, code: int, reason: str) -> None:
        """No more messages, and nothing is waited for."""
        self._is_over = True
        self._frames.fail(code, reason)
        self._flush()
        self._unparsed.clear()
        self._messages.clear()
        self._wake()
        self._go_on()

    @property
    def problem(self) -> str:
        """Why it was closed before its time, if the client did what it may not."""
        close = self._frames.close_sent
        if close is None or self._frames.close_rcvd_then_sent or close.code not in FAULTS:
            return ""
        return f"{close.code} {close.reason}".rstrip()

    # what the loop and the server call

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
        """The server is about to stop: an answer that is under way is the last."""
        self.on_shutdown()
        self._is_over = True
        self._wake()

    # frames

    def _parse(self) -> None:
        """One frame, or what is there of it. The next one waits for the next turn of the loop."""
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
        """Parse the next frame soon, unless a message waits; read on when there is nothing to parse."""
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
        if self._half_timer is not None:  # the client's time begins when we read on
            self._half_timer.cancel()
            self._half_timer = None
        if not self._transport.is_closing():  # which uvloop would raise for
            (self._transport.pause_reading if is_paused else self._transport.resume_reading)()

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.PING, Opcode.PONG):
            self._count_control()
        elif frame.opcode is Opcode.BINARY:
            self.fail(1003, "text frames only")
        elif frame.opcode is not Opcode.CLOSE:
            self._fragments.append(bytes(frame.data))
            frame.data = b""  # the parser holds its latest frame until the next one comes
            if frame.fin:
                self._messages.append(b"".join(self._fragments))
                self._fragments = []
                self._wake()
            elif len(self._fragments) >= MOST_FRAGMENTS:
                self.fail(1008, "too many fragments")

    def _count_control(self) -> None:
        now = self._loop.time()
        self._controls_until = max(self._controls_until, now) + 1 / CONTROL_FRAMES_PER_SECOND
        if self._controls_until - now > MOST_CONTROL_FRAMES / CONTROL_FRAMES_PER_SECOND:
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
        """Nothing more is said. A client that has not said so too is read on for a moment, and what it says dropped:
        else the system would reset the connection, and it would never know why. RFC 6455, 7.1.1."""
        if self._frames.close_rcvd is not None or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()
        self._abort_later()

    def _abort_later(self) -> None:
        """What the client does not take is not waited for."""
        if self._close_timer is None:
            self._close_timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    # time

    def _ping(self) -> None:
        """Again and again. Who sends nothing because we don't read is not silent."""
        is_silent = self._bytes_in == self._bytes_at_ping and not self._is_paused
        self._silent_pings = self._silent_pings + 1 if is_silent else 0
        self._bytes_at_ping = self._bytes_in
        if self._frames.state is not State.OPEN:
            return
        if self._silent_pings > MOST_SILENT_PINGS:
            self.fail(1011, "no answer to a ping")
            return
        self._frames.send_ping(b"")
        self._flush()
        self._ping_timer = self._loop.call_later(PING_SECONDS, self._ping)

    def _watch_half(self) -> None:
        """A timer runs while half a message is there."""
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
