"""Where visible text stands in Ollama's API."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import JsonLines
from thoughtline.formats.texts import EVERY, Json, Reading, Texts, TextSpot, inner


def _event(value: Json) -> Reading:
    spots = tuple(spot._replace(is_whole=False) for spot in _body(value))
    return Reading(spots, (EVERY,) if value.get("done") or value.get("error") else ())


def _body(value: Json) -> Iterator[TextSpot]:
    content = inner(value, "message").get("content")
    if isinstance(content, str):
        yield TextSpot((0,), ("message", "content"), content, ("message",), is_whole=True)
    if isinstance(value.get("response"), str):
        yield TextSpot((1,), ("response",), value["response"], is_whole=True)


TEXTS = Texts(_body, _event, JsonLines, member="thinking")
