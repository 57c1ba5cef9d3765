"""What is read of an answer, beside whoever it is for: bytes as they came, chunks that an SDK has decoded, or a body.

A fault of ours stays here: the answer then goes on unread.
"""

from __future__ import annotations

from collections.abc import Callable

from thoughtline.encodings import Decompressor
from thoughtline.formats import FORMATS
from thoughtline.formats.framing import sse
from thoughtline.line.decoded import json_of
from thoughtline.prepared import Prepared
from thoughtline.values.errors import DecodeError
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import Record
from thoughtline.watching import MAX_BYTES, StreamWatch, Watch, log_problem


class AnswerReader:
    """An answer, streamed or whole. Each way in says whether a turn has ended that is not saved yet."""

    def __init__(self, prepared: Prepared, *, is_stream: bool, encoding: str = "") -> None:
        self.is_stream = is_stream
        self._watch: Watch | None = StreamWatch(prepared) if is_stream else Watch(prepared)
        self._is_lines = FORMATS[prepared.destination.format].stream_type == b"application/x-ndjson"
        self._pieces: list[bytes] = []
        self._size = 0
        self._decompressor: Decompressor | None = None
        if encoding and encoding != "identity":
            self._guarded(lambda watch: self._unpack_as(encoding))

    def feed(self, data: bytes) -> bool:
        """Bytes as they came, cut anywhere."""
        return self._guarded(lambda watch: self._feed(watch, data))

    def hear(self, chunk: object) -> bool:
        """A chunk of a stream that was decoded already."""
        return self._guarded(lambda watch: self._feed(watch, self._framed(json_of(chunk))))

    def end(self, *, is_cut: bool = False) -> bool:
        """Nothing more comes. Of a body that is cut nothing can be read."""
        return self._guarded(lambda watch: self._end(watch, is_cut=is_cut))

    def take(self, now: float, outcome: Outcome) -> tuple[Record, ...]:
        records: list[Record] = []
        self._guarded(lambda watch: records.extend(watch.take(now, outcome)))
        return tuple(records)

    def _framed(self, text: bytes) -> bytes:
        return text + b"\n" if self._is_lines else sse(text)

    def _unpack_as(self, encoding: str) -> None:
        self._decompressor = Decompressor(encoding, MAX_BYTES)

    def _feed(self, watch: Watch, data: bytes) -> None:
        plain = self._decompressor.feed(data) if self._decompressor is not None else data
        if isinstance(watch, StreamWatch):
            watch.read(plain)
            return
        self._pieces.append(plain)
        self._size += len(plain)
        if self._size > MAX_BYTES:
            self._stop()

    def _end(self, watch: Watch, *, is_cut: bool) -> None:
        if isinstance(watch, StreamWatch):
            watch.finish()
        elif not is_cut and self._pieces:
            body, self._pieces = b"".join(self._pieces), []
            watch.read_whole(body)

    def _guarded(self, do: Callable[[Watch], object]) -> bool:
        watch = self._watch
        if watch is None:
            return False
        try:
            do(watch)
        except DecodeError:
            self._stop()
        except Exception as problem:
            log_problem("a response could not be read", problem)
            self._stop()
        return watch.has_news

    def _stop(self) -> None:
        self._watch, self._pieces = None, []
