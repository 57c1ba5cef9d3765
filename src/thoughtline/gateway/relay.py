"""The pump: an answer to the client as it comes, through the stages that apply to it.

Bytes go on in the step that brought them. One thing is held: what tells the client that its turn is over waits until
the record of the turn is saved (`saving.py`: for so long at most), so that whoever asks at once, hangs up there, or
comes back after a crash finds it. When the client goes away the answer is read on for the record's sake, within bounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from thoughtline.gateway.asgi import Receive, Scope, Send
from thoughtline.gateway.headers import Headers, with_findings, with_store
from thoughtline.gateway.pieces import Piece
from thoughtline.gateway.pipeline import BRIEF_BYTES, LONG_BYTES, Down, ReadStream, ReadWhole
from thoughtline.gateway.recent import TokenCounts
from thoughtline.gateway.saving import Abandoned, Hold
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.values.errors import Declined, DecodeError, EncodeError
from thoughtline.watching import Watch, log_problem
from thoughtline.working import Work

DRAIN_BYTES = 8 * 2**20
"""How much is read for a client that has left."""

_CUT = "the upstream broke off"
_LEFT = "the client left; not read to the end"

Save = Callable[[], Coroutine[Any, Any, None]]
"""Saves the turns that have ended."""


class Relay:
    """One answer on its way down.

    `saves` are under way; `late` is how many were not waited for, `held_seconds` how long the others were.
    """

    def __init__(
        self,
        response: UpstreamResponse,
        headers: Headers,
        down: Down,
        *,
        hold: Hold,
        disconnect: Disconnect,
        work: Work,
    ) -> None:
        self._response = response
        self._headers = headers
        self._down = down
        self.translation = down.translation
        self._stages = down.stages
        self._disconnect = disconnect
        disconnect.has_answer = True
        self._work = work
        self._hold = hold
        self.saves: set[asyncio.Task[None]] = set()
        self._unsaved = ""
        self.held_seconds = 0.0
        self.late = 0
        self._bytes_read = 0
        self._drained_bytes = 0
        self.bytes_down = 0
        self.problem = ""
        self.has_started = False
        self.started_at = 0.0
        self.on_start: Callable[[], None] | None = None

    @property
    def note(self) -> str:
        """What went wrong, for the journal."""
        reader = self._down.reader
        return self._unsaved or self.problem or (reader.note if reader is not None else self._down.unread)

    @property
    def watch(self) -> Watch | None:
        """What has read the answer, as far as it could."""
        return self._down.reader.watch if self._down.reader is not None else None

    @property
    def tokens(self) -> TokenCounts | None:
        """As the provider counts them, if it has told."""
        reader = self._down.reader
        usage = reader.watch.usage if reader is not None and reader.watch is not None else None
        return None if usage is None else (usage.input, usage.output, usage.reasoning, usage.cached)

    async def run(self, send: Send, save: Save) -> None:
        """Pass the answer on to its end."""
        if self._down.starts_at_once:
            await self._send(send, b"")
        try:
            read, disconnect, reader, stages = self._response.read, self._disconnect, self._down.reader, self._stages
            while (data := await read()) is not None:
                piece, size = Piece(data, plain=data), len(data)
                if reader is not None and size > reader.brief_bytes:
                    await self._work(partial(self._feed, piece))
                else:
                    for stage in stages:
                        stage.feed(piece)
                self._bytes_read += size
                if piece.ending or piece.ends_turn or (piece.data and not self.has_started):
                    await self._pass(piece, send, save)
                elif piece.data:
                    self.bytes_down += len(piece.data)
                    if not disconnect.has_left:
                        await send({"type": "http.response.body", "body": piece.data, "more_body": True})
                if disconnect.has_left and self._is_drained(size):
                    self.problem = _LEFT
                    break
            await self._finish(send, save)
        except (UpstreamCut, DecodeError, EncodeError, asyncio.CancelledError) as problem:
            if not await self._break_off(problem, send, save):
                raise

    async def pass_read(self, send: Send, body: bytes, is_whole: bool) -> None:
        """An error whose beginning was read already; all of it if `is_whole`."""
        await self._send(send, body, is_last=is_whole)
        try:
            while not is_whole and (data := await self._response.read()) is not None:
                await self._send(send, data)
        except UpstreamCut:
            self.problem = _CUT
            return
        if not is_whole:
            await self._send(send, b"", is_last=True)

    async def _finish(self, send: Send, save: Save) -> None:
        """All of it was there."""
        piece, reader = Piece(b""), self._down.reader
        if self._bytes_read > BRIEF_BYTES and reader is not None and self._is_long_at_end(reader):
            await self._work(partial(self._end, piece))
        else:
            for stage in self._stages:
                stage.end(piece)
        await self._pass(piece, send, save, is_last=True)

    def _is_long_at_end(self, reader: ReadStream | ReadWhole) -> bool:
        return reader.is_long_at_end() or (self._down.is_sized and self._bytes_read > LONG_BYTES)

    def _feed(self, piece: Piece) -> None:
        for stage in self._stages:
            stage.feed(piece)

    def _end(self, piece: Piece) -> None:
        for stage in self._stages:
            stage.end(piece)

    def _cut(self) -> Piece:
        piece = Piece(b"")
        for stage in self._stages:
            stage.cut(piece, self.problem)
        return piece

    async def _pass(self, piece: Piece, send: Send, save: Save, *, is_last: bool = False) -> None:
        """What is said at once; then, when the turn is saved, that it is over."""
        if piece.data:
            await self._send(send, piece.data)
        reader, translation = self._down.reader, self.translation
        has_ended = reader is not None and reader.watch is not None and reader.watch.has_news
        if has_ended or (translation is not None and translation.answer):
            await self._save(save)
        if is_last and not self.has_started and (translation is not None or self._down.is_sized):
            self._finish_headers(len(piece.ending))
        if piece.ending or is_last:
            await self._send(send, piece.ending, is_last=is_last)

    async def _break_off(self, problem: BaseException, send: Send, save: Save) -> bool:
        """In an answer that is written anew the client is told; else its connection ends in mid-air, as ours did.

        Whether that is all there is to do: not if it is somebody else's to decide.
        """
        is_rewritten = self.translation is not None
        if isinstance(problem, asyncio.CancelledError):
            if not self._disconnect.has_left or not self.has_started or is_rewritten:
                return False
            self.problem = _LEFT
            await self._pass(self._cut(), send, save)
            return True
        if not self.has_started:
            if not isinstance(problem, UpstreamCut):
                return False
            if is_rewritten:
                told = "The provider broke off in the middle of its answer."
                raise Declined(502, "upstream_failed", told, "Send the request again.")
        self.problem = _words(problem)
        await self._pass(self._cut(), send, save, is_last=is_rewritten)
        if not self.has_started:
            await self._send(send, b"")
        return True

    async def _save(self, save: Save) -> None:
        """Save what has ended. What takes too long goes on behind the client's back."""
        if self._hold.is_brief:
            try:
                await save()
            except Exception as problem:
                self._note_unsaved(problem)
            return
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task = loop.create_task(save())
        self.saves.add(task)
        task.add_done_callback(partial(self._saved, over))
        too_long = loop.call_later(self._hold.seconds, _let_go, over)
        try:
            await over  # a plain future: `asyncio.wait` takes 9 µs where this takes 5
        finally:
            too_long.cancel()
            self.held_seconds += time.perf_counter() - began
        if self._hold.seconds and not task.done():
            self.late += 1
            self._hold.late.follow(task)
            self.tell_store("slow")

    def _saved(self, over: asyncio.Future[None], task: asyncio.Task[None]) -> None:
        self.saves.discard(task)
        _let_go(over)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self._note_unsaved(problem)

    def _note_unsaved(self, problem: BaseException) -> None:
        """A record that could not be made or kept is logged, and is no business of the client's."""
        self._unsaved = f"not remembered: {type(problem).__name__}"
        log_problem("a turn could not be remembered", problem)

    async def settle(self) -> None:
        """Wait for what is still being saved."""
        await asyncio.wait(self.saves)

    def tell_store(self, word: str) -> None:
        """How the store is, in the head of the answer, unless that has gone."""
        if not self.has_started:
            self._headers = with_store(self._headers, word)

    def _is_drained(self, size: int) -> bool:
        """Whether there is nothing more to read for the record's sake. What is kept of it is counted."""
        self._disconnect.hold(self._bytes_read)
        self._drained_bytes += size
        is_unread = self._down.reader is None or self._down.reader.watch is None
        return is_unread or self._disconnect.is_over or self._drained_bytes > DRAIN_BYTES

    def _finish_headers(self, size: int) -> None:
        """What is known of an answer only when all of it is there."""
        if self.translation is not None and self.translation.findings:
            self._headers = with_findings(self._headers, [finding.rule for finding in self.translation.findings])
        if self._down.is_sized:
            self._headers = [pair for pair in self._headers if pair[0] != b"content-length"]
            self._headers.append((b"content-length", str(size).encode()))

    async def _send(self, send: Send, data: bytes, *, is_last: bool = False) -> None:
        """To the client, unless it has left. The head goes with the first bytes: one write to the socket, not two."""
        if not self.has_started:
            headers, self._headers = self._headers, []
            self.has_started, self.started_at = True, time.perf_counter()
            if self.on_start is not None:
                self.on_start()
            await send({"type": "http.response.start", "status": self._response.status, "headers": headers})
        self.bytes_down += len(data)
        if (data or is_last) and not self._disconnect.has_left:
            await send({"type": "http.response.body", "body": data, "more_body": not is_last})


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)


def _words(problem: BaseException) -> str:
    if isinstance(problem, UpstreamCut):
        return _CUT
    return problem.problem if isinstance(problem, DecodeError) else "it can't be told in this format"


# --- a client that leaves: it may still be served for a while, for its record's sake ----------------------------------

ON_DISCONNECT, HAS_LEFT = "on_disconnect", False
"""Where our own server is told whom to call when a client leaves; and what stands there when it has already left. An
open stream needs no task that listens (2 kB) then."""

LISTEN_AFTER_SECONDS = 0.05
"""For other servers. An exchange that is over by then has cost a timer (0.7 µs) instead of a task that is cancelled
(5 µs). Nothing is missed: the server tells whoever asks later, too, that a client has left."""

DRAIN_SECONDS = 120.0
"""How long an exchange may go on without its client. A model's longest answers take a minute or two."""


def tell_disconnect(scope: Scope) -> None:
    """The client of this request has left: whoever serves it hears of it, now or when it begins to listen."""
    leave = scope.get(ON_DISCONNECT)
    if leave is None:
        scope[ON_DISCONNECT] = HAS_LEFT
    else:
        leave()


class Disconnect:
    """Listens for the client's leaving, and ends the task that serves it when its time is over.

    Who leaves before the provider has begun to answer is not waited for: `has_answer` says when it has.
    """

    def __init__(self, seconds: float, abandoned: Abandoned) -> None:
        self._seconds = seconds
        self._abandoned = abandoned
        self._serving: asyncio.Task[Any] | None = None
        self._scope: Scope | None = None
        self.has_answer = False
        self._listening: asyncio.Task[None] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.has_left = False
        self.is_over = False

    def listen(self, scope: Scope, receive: Receive) -> None:
        """From when the whole request was read: all that can still be heard of the client is that it leaves."""
        self._serving = asyncio.current_task()
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
            self._abandoned.release(self)

    def hold(self, size: int) -> None:
        """So much of the answer is kept by now; without a client that is counted."""
        if self.has_left and not self.is_over:
            self._abandoned.hold(self, size)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.has_left = True
        seconds = self._seconds if self.has_answer else 0.0
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.give_up)

    def give_up(self) -> None:
        """For who waits, and for who is between two waits: a cancellation can be lost in what is awaited."""
        self.is_over = True
        if self._serving is not None:
            self._serving.cancel()
