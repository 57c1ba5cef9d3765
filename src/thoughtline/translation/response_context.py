"""From where to where an answer goes, and what is sealed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.translation.calls import CallIds
from thoughtline.translation.envelopes import Opened, Place, Sealer
from thoughtline.translation.tools import NO_NAMES, ToolNames
from thoughtline.values.items import Item, Seal, Text
from thoughtline.values.records import Key
from thoughtline.values.turns import Finish, FormatName, Provenance


class Held(NamedTuple):
    """An item for an envelope, and what was visible before it."""

    place: Place
    item: Item


class Sealing(NamedTuple):
    """What goes into an envelope beside the reasoning."""

    sealer: Sealer
    provenance: Provenance
    prefix: Key = Key("")
    created_at: float = 0.0

    def token(self, held: Sequence[Held]) -> str | None:
        if not held:
            return None
        items, places = tuple(one.item for one in held), tuple(one.place for one in held)
        return self.sealer.seal(Opened(self.provenance, items, places, self.prefix, self.created_at))


class ResponseContext(NamedTuple):
    """From where to where: formats and dialects, ids, names of tools, and what the client was told before.

    `name` is the answer's own, where the client may ask for it again by that; else it has the one its maker gave it.
    """

    source: FormatName
    source_dialect: Dialect
    to: FormatName
    dialect: Dialect
    ids: CallIds
    sealing: Sealing | None = None
    wants_usage: bool = True
    created: int = 0
    name: str = ""
    tools: ToolNames = NO_NAMES


def finish_for(context: ResponseContext, finish: Finish | None) -> Finish | None:
    """Why an answer ended, in words that the client's encoder makes its own."""
    source, to = FORMATS[context.source], FORMATS[context.to]
    if finish is None or "claude_finishes" in source.quirks & to.quirks:
        return finish
    if finish.reason == "error" and "no_failed_finish" in to.quirks:
        return Finish("stop", "")
    return Finish(finish.reason, "")


class Unsealed:
    """What waits for the next slot, for a client whose slots follow the words: Gemini's, on a call or at the end.

    Words with white space around them go along. Some clients trim what they resume, and a model may have bound its next
    thought to every blank. They go back with the reasoning of their turn: where that has none, nobody asks for them.
    """

    def __init__(self, context: ResponseContext) -> None:
        self._context = context
        self._has_calls = FORMATS[context.to].envelope_slot == "call"
        self._held: list[Held] = []
        self._has_reasoning = False

    def add(self, held: Sequence[Held]) -> None:
        self._held += held
        self._has_reasoning = self._has_reasoning or bool(held)

    def add_words(self, text: str, place: Place) -> None:
        if self._has_calls and text != text.strip() != "":
            self._held.append(Held(place, Text(text)))

    def sealed(self) -> Seal | None:
        """All of it in one envelope."""
        sealing = self._context.sealing
        if sealing is None or not self._has_reasoning:
            return None
        token, self._held = sealing.token(self._held), []
        return Seal(token, self._context.dialect.reasoning_format) if token else None
