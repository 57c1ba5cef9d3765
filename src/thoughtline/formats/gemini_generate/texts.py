"""Where visible text stands in `generateContent`. What is signed is not: changed, it would not be what was signed."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import EventsOrArray
from thoughtline.formats.texts import EVERY, Json, Reading, Steps, Texts, TextSpot, inner, objects


def _event(value: Json) -> Reading:
    """A signed part is an item by itself, and so is a call: a text is over where one comes."""
    spots: list[TextSpot] = []
    ended: list[Steps] = [EVERY] if value.get("error") else []
    for at, candidate in objects(value.get("candidates")):
        key = (candidate.get("index", at),)
        spots += [spot._replace(key=key, is_whole=False) for spot in _spots(at, candidate)]
        parts = inner(candidate, "content").get("parts")
        is_over = any(not _is_text(part) for _, part in objects(parts)) or candidate.get("finishReason") is not None
        ended += [key] if is_over else []
    return Reading(tuple(spots), tuple(ended))


def _body(value: Json) -> Iterator[TextSpot]:
    for at, candidate in objects(value.get("candidates")):
        yield from _spots(at, candidate)


def _spots(at: int, candidate: Json) -> Iterator[TextSpot]:
    for place, part in objects(inner(candidate, "content").get("parts")):
        if _is_text(part):
            owner = ("candidates", at, "content", "parts", place)
            yield TextSpot((at, place), (*owner, "text"), part["text"], owner, is_whole=True)


def _is_text(part: Json) -> bool:
    is_sealed = part.get("thought") or part.get("thoughtSignature") or part.get("thought_signature")
    return isinstance(part.get("text"), str) and not is_sealed


TEXTS = Texts(_body, _event, EventsOrArray, flag="thought")
