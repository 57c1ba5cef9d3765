"""Where visible text stands in the Messages API."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Texts, TextSpot, contents, inner


def _event(value: Json) -> Reading:
    match value.get("type"):
        case "content_block_start" if inner(value, "content_block").get("type") == "text":
            return _text(value, "content_block")
        case "content_block_delta" if inner(value, "delta").get("type") == "text_delta":
            return _text(value, "delta")
        case "content_block_stop":
            return Reading((), ((value.get("index", 0),),))
        case "message_stop" | "message_delta" | "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _text(value: Json, member: str) -> Reading:
    text = inner(value, member).get("text")
    return Reading((TextSpot((value.get("index", 0),), (member, "text"), text),)) if isinstance(text, str) else NOTHING


def _body(value: Json) -> Iterator[TextSpot]:
    return contents(value.get("content"), (), ("content",), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents)
