"""Where visible text stands in what a format sends: a `Texts` beside each format says it.

A text is told by a key: pieces with one key are one text. What can't be read has no text: it passes as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from thoughtline.formats.framing import Framing
from thoughtline.formats.json_text import plain_value

Steps: TypeAlias = tuple[str | int, ...]
Json: TypeAlias = Any

EVERY: Steps = ()
"""In `ended`: whatever was open has ended."""


class TextSpot(NamedTuple):
    """A text, or more of one: where it stands, what it says, the object that it is part of, and whether it is all."""

    key: Steps
    path: Steps
    text: str
    owner: Steps = ()
    is_whole: bool = False


class Reading(NamedTuple):
    """What an event says: texts in their order, then which texts are over."""

    spots: tuple[TextSpot, ...] = ()
    ended: tuple[Steps, ...] = ()


NOTHING = Reading()


class Texts(NamedTuple):
    """The visible texts of a format: in a whole response, and in an event of its stream.

    Without a `framing` bytes of a stream can't be changed in place. Reasoning can stand beside text where there is a
    `member` for it in the text's owner, or where a `flag` makes reasoning of the owner; else it is an item of its own.
    """

    body: Callable[[Json], Iterable[TextSpot]]
    event: Callable[[Json], Reading] = lambda _: NOTHING
    framing: Callable[[], Framing] | None = None
    member: str = ""
    flag: str = ""

    @property
    def has_reasoning_beside(self) -> bool:
        return bool(self.member or self.flag)

    def read_event(self, payload: bytes) -> Reading:
        if payload.strip() == b"[DONE]":
            return Reading((), (EVERY,))
        value = plain_value(payload)
        return self.event(value) if isinstance(value, dict) else NOTHING

    def read_whole(self, body: bytes) -> Reading:
        """The texts of a whole response, each by itself."""
        value = plain_value(body)
        return Reading(tuple(self.body(value))) if isinstance(value, dict) else NOTHING


def objects(value: Json) -> Iterator[tuple[int, dict[str, Json]]]:
    """The objects of a list, with their places; nothing of what is no list."""
    for at, one in enumerate(value if isinstance(value, list) else ()):
        if isinstance(one, dict):
            yield at, one


def inner(value: Json, name: str) -> dict[str, Json]:
    """A member that is an object; an empty one if it is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def contents(content: Json, key: Steps, path: Steps, *, is_whole: bool = False) -> Iterator[TextSpot]:
    """Content that is a text, or a list of parts of which some are."""
    if isinstance(content, str):
        yield TextSpot(key, path, content, path[:-1], is_whole)
    for at, part in objects(content):
        if part.get("type") in ("text", "output_text") and isinstance(part.get("text"), str):
            yield TextSpot((*key, at) if is_whole else key, (*path, at, "text"), part["text"], path[:-1], is_whole)
