"""Streams: each partial response in an envelope of its own."""

from __future__ import annotations

from thoughtline.formats.gemini_code_assist.bodies import inside
from thoughtline.formats.gemini_generate import stream, stream_encoder
from thoughtline.formats.json_text import object_of
from thoughtline.values.events import Event


class StreamDecoder(stream.StreamDecoder):
    """Bytes of a Code Assist stream in, events out."""

    def _take(self, payload: bytes, events: list[Event]) -> None:
        super()._take(bytes(inside(payload)), events)


class StreamEncoder(stream_encoder.StreamEncoder):
    """Events in, bytes of a Code Assist stream out."""

    def _answer(self, answer: bytes) -> bytes:
        return object_of([("response", answer)])
