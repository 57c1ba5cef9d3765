"""From where to where an answer goes, and what is sealed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from thoughtline.providers import Dialect
from thoughtline.translation.calls import CallIds
from thoughtline.translation.envelopes import Opened, Place, Sealer
from thoughtline.translation.tools import NO_NAMES, ToolNames
from thoughtline.values.items import Item
from thoughtline.values.records import Key
from thoughtline.values.turns import FormatName, Provenance


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


class Way(NamedTuple):
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
