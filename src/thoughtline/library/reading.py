"""Reads a copy of an answer: bytes as they came, chunks that an SDK has decoded, or a whole body.

Our own faults stay here: the answer is then passed on unread.
"""

from __future__ import annotations

from thoughtline.engine.capture import MAX_BYTES, StreamWatch, Watch, log_problem
from thoughtline.engine.request import Prepared
from thoughtline.formats import FORMATS
from thoughtline.formats.encodings import Decompressor
from thoughtline.formats.framing import sse
from thoughtline.library.decoded import json_of
from thoughtline.values.errors import DecodeError
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import Record


class AnswerReader:
    """Reads an answer, streamed or whole. Each method returns whether a turn has ended that is not saved yet."""

    def __init__(self, prepared: Prepared, *, is_stream: bool, encoding: str = "") -> None:
        self._watch: Watch | None = StreamWatch(prepared) if is_stream else Watch(prepared)
        self._is_lines = FORMATS[prepared.destination.format].stream_type == b"application/x-ndjson"
        self._pieces: list[bytes] = []
        self._size = 0
        self._decompressor: Decompressor | None = None
        if encoding and encoding != "identity":
            try:
                self._decompressor = Decompressor(encoding, MAX_BYTES)
            except Exception as problem:
                self._stop(problem)

    def feed(self, data: bytes) -> bool:
        """Read bytes, cut anywhere."""
        watch = self._watch
        if watch is None:
            return False
        try:
            plain = self._decompressor.feed(data) if self._decompressor is not None else data
            if isinstance(watch, StreamWatch):
                watch.read(plain)
            else:
                self._keep(plain)
        except Exception as problem:
            self._stop(problem)
        return watch.has_news

    def hear(self, chunk: object) -> bool:
        """Read a chunk of a stream that is already decoded."""
        if self._watch is None:
            return False
        try:
            text = json_of(chunk)
        except Exception as problem:
            self._stop(problem)
            return False
        return self.feed(text + b"\n" if self._is_lines else sse(text))

    def end(self, *, is_cut: bool = False) -> bool:
        """End the answer. A truncated whole body can't be read."""
        watch = self._watch
        if watch is None:
            return False
        try:
            if isinstance(watch, StreamWatch):
                watch.finish()
            elif not is_cut and self._pieces:
                body, self._pieces = b"".join(self._pieces), []
                watch.read_whole(body)
        except Exception as problem:
            self._stop(problem)
        return watch.has_news

    def take(self, now: float, outcome: Outcome) -> tuple[Record, ...]:
        try:
            return self._watch.take(now, outcome) if self._watch is not None else ()
        except Exception as problem:
            self._stop(problem)
            return ()

    def _keep(self, plain: bytes) -> None:
        self._pieces.append(plain)
        self._size += len(plain)
        if self._size > MAX_BYTES:
            self._stop()

    def _stop(self, problem: Exception | None = None) -> None:
        if problem is not None and not isinstance(problem, DecodeError):
            log_problem("a response could not be read", problem)
        self._watch, self._pieces = None, []
