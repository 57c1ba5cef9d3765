"""Where visible text stands in the Responses API: in deltas, and again in all that repeats them."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Steps, Texts, TextSpot, contents, inner, objects


def _event(value: Json) -> Reading:
    key = (value.get("output_index", 0), value.get("content_index", 0))
    match value.get("type"):
        case "response.output_text.delta" if isinstance(value.get("delta"), str):
            return Reading((TextSpot(key, ("delta",), value["delta"]),))
        case "response.output_text.done" if isinstance(value.get("text"), str):
            return Reading((TextSpot((*key, "done"), ("text",), value["text"], is_whole=True),), (key,))
        case "response.content_part.done":
            part = inner(value, "part")
            is_text = part.get("type") == "output_text" and isinstance(part.get("text"), str)
            done = (TextSpot((*key, "part"), ("part", "text"), part["text"], is_whole=True),) if is_text else ()
            return Reading(done, (key,))
        case "response.output_item.done":
            return Reading(tuple(_element(inner(value, "item"), ("item",))), (EVERY,))
        case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
            return Reading(tuple(_output(inner(value, "response"), ("response",))), (EVERY,))
        case "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _output(response: Json, path: Steps = ()) -> Iterator[TextSpot]:
    for at, element in objects(response.get("output")):
        yield from _element(element, (*path, "output", at))


def _element(element: Json, path: Steps) -> Iterator[TextSpot]:
    if element.get("type") == "message":
        yield from contents(element.get("content"), (*path, "final"), (*path, "content"), is_whole=True)


TEXTS = Texts(_output, _event, ServerSentEvents)
