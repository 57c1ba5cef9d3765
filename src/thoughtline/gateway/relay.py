"""The way down: a response to the client as it comes, and a copy of it to the watch.

Bytes go on in the step that brought them. One thing is held: what tells the client that its turn is over waits until
the record of the turn is saved, for `hold_seconds` at most, so that whoever asks at once, hangs up there, or comes back
after a crash finds it. When the client goes away the response is read on for the record's sake, within bounds.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from thoughtline.errors import DecodeError
from thoughtline.gateway.asgi import Receive, Send
from thoughtline.gateway.encodings import Decompressor
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.watching import MAX_BYTES, StreamWatch, Watch

log = logging.getLogger(__name__)

MAX_WHOLE_BYTES = 32 * 2**20
"""A whole response is gathered before it goes on, up to here; what is larger goes on unread."""

DRAIN_SECONDS = 120.0
DRAIN_BYTES = 8 * 2**20
"""How long and how much is read for a client that has gone. A model's longest answers take a minute or two."""

Keep = Callable[[Watch], Coroutine[Any, Any, None]]
"""Saves the records of the turns that have ended."""


class Relay:
    """One response on its way down."""

    def __init__(
        self, response: UpstreamResponse, headers: Headers, watch: Watch | None, keep: Keep, hold_seconds: float
    ) -> None:
        self._response = response
        self._headers = headers
        self._watch = watch
        self._keep = keep
        self._hold_seconds = hold_seconds
        self._decompressor: Decompressor | None = None
        self._saving: set[asyncio.Task[None]] = set()
        self._is_gone = False
        self._deadline: asyncio.TimerHandle | None = None
        self.held_seconds = 0.0
        self.bytes_down = 0
        self.note = ""
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
        """A response that is one body: read, remembered, passed on."""
        pieces: list[bytes] = []
        size = 0
        try:
            while (piece := await self._response.read()) is not None:
                pieces.append(piece)
                size += len(piece)
                if size > MAX_WHOLE_BYTES:
                    self.note = "too large to remember"
                    await self._start(send)
                    await self._send_pieces(send, pieces)
                    return
        except UpstreamCut:
            await self._pass_cut(send, pieces)
            return
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._watch is not None:
            plain = self._plain(body)
            if plain is not None:
                self._watch.read_whole(plain)
            await self._hold()
        await self._start(send)
        self.bytes_down = len(body)
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def pass_read(self, send: Send, body: bytes, is_whole: bool) -> None:
        """A response whose beginning was read already; all of it if `is_whole`."""
        await self._start(send)
        if not is_whole:
            await self._send_pieces(send, [body])
            return
        self.bytes_down = len(body)
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def pass_stream(self, send: Send, receive: Receive) -> None:
        """A response that comes piece by piece."""
        await self._start(send)
        listening = asyncio.ensure_future(self._listen(receive, _current_task()))
        try:
            await self._pump(send)
        except UpstreamCut:
            self.note = "the upstream broke off"
            self._end_watch()
            await self._hold()  # and no end: the connection is closed in mid-air, as the upstream's was
        except asyncio.CancelledError:
            if not self._is_gone:
                raise
            self.note = "the client left; not read to the end"
            self._end_watch()
            await self._hold()
        finally:
            listening.cancel()
            if self._deadline is not None:
                self._deadline.cancel()

    async def _pump(self, send: Send) -> None:
        watch = self._watch if isinstance(self._watch, StreamWatch) else None
        read, drained = self._response.read, 0
        while (piece := await read()) is not None:
            if watch is not None and self._is_over(watch, piece):
                await self._hold()
            self.bytes_down += len(piece)
            if not self._is_gone:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                continue
            drained += len(piece)
            if drained > DRAIN_BYTES or watch is None or watch.problem is not None:
                self.note = "the client left; not read to the end"
                break
        self._end_watch()
        await self._hold()
        if not self._is_gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _is_over(self, watch: StreamWatch, piece: bytes) -> bool:
        if self._decompressor is None:
            return watch.feed(piece)
        plain = self._plain(piece)
        return plain is not None and watch.feed(plain)

    def _plain(self, piece: bytes) -> bytes | None:
        """What the watch reads: never a reason for the client not to get its bytes."""
        if self._decompressor is None:
            return piece
        try:
            return self._decompressor.feed(piece)
        except DecodeError as problem:
            self.note = problem.problem
            return None

    def _end_watch(self) -> None:
        if isinstance(self._watch, StreamWatch):
            self._watch.finish()

    async def _hold(self) -> None:
        """Save what has ended. What takes too long goes on behind the client's back."""
        if self._watch is None or not self._watch.has_news:
            return
        began = time.perf_counter()
        saving = asyncio.ensure_future(self._keep(self._watch))
        self._saving.add(saving)
        saving.add_done_callback(self._saved)
        await asyncio.wait((saving,), timeout=self._hold_seconds)
        self.held_seconds += time.perf_counter() - began

    def _saved(self, saving: asyncio.Task[None]) -> None:
        """A record that could not be made or kept is told, and is no business of the client's."""
        self._saving.discard(saving)
        problem = None if saving.cancelled() else saving.exception()
        if problem is not None:
            self.note = f"not remembered: {type(problem).__name__}"
            where = "".join(traceback.format_tb(problem.__traceback__)[-3:])  # its message might quote content
            log.error("a turn could not be remembered: %s\n%s", type(problem).__name__, where)

    async def settle(self) -> None:
        """Wait for what is still being saved."""
        if self._saving:
            await asyncio.wait(self._saving)

    async def _listen(self, receive: Receive, pumping: asyncio.Task[Any]) -> None:
        """Notice that the client goes away, and give the rest of the response a limited time."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        self._deadline = asyncio.get_running_loop().call_later(DRAIN_SECONDS, pumping.cancel)

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self._response.status, "headers": self._headers})

    async def _send_pieces(self, send: Send, pieces: list[bytes]) -> None:
        """A body that is too large to gather: what was read so far, then the rest as it comes."""
        for piece in pieces:
            self.bytes_down += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        try:
            while (more := await self._response.read()) is not None:
                self.bytes_down += len(more)
                await send({"type": "http.response.body", "body": more, "more_body": True})
        except UpstreamCut:
            self.note = "the upstream broke off"
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pass_cut(self, send: Send, pieces: list[bytes]) -> None:
        """What came before the upstream broke off; then the connection ends as it did."""
        self.note = "the upstream broke off"
        await self._start(send)
        for piece in pieces:
            self.bytes_down += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
