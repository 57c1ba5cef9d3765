"""The way down: a response to the client as it comes, and a copy of it to the watch.

Bytes go on in the step that brought them. One thing is held: what tells the client that its turn is over waits until
the record of the turn is saved, for as long as a `Hold` says, so that whoever asks at once, hangs up there, or comes
back after a crash finds it. A hold that runs out is told. When the client goes away the response is read on for the
record's sake, within bounds.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from thoughtline.formats.weighing import is_light
from thoughtline.gateway.asgi import Message, Send
from thoughtline.gateway.departure import Departure
from thoughtline.gateway.edits import EditsAnswer
from thoughtline.gateway.encodings import Decompressor
from thoughtline.gateway.headers import Headers, with_store
from thoughtline.gateway.late_saves import Hold
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import DecodeError
from thoughtline.watching import MAX_BYTES, StreamWatch, Watch
from thoughtline.working import Work, at_once

log = logging.getLogger(__name__)

MAX_WHOLE_BYTES = 32 * 2**20
"""As much of a whole response as is kept until it can be read; what is larger goes on unread."""

DRAIN_BYTES = 8 * 2**20
"""How much is read for a client that has left."""

LONG_BYTES = 64 * 2**10
"""An event that is longer is read where it holds nobody up: images, and answers that are repeated at their end."""

_BRIEF_BYTES = 8 * 2**10
"""What is compressed and no longer than this is unpacked and read at once."""

Keep = Callable[[Watch], Coroutine[Any, Any, None]]
"""Saves the records of the turns that have ended."""


class Relay:
    """One response on its way down."""

    def __init__(
        self,
        response: UpstreamResponse,
        headers: Headers,
        watch: Watch | None,
        keep: Keep,
        hold: Hold,
        departure: Departure,
        edits: EditsAnswer | None = None,
        *,
        work: Work = at_once,
    ) -> None:
        self._response = response
        self._work = work
        self._edits = edits
        self._headers = headers
        self._watch = watch
        self._keep = keep
        self._most = hold
        self._departure = departure
        departure.has_answer = True
        self._decompressor: Decompressor | None = None
        self._saving: set[asyncio.Task[None]] = set()
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._drained_bytes = 0
        self.held_seconds = 0.0
        self.late = 0
        self.bytes_down = 0
        self.note = ""
        self.findings: tuple[Finding, ...] = ()
        self.has_started = False
        self._open_encoding()

    def _open_encoding(self) -> None:
        """What is compressed in a way that we can't undo is passed on unread."""
        encoding = self._response.header("content-encoding")
        if self._watch is None or encoding.lower() in ("", "identity"):
            return
        try:
            self._decompressor = Decompressor(encoding, MAX_BYTES)
        except DecodeError as problem:
            self._watch, self.note = None, problem.problem

    async def pass_whole(self, send: Send) -> None:
        """A response that is one body: it goes on as it comes, but for its last piece, which waits for the record.

        One that told its length is there, or about to be: its head waits for its first piece that goes on.
        """
        if self._edits is not None:
            await self._pass_edited(self._edits, send)
            return
        if not self._response.tells_length:
            await self._start(send)
        last = b""
        try:
            while (piece := await self._response.read()) is not None:
                self._gather(piece)
                if last:
                    await self._begin(send)
                    await self._send(send, last)
                last = piece
        except UpstreamCut:
            self.note = "the upstream broke off"
            await self._begin(send)
            await self._send(send, last)  # and no end: the connection is closed in mid-air, as the upstream's was
            return
        await self._read_gathered()
        await self._hold()
        await self._begin(send)
        await self._send(send, last, is_last=True)

    async def _begin(self, send: Send) -> None:
        """The head, if it has not gone yet: together with a body it is one write to the socket instead of two."""
        if not self.has_started:
            await self._start(send)

    async def _pass_edited(self, edits: EditsAnswer, send: Send) -> None:
        """A whole response that may lose its thinking tags: it goes on when all of it is there.

        One that can't be read, or is too large for that, goes on as it comes.
        """
        pieces: list[bytes] = []
        try:
            while self._watch is not None and (piece := await self._response.read()) is not None:
                pieces.append(piece)
                self._gather(piece)
        except UpstreamCut:
            self.note = "the upstream broke off"
            await self._start(send)
            await self._send_as_it_is(send, b"".join(pieces))
            return
        body = b"".join(pieces)
        if self._watch is None:
            self._edits = None
            await self.pass_read(send, body, is_whole=False)
            return
        await self._read_gathered()
        await self._hold()
        body = await self._work_for(body)(partial(edits.whole, body))
        self._headers = [pair for pair in self._headers if pair[0] != b"content-length"]
        self._headers.append((b"content-length", str(len(body)).encode()))
        await self._start(send)
        await self._send_as_it_is(send, body, is_last=True)

    async def pass_read(self, send: Send, body: bytes, is_whole: bool) -> None:
        """A response whose beginning was read already; all of it if `is_whole`."""
        await self._start(send)
        await self._send(send, body, is_last=is_whole)
        if not is_whole:
            await self._pass_rest(send)

    async def pass_stream(self, send: Send) -> None:
        """A response that comes piece by piece."""
        await self._start(send)
        await self._pass_rest(send)

    async def _pass_rest(self, send: Send) -> None:
        try:
            await self._pump(send)
        except UpstreamCut:
            self.note = "the upstream broke off"
            self._end_watch()
            await self._hold()  # and no end: the connection is closed in mid-air, as the upstream's was
        except asyncio.CancelledError:
            if not self._departure.has_left:
                raise
            self.note = "the client left; not read to the end"
            self._end_watch()
            await self._hold()

    async def _pump(self, send: Send) -> None:
        read = self._response.read
        while (piece := await read()) is not None:
            work = self._work if self._is_long(piece) else None
            is_over = self._is_over(piece) if work is None else await work(partial(self._is_over, piece))
            if is_over:
                await self._hold()
            message = self._message(piece) if work is None else await work(partial(self._message, piece))
            if message is not None:
                await send(message)
            elif self._departure.has_left and self._is_drained():
                self.note = "the client left; not read to the end"
                break
        self._end_watch()
        await self._hold()
        await self._send(send, b"", is_last=True)

    async def _send(self, send: Send, piece: bytes, *, is_last: bool = False) -> None:
        """On to the client, without thinking tags where that was asked for."""
        message = self._message(piece, is_last=is_last)
        if message is not None:
            await send(message)

    async def _send_as_it_is(self, send: Send, piece: bytes, *, is_last: bool = False) -> None:
        message = self._message_as_it_is(piece, is_last=is_last)
        if message is not None:
            await send(message)

    def _message(self, piece: bytes, *, is_last: bool = False) -> Message | None:
        if self._edits is not None:
            piece = self._edits.feed(piece) + (self._edits.finish() if is_last else b"")
        return self._message_as_it_is(piece, is_last=is_last)

    def _message_as_it_is(self, piece: bytes, *, is_last: bool) -> Message | None:
        """What is said to the client; nothing, if it has left."""
        self.bytes_down += len(piece)
        if self._departure.has_left:
            self._drained_bytes += len(piece)
            self._departure.hold(self.bytes_down)
            return None
        return {"type": "http.response.body", "body": piece, "more_body": not is_last} if piece or is_last else None

    def _is_drained(self) -> bool:
        """Whether there is nothing more to read for the record's sake."""
        watch = self._watch
        is_enough = self._departure.is_over or self._drained_bytes > DRAIN_BYTES
        return watch is None or watch.problem is not None or is_enough

    def _gather(self, piece: bytes) -> None:
        if self._watch is None:
            return
        self._gathered.append(piece)
        self._gathered_bytes += len(piece)
        self._departure.hold(self._gathered_bytes)
        if self._gathered_bytes > MAX_WHOLE_BYTES:
            self._watch, self._gathered, self.note = None, [], "too large to remember"

    async def _read_gathered(self) -> None:
        watch = self._watch
        if watch is not None:
            body = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
            await self._work_for(body)(partial(self._reading, lambda: watch.read_whole(self._plain(body))))

    def _work_for(self, body: bytes) -> Work:
        """How to do what takes as long as a body is."""
        is_quick = is_light(body) if self._decompressor is None else len(body) < _BRIEF_BYTES
        return at_once if is_quick else self._work

    def _is_long(self, piece: bytes) -> bool:
        """Whether a piece may end an event that takes long to read."""
        watch = self._watch
        return isinstance(watch, StreamWatch) and watch.unended_bytes + len(piece) > LONG_BYTES

    def _is_over(self, piece: bytes) -> bool:
        """Read on in a stream; whether a turn has ended in this piece."""
        watch = self._watch
        if not isinstance(watch, StreamWatch):
            return watch is not None and watch.has_news
        try:
            return watch.feed(piece if self._decompressor is None else self._decompressor.feed(piece))
        except Exception as problem:
            self._give_up(problem)
            return False

    def _plain(self, piece: bytes) -> bytes:
        return piece if self._decompressor is None else self._decompressor.feed(piece)

    def _end_watch(self) -> None:
        if isinstance(self._watch, StreamWatch):
            self._reading(self._watch.finish)

    def _reading(self, read: Callable[[], object]) -> None:
        """What the watch does with its copy is never a reason for the client not to get its bytes."""
        try:
            read()
        except Exception as problem:
            self._give_up(problem)

    def _give_up(self, problem: Exception) -> None:
        """A decoder's fault, whatever it is, stays here; if it is none that was foreseen, it is told."""
        if isinstance(problem, DecodeError):
            self._watch, self.note = None, problem.problem
        else:
            self._watch, self.note = None, f"not read: {type(problem).__name__}"
            tell("a response could not be read", problem)

    async def _hold(self) -> None:
        """Save what has ended. What takes too long goes on behind the client's back."""
        if self._watch is not None and self._watch.has_news:
            await self._hold_for(self._keep(self._watch))

    async def _hold_for(self, save: Coroutine[Any, Any, None]) -> None:
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        saving = loop.create_task(save)
        self._saving.add(saving)
        saving.add_done_callback(partial(self._saved, over))
        too_long = loop.call_later(self._most.seconds, _let_go, over)
        try:
            await over  # a plain future: `asyncio.wait` takes 9 µs where this takes 5
        finally:
            too_long.cancel()
            self.held_seconds += time.perf_counter() - began
        if self._most.seconds and not saving.done():
            self._tell_late(saving)

    def _tell_late(self, saving: asyncio.Task[None]) -> None:
        self.late += 1
        self._most.late.begin()
        saving.add_done_callback(lambda _: self._most.late.end())
        self.tell_store("slow")

    def tell_store(self, word: str) -> None:
        """How the store is, in the head of the answer, unless that has gone."""
        if not self.has_started:
            self._headers = with_store(self._headers, word)

    def _saved(self, over: asyncio.Future[None], saving: asyncio.Task[None]) -> None:
        """A record that could not be made or kept is told, and is no business of the client's."""
        self._saving.discard(saving)
        _let_go(over)
        problem = None if saving.cancelled() else saving.exception()
        if problem is not None:
            self.note = f"not remembered: {type(problem).__name__}"
            tell("a turn could not be remembered", problem)

    async def settle(self) -> None:
        """Wait for what is still being saved."""
        if self._saving:
            await asyncio.wait(self._saving)

    async def _start(self, send: Send) -> None:
        self.has_started = True
        await send({"type": "http.response.start", "status": self._response.status, "headers": self._headers})


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)


def tell(what: str, problem: BaseException) -> None:
    """Into the log, without the problem's own words: they might quote content."""
    where = "".join(traceback.format_tb(problem.__traceback__)[-3:])
    log.error("%s: %s\n%s", what, type(problem).__name__, where)
