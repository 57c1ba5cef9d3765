"""The item of an answer that is being said to the client."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from thoughtline.translation.response_context import Held
from thoughtline.values.events import CallDelta
from thoughtline.values.notes import Notes

OpenKind: TypeAlias = Literal["text", "reasoning", "call"]


class OpenItem:
    """What was said of it so far. `source` is its position at the upstream, `position` that for the client."""

    def __init__(self, kind: OpenKind, source: int, position: int) -> None:
        self.kind = kind
        self.source = source
        self.position = position
        self.pieces: list[str] = []
        self.call = CallDelta(0, 0, "")
        self.held: list[Held] = []
        self.notes: list[Notes] = []
        self.base = 0
        self.is_summary = False
        self.is_told = False
        self.is_done = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def rest_of(whole: str, sent: str) -> str:
    """What the deltas of an item left out."""
    return whole[len(sent) :] if whole.startswith(sent) else ""


def gathered(deltas: list[CallDelta]) -> CallDelta:
    """A call that waited, as one delta."""
    arguments = "".join(delta.arguments for delta in deltas)
    known = next((delta.id for delta in deltas if delta.id), None)
    name = next((delta.name for delta in deltas if delta.name), "")
    return replace(deltas[0], arguments=arguments, id=known, name=name)
