"""Findings as values: the rule, the place, the provider's answer and the remedy."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.formats import FORMATS
from thoughtline.providers.refusals import RuleCode
from thoughtline.values.turns import FormatName, Turn


class Finding(Struct, frozen=True, gc=False):
    """A problem, or what was done about it.

    `place` is a JSON pointer into the request, or names what an answer lost (`answer/notes`). `answer` is the
    provider's answer, word for word if known; empty if it would not object. `remedy` is for people.
    """

    rule: RuleCode
    place: str
    message: str
    remedy: str
    answer: str = ""
    status: int = 0


def place_of(format: FormatName, turn: Turn, item: int | None = None, field: str = "") -> str:
    """Return the place of a turn in its request, or of one of its items, or of a member."""
    wire = FORMATS[format]
    at = turn.at + (item or 0 if "items_are_elements" in wire.quirks else 0)
    place = f"{wire.list_place}/{at}"
    if wire.item_member and item is not None:
        place += f"/{wire.item_member}/{item}"
    return f"{place}/{field}" if field else place
