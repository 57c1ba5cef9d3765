"""The positions of visible text in a format's answers: a `Texts` for each format.

A text has a key: pieces with one key are one text. Unreadable content has no text and passes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from thoughtline.formats.framing import Framing
from thoughtline.formats.json_text import plain_value

Steps: TypeAlias = tuple[str | int, ...]
Json: TypeAlias = Any

EVERY: Steps = ()
"""In `ended`: everything open has ended."""


class TextSpot(NamedTuple):
    """A text or a piece of one: its position, its content, the object that contains it, and whether it is complete."""

    key: Steps
    path: Steps
    text: str
    owner: Steps = ()
    is_whole: bool = False


class Reading(NamedTuple):
    """The content of an event: texts in order, then the texts that have ended."""

    spots: tuple[TextSpot, ...] = ()
    ended: tuple[Steps, ...] = ()


NOTHING = Reading()


class Texts(NamedTuple):
    """The visible texts of a format: in a whole response, and in an event of its stream.

    Without a `framing` the bytes of a stream can't be changed in place. Reasoning can be placed next to text if the
    text's owner has a `member` for it, or a `flag` that turns the owner into reasoning; else it is an item of its own.
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
        """The texts of a whole response, each separately."""
        value = plain_value(body)
        return Reading(tuple(self.body(value))) if isinstance(value, dict) else NOTHING


def objects(value: Json) -> Iterator[tuple[int, dict[str, Json]]]:
    """The objects of a list, with their positions; nothing if it is no list."""
    for at, one in enumerate(value if isinstance(value, list) else ()):
        if isinstance(one, dict):
            yield at, one


def inner(value: Json, name: str) -> dict[str, Json]:
    """A member that is an object; an empty one otherwise."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def contents(content: Json, key: Steps, path: Steps, *, is_whole: bool = False) -> Iterator[TextSpot]:
    """Content that is a text, or a list of parts of which some are."""
    if isinstance(content, str):
        yield TextSpot(key, path, content, path[:-1], is_whole)
    for at, part in objects(content):
        if part.get("type") in ("text", "output_text") and isinstance(part.get("text"), str):
            yield TextSpot((*key, at) if is_whole else key, (*path, at, "text"), part["text"], path[:-1], is_whole)
