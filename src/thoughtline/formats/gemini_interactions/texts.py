"""Where visible text stands in interactions."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Texts, TextSpot, contents, inner, objects


def _event(value: Json) -> Reading:
    key = (value.get("index", 0),)
    match value.get("event_type"):
        case "step.delta":
            delta = inner(value, "delta")
            is_text = delta.get("type") == "text" and isinstance(delta.get("text"), str)
            return Reading((TextSpot(key, ("delta", "text"), delta["text"], ("delta",)),)) if is_text else NOTHING
        case "step.stop":
            return Reading((), (key,))
        case "interaction.completed" | "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _body(value: Json) -> Iterator[TextSpot]:
    for at, step in objects(value.get("steps")):
        if step.get("type") == "model_output":
            yield from contents(step.get("content"), (at,), ("steps", at, "content"), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents)
