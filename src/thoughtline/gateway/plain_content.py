"""Chat answers for clients that expect `content` to be text: parts are joined, reasoning goes to `reasoning_content`.

    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": T}]}, {"type": "text", "text": S}]}
    {"content": S, "reasoning_content": T}

Mistral's answers are such lists. Works on whole bodies, and on streams event by event; all other bytes stay the same.
What such a client sends back is converted to the provider's own shape by the plan, like any other reasoning.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.destinations.catalogue import ContentWord
from thoughtline.formats.framing import EditedStream, Frame, ServerSentEvents
from thoughtline.formats.json_text import NULL, encode, is_array, is_given, members, replace_at, set_members

HEADER = b"x-thoughtline-content"
"""`native` or `plain`; any other value is ignored."""


def is_plain(header: bytes, *settings: ContentWord | None) -> bool:
    """Whether an answer gets plain content: by its request, or else the first of the settings that has a value."""
    for word in (header.strip().lower().decode("latin-1"), *settings):
        if word in ("native", "plain"):
            return word == "plain"
    return False


class _Choice(Struct, gc=False):
    message: Raw = NULL
    delta: Raw = NULL


class _Choices(Struct, gc=False):
    choices: list[_Choice] = []


class _Part(Struct, gc=False):
    text: str = ""
    thinking: str | list[Raw] = ""


_choices = msgspec.json.Decoder(_Choices)
_part = msgspec.json.Decoder(_Part)
_parts = msgspec.json.Decoder(list[Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def plain(payload: bytes) -> bytes:
    """Return a body or a chunk without lists in `content`; the same object if it can't be read, or has none."""
    try:
        choices = _choices.decode(payload).choices
        for number, choice in enumerate(choices):
            for name, message in (("message", choice.message), ("delta", choice.delta)):
                if is_given(message) and is_array(members(message).get("content", NULL)):
                    payload = replace_at(payload, ("choices", number, name), _plain_message(message))
    except _UNREADABLE:
        return payload
    return payload


def _plain_message(message: Raw) -> bytes:
    text, thought = _read(_parts.decode(members(message)["content"]))
    changes = [("content", encode(text)), *([("reasoning_content", encode(thought))] if thought else [])]
    return set_members(message, changes)


def _read(parts: list[Raw]) -> tuple[str, str]:
    """Return the text and the reasoning of a list of parts. Parts of other kinds have neither."""
    texts, thoughts = [], []
    for raw in parts:
        try:
            part = _part.decode(raw)
        except msgspec.ValidationError:
            continue
        texts.append(part.text)
        thoughts.append(part.thinking if isinstance(part.thinking, str) else "".join(_read(part.thinking)))
    return "".join(texts), "".join(thoughts)


class PlainContent(EditedStream):
    """Converts an answer for such a client."""

    def __init__(self) -> None:
        super().__init__(ServerSentEvents())

    def _edit(self, frame: Frame) -> bytes:
        payload = plain(frame.payload) if frame.payload else frame.payload
        return frame.raw if payload is frame.payload else frame.with_payload(payload)
