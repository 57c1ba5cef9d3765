"""Thinking tags in an answer on its way to the client: taken out of its bytes, or lifted into its reasoning."""

from __future__ import annotations

from thoughtline.continuity.tagged_events import TaggedEvents, edit_body
from thoughtline.continuity.tagged_streams import TaggedStream, edits_in_place
from thoughtline.continuity.tags import TagMode
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import FormatName


class TaggedAnswer:
    """An answer of one format: whole, or as a stream."""

    def __init__(self, format: FormatName, mode: TagMode, dialect: Dialect, *, is_stream: bool) -> None:
        self._format = format
        self._mode: TagMode = mode
        self._dialect = dialect
        self._stream = _stream(format, mode, dialect) if is_stream else None

    def whole(self, body: bytes) -> bytes:
        """A body that can't be read goes on as it came."""
        try:
            return edit_body(self._format, body, self._mode, self._dialect)
        except DecodeError:
            return body

    def feed(self, data: bytes) -> bytes:
        return self._stream.feed(data) if self._stream is not None and data else data

    def finish(self) -> bytes:
        return self._stream.finish() if self._stream is not None else b""


def _stream(format: FormatName, mode: TagMode, dialect: Dialect) -> TaggedStream | _Rewritten:
    texts = FORMATS[format].texts
    if texts is not None and edits_in_place(texts, mode, is_stream=True):
        return TaggedStream(texts, mode, dialect)
    return _Rewritten(format, mode, dialect)


class _Rewritten:
    """A stream whose reasoning has events of its own, or whose frames are binary: read, changed, and written again."""

    def __init__(self, format: FormatName, mode: TagMode, dialect: Dialect) -> None:
        wire = FORMATS[format]
        self._decoder = wire.stream_decoder(dialect)
        self._encoder = wire.stream_encoder(dialect)
        self._events = TaggedEvents(mode, dialect.reasoning_format)
        self._gave_up = False

    def feed(self, data: bytes) -> bytes:
        if self._gave_up:
            return data
        try:
            events = self._decoder.feed(data)
        except DecodeError:
            self._gave_up = True
            return data
        told = [one for event in events for one in self._events.feed(event)]
        return b"".join(map(self._encoder.encode, told))

    def finish(self) -> bytes:
        if self._gave_up:
            return b""
        told = [one for event in self._decoder.finish() for one in self._events.feed(event)]
        return b"".join([*map(self._encoder.encode, [*told, *self._events.finish()]), self._encoder.finish()])
