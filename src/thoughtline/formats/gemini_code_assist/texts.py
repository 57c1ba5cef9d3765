"""Where visible text stands: as Gemini has it, one level deeper."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.gemini_generate.texts import TEXTS as GENERATE
from thoughtline.formats.texts import Json, Reading, TextSpot, inner


def _deeper(spot: TextSpot) -> TextSpot:
    return spot._replace(path=("response", *spot.path), owner=("response", *spot.owner))


def _event(value: Json) -> Reading:
    read = GENERATE.event({**inner(value, "response"), **({"error": value["error"]} if "error" in value else {})})
    return Reading(tuple(map(_deeper, read.spots)), read.ended)


def _body(value: Json) -> Iterator[TextSpot]:
    return map(_deeper, GENERATE.body(inner(value, "response")))


TEXTS = GENERATE._replace(body=_body, event=_event)
