"""Where visible text stands in Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.texts import EVERY, Json, Reading, Steps, Texts, TextSpot, contents, inner, objects


def _event(value: Json) -> Reading:
    spots: list[TextSpot] = []
    ended: list[Steps] = []
    for at, choice in objects(value.get("choices")):
        key = (choice.get("index", at),)
        spots += contents(inner(choice, "delta").get("content"), key, ("choices", at, "delta", "content"))
        ended += [key] if choice.get("finish_reason") is not None else []
    return Reading(tuple(spots), (*ended, EVERY) if value.get("error") else tuple(ended))


def _body(value: Json) -> Iterator[TextSpot]:
    for at, choice in objects(value.get("choices")):
        content = inner(choice, "message").get("content")
        yield from contents(content, (at,), ("choices", at, "message", "content"), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents, member="reasoning_content")
