"""Streams: each partial response in an envelope of its own."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.gemini_code_assist.bodies import inside
from thoughtline.formats.gemini_generate import stream, stream_encoder
from thoughtline.formats.gemini_generate.stream import TEXTS as GENERATE
from thoughtline.formats.json_text import object_of
from thoughtline.formats.texts import Json, Reading, TextSpot, inner
from thoughtline.values.events import Event


class StreamDecoder(stream.StreamDecoder):
    """Bytes of a Code Assist stream in, events out."""

    def _take(self, payload: bytes, events: list[Event]) -> None:
        super()._take(bytes(inside(payload)), events)


class StreamEncoder(stream_encoder.StreamEncoder):
    """Events in, bytes of a Code Assist stream out."""

    def _answer(self, answer: bytes) -> bytes:
        return object_of([("response", answer)])


# --- where visible text stands ----------------------------------------------------------------------------------------
# As Gemini has it, one level deeper.


def _deeper(spot: TextSpot) -> TextSpot:
    return spot._replace(path=("response", *spot.path), owner=("response", *spot.owner))


def _event(value: Json) -> Reading:
    read = GENERATE.event({**inner(value, "response"), **({"error": value["error"]} if "error" in value else {})})
    return Reading(tuple(map(_deeper, read.spots)), read.ended)


def _body(value: Json) -> Iterator[TextSpot]:
    return map(_deeper, GENERATE.body(inner(value, "response")))


TEXTS = GENERATE._replace(body=_body, event=_event)
