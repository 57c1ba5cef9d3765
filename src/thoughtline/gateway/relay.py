"""Pumps an answer to the client as it comes, through the stages that apply to it.

Bytes are sent in the step that brought them, with one exception: the piece that shows the client the end of its turn
waits until the turn's record is saved (`saving.py` limits how long). So a client that continues at once, disconnects
then, or comes back after a crash finds the record. When the client disconnects, the answer is read on for its record,
within limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from msgspec import Struct, field

from thoughtline.engine.threads import Work
from thoughtline.gateway.answer_stages import BRIEF_BYTES, LONG_BYTES, Down, ReadStream, ReadWhole
from thoughtline.gateway.asgi import Receive, Scope, Send
from thoughtline.gateway.headers import Headers, with_findings, with_store
from thoughtline.gateway.http_client import UpstreamCut, UpstreamResponse
from thoughtline.gateway.in_flight import GATEWAY, InFlight, Owner
from thoughtline.gateway.pieces import Piece
from thoughtline.gateway.pulse import PulsedSend
from thoughtline.gateway.saving import Abandoned, Hold
from thoughtline.values.errors import Declined, DecodeError, EncodeError

DRAIN_BYTES = 8 * 2**20
"""Maximum that is read for a client that has disconnected."""

LONG_ANSWER_BYTES = 2**20
"""The record of a longer answer is made in a thread: on the event loop it would block all others for 3 ms, or far
longer."""

CUT = "the upstream broke off"
_LEFT = "the client left; not read to the end"

Save = Callable[[], Coroutine[Any, Any, None]]
"""Saves the turns that have ended."""


class Ending(Struct):
    """The end of a turn in an answer: when it came, how long it was held, and how much of that went into saving."""

    began_at: float = 0.0
    seconds: float = 0.0
    save_seconds: float = 0.0


class Relay(Struct):
    """One answer on its way to the client.

    `saves` are active; `late` is how many were not waited for, `held_seconds` how long the others took. `unsaved` is
    why a turn could not be saved, `problem` why the answer could not be read or sent completely.
    """

    response: UpstreamResponse
    headers: Headers
    down: Down
    hold: Hold
    disconnect: Disconnect
    work: Work
    saves: set[asyncio.Task[None]] = field(default_factory=set)
    unsaved: str = ""
    held_seconds: float = 0.0
    ending: Ending = field(default_factory=Ending)
    late: int = 0
    bytes_read: int = 0
    drained_bytes: int = 0
    bytes_down: int = 0
    problem: str = ""
    has_started: bool = False
    started_at: float = 0.0
    on_start: Callable[[], None] | None = None
    pulse_seconds: float = 0.0
    is_translating: bool = False

    async def run(self, send: Send, save: Save) -> None:
        """Send the whole answer. A client whose answer is rewritten gets periodic signs."""
        if self.down.translation is None or not self.pulse_seconds:
            await self._run(send, save)
            return
        pulsed = PulsedSend(send, self.pulse_seconds, self._beat)
        try:
            await self._run(pulsed, save)
        finally:
            pulsed.stop()

    async def _beat(self, send: Send) -> None:
        """Send a keep-alive sign in the client's format; none while a piece is being translated."""
        translation = self.down.translation
        sign = translation.pulse() if translation is not None and not self.is_translating else b""
        if sign:
            await self._send(send, sign)

    async def _run(self, send: Send, save: Save) -> None:
        read, disconnect, reader, stages = self.response.read, self.disconnect, self.down.reader, self.down.stages
        disconnect.has_answer = True
        if self.down.starts_at_once:
            await self._send(send, b"")
        try:
            while (data := await read()) is not None:
                piece, size = Piece(data, plain=data), len(data)
                if reader is not None and size > reader.brief_bytes:
                    await self._work(partial(self._feed, piece))
                else:
                    for stage in stages:
                        stage.feed(piece)
                self.bytes_read += size
                if piece.ending or piece.ends_turn or (piece.data and not self.has_started):
                    await self._pass(piece, send, save)
                elif piece.data:
                    self.bytes_down += len(piece.data)
                    if not disconnect.has_left:
                        await send({"type": "http.response.body", "body": piece.data, "more_body": True})
                if disconnect.has_left and self._is_drained(size):
                    self.problem = _LEFT
                    break
            piece = Piece(b"")
            if reader is not None and self.bytes_read > BRIEF_BYTES and self._is_long_at_end(reader):
                await self._work(partial(self._end, piece))
            else:
                for stage in stages:
                    stage.end(piece)
            await self._pass(piece, send, save, is_last=True)
        except (UpstreamCut, DecodeError, EncodeError, asyncio.CancelledError) as problem:
            await self._break_off(problem, send, save)

    async def pass_read(self, send: Send, body: bytes, is_whole: bool) -> None:
        """Send an error whose beginning was already read; all of it if `is_whole`."""
        self.disconnect.has_answer = True
        await self._send(send, body, is_last=is_whole)
        try:
            while not is_whole and (data := await self.response.read()) is not None:
                await self._send(send, data)
        except UpstreamCut:
            self.problem = CUT
            return
        if not is_whole:
            await self._send(send, b"", is_last=True)

    @property
    def is_long(self) -> bool:
        """Whether making the record needs a thread."""
        return self.bytes_read > LONG_ANSWER_BYTES

    async def _work(self, step: Callable[[], None]) -> None:
        self.is_translating = True
        await self.work(step)
        self.is_translating = False

    def _is_long_at_end(self, reader: ReadStream | ReadWhole) -> bool:
        return reader.is_long_at_end() or (self.down.is_sized and self.bytes_read > LONG_BYTES)

    def _feed(self, piece: Piece) -> None:
        for stage in self.down.stages:
            stage.feed(piece)

    def _end(self, piece: Piece) -> None:
        for stage in self.down.stages:
            stage.end(piece)

    def _cut(self) -> Piece:
        piece = Piece(b"")
        for stage in self.down.stages:
            stage.cut(piece, self.problem)
        return piece

    async def _pass(self, piece: Piece, send: Send, save: Save, *, is_last: bool = False) -> None:
        """Send the content at once, and the end of the turn when it is saved."""
        if piece.data:
            await self._send(send, piece.data)
        reader, translation = self.down.reader, self.down.translation
        has_ended = reader is not None and reader.watch is not None and reader.watch.has_news
        if reader is not None and reader.watch is not None and self.disconnect.has_left:
            reader.watch.is_left = True
        if has_ended or (translation is not None and translation.answer):
            began = time.perf_counter()
            self.ending.began_at = self.ending.began_at or began
            await (save() if self.hold.is_brief and not self.is_long else self._save(save))
            self.ending.seconds += time.perf_counter() - began
        if is_last and not self.has_started and (translation is not None or self.down.is_sized):
            self._finish_headers(len(piece.ending))
        if piece.ending or is_last:
            await self._send(send, piece.ending, is_last=is_last)

    async def _break_off(self, problem: BaseException, send: Send, save: Save) -> None:
        """Handle an answer that breaks off. A client of a rewritten answer gets an error; otherwise its connection ends
        like ours did.

        Raises the problem if a caller has to decide what to do.
        """
        is_rewritten = self.down.translation is not None
        if isinstance(problem, asyncio.CancelledError):
            if not self.disconnect.has_left or not self.has_started or is_rewritten:
                raise problem
            self.problem = _LEFT
            await self._pass(self._cut(), send, save)
            return
        if not self.has_started:
            if not isinstance(problem, UpstreamCut):
                raise problem
            if is_rewritten:
                message = "The provider broke off in the middle of its answer."
                raise Declined(502, "upstream_failed", message, "Send the request again.")
        self.problem = _words(problem)
        is_stream = self.down.translation is not None and self.down.translation.translator is not None
        await self._pass(self._cut(), send, save, is_last=is_stream)
        if not self.has_started:
            await self._send(send, b"")

    async def _save(self, save: Save) -> None:
        """Save what has ended. If that takes too long, the client no longer waits for it; the exchange does."""
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task = loop.create_task(save())
        self.saves.add(task)
        task.add_done_callback(partial(self._saved, over))
        too_long = loop.call_later(self.hold.seconds, _let_go, over)
        try:
            await over  # a plain future: `asyncio.wait` takes 9 µs where this takes 5
        finally:
            too_long.cancel()
            self.held_seconds += time.perf_counter() - began
        if self.hold.seconds and not task.done():
            self.late += 1
            self.hold.late.follow(task)
            self.report_store("slow")

    def _saved(self, over: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        self.saves.discard(task)
        _let_go(over)

    async def settle(self) -> None:
        """Wait for active saves."""
        await asyncio.wait(self.saves)

    def report_store(self, word: str) -> None:
        """Report the store's status in the headers, unless they are already sent."""
        if not self.has_started:
            self.headers = with_store(self.headers, word)

    def _is_drained(self, size: int) -> bool:
        """Whether there is nothing more to read for the record. Counts what is kept of it."""
        self.disconnect.hold(self.bytes_read)
        self.drained_bytes += size
        is_unread = self.down.reader is None or self.down.reader.watch is None
        return is_unread or self.disconnect.is_over or self.drained_bytes > DRAIN_BYTES

    def _finish_headers(self, size: int) -> None:
        """Set the headers that depend on the whole answer."""
        if self.down.translation is not None and self.down.translation.findings:
            self.headers = with_findings(self.headers, [finding.rule for finding in self.down.translation.findings])
        if self.down.is_sized:
            self.headers = [pair for pair in self.headers if pair[0] != b"content-length"]
            self.headers.append((b"content-length", str(size).encode()))

    async def _send(self, send: Send, data: bytes, *, is_last: bool = False) -> None:
        """Send to the client, unless it has disconnected. The headers are sent with the first bytes: one write to the
        socket, not two."""
        if not self.has_started:
            headers, self.headers = self.headers, []
            self.has_started, self.started_at = True, time.perf_counter()
            if self.on_start is not None:
                self.on_start()
            await send({"type": "http.response.start", "status": self.response.status, "headers": headers})
        self.bytes_down += len(data)
        if (data or is_last) and not self.disconnect.has_left:
            await send({"type": "http.response.body", "body": data, "more_body": not is_last})


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)


def _words(problem: BaseException) -> str:
    if isinstance(problem, UpstreamCut):
        return CUT
    return problem.problem if isinstance(problem, DecodeError) else "it can't be told in this format"


# --- a client that disconnects: its answer may still be read for a while, for its record ------------------------------

ON_DISCONNECT, HAS_LEFT = "on_disconnect", False
"""The key under which our own server finds the callback for a disconnect, and its value if the client has already
disconnected. So an open stream needs no task that listens (2 kB)."""

LISTEN_AFTER_SECONDS = 0.05
"""For other servers. An exchange that ends earlier costs a timer (0.7 µs) instead of a cancelled task (5 µs). Nothing
is missed: the server also reports an earlier disconnect."""

DRAIN_SECONDS = 120.0
"""How long an exchange may continue without its client. A model's longest answers take a minute or two."""


def report_disconnect(scope: Scope) -> None:
    """Report that the client of this request has disconnected, now or when the exchange begins to listen."""
    leave = scope.get(ON_DISCONNECT)
    if leave is None:
        scope[ON_DISCONNECT] = HAS_LEFT
    else:
        leave()


class Disconnect(Struct, eq=False):
    """Listens for the client's disconnect, and ends the serving task when its time is over.

    An exchange whose provider has not begun to answer ends at once: `has_answer` says when it has. So does that of a
    client with too many abandoned requests.
    """

    seconds: float
    abandoned: Abandoned
    in_flight: InFlight
    owner: Owner = GATEWAY
    has_answer: bool = False
    has_left: bool = False
    is_over: bool = False
    _is_counted: bool = False
    _serving: asyncio.Task[Any] | None = None
    _scope: Scope | None = None
    _listening: asyncio.Task[None] | None = None
    _waiting: asyncio.TimerHandle | None = None
    _deadline: asyncio.TimerHandle | None = None

    def listen(self, scope: Scope, receive: Receive, owner: Owner) -> None:
        """Start after the whole request was read: the only remaining event of the client is its disconnect."""
        self._serving, self.owner = asyncio.current_task(), owner
        if ON_DISCONNECT not in scope:
            self._waiting = asyncio.get_running_loop().call_later(LISTEN_AFTER_SECONDS, self._begin, receive)
        elif scope[ON_DISCONNECT] is HAS_LEFT:
            self._leave()
        else:
            self._scope, scope[ON_DISCONNECT] = scope, self._leave

    def _begin(self, receive: Receive) -> None:
        self._listening = asyncio.ensure_future(self._listen(receive))

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._listening is not None:
            self._listening.cancel()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._scope is not None:
            self._scope[ON_DISCONNECT] = None
        if self.has_left:
            self.abandoned.release(self)
        if self._is_counted:
            self._is_counted = False
            self.in_flight.release(self.owner)

    def hold(self, size: int) -> None:
        """Note how much of the answer is kept; without a client, this is limited."""
        if self.has_left and not self.is_over:
            self.abandoned.hold(self, size)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.has_left = True
        self._is_counted = self.has_answer and self.seconds > 0 and self.in_flight.abandon(self.owner)
        seconds = self.seconds if self._is_counted else 0.0
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.give_up)

    def give_up(self) -> None:
        """Cancel the task and set a flag for code between two waits, because a cancellation can get lost."""
        self.is_over = True
        if self._serving is not None:
            self._serving.cancel()
