"""The events of a stream, in values that all formats share.

    Started → (TextDelta | ReasoningDelta | CallDelta)* → Noted? → ItemDone* → UsageReported? → TurnDone

`choice` distinguishes the answers of an `n > 1` stream, `position` the items of one answer. Deltas are for forwarding a
stream, with the `item_id` that a Responses stream announced; `ItemDone` has each item complete, merged as its format
demands, with its JSON. Folding the `ItemDone`s of a stream gives the same turn as the whole response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Raw, Struct

from thoughtline.values.items import Item
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Turn, Usage


class Started(Struct, frozen=True, gc=False):
    """The first event of every stream with content. `created` is in seconds since the epoch, where it matters."""

    id: str | None = None
    model: str | None = None
    created: int = 0


class TextDelta(Struct, frozen=True, gc=False):
    """More text."""

    choice: int
    position: int
    text: str
    item_id: str | None = None


class ReasoningDelta(Struct, frozen=True, gc=False):
    """More thinking. `is_summary`: the provider shows a summary of it instead.

    `known` is everything known of it when another item begins, seals included, in formats that end their items last.
    """

    choice: int
    position: int
    text: str
    is_summary: bool = False
    known: tuple[Item, ...] = ()
    item_id: str | None = None


class CallDelta(Struct, frozen=True, gc=False):
    """More of a tool call: its id and name come with the first delta, its arguments in pieces."""

    choice: int
    position: int
    arguments: str
    id: str | None = None
    name: str | None = None
    is_custom: bool = False
    namespace: str | None = None
    item_id: str | None = None


class ItemDone(Struct, frozen=True, gc=False):
    """An item is complete. In a turn that was cut off, it has everything that arrived."""

    choice: int
    position: int
    item: Item


class Noted(Struct, frozen=True, gc=False):
    """All notes on a whole answer, with positions in its joined text. A later one replaces it."""

    choice: int
    notes: Notes


class UsageReported(Struct, frozen=True, gc=False):
    usage: Usage


class TurnDone(Struct, frozen=True, gc=False):
    """The turn is over. No `finish`: the stream was cut off before the provider sent one.

    `carriers` are as in `Turn`: the members that held the reasoning of the turn.
    """

    choice: int
    finish: Finish | None
    carriers: tuple[str, ...] = ()


class Failed(Struct, frozen=True, gc=False):
    """The provider reports an error in mid-stream."""

    error: Raw


class Other(Struct, frozen=True, gc=False):
    """An event without content for the turn (a ping), or an unknown one. Kept unchanged."""

    raw: Raw


Event: TypeAlias = (
    Started | TextDelta | ReasoningDelta | CallDelta | ItemDone | Noted | UsageReported | TurnDone | Failed | Other
)


def fold(events: Iterable[Event], format: FormatName) -> Reply:
    """The same reply as the whole response would give. A candidate without a finish was cut off."""
    started = Started()
    items: dict[int, list[Item]] = {}
    finishes: dict[int, Finish | None] = {}
    carriers: dict[int, tuple[str, ...]] = {}
    notes: dict[int, Notes] = {}
    usage: Usage | None = None
    error = None
    for event in events:
        match event:
            case ItemDone():
                items.setdefault(event.choice, []).append(event.item)
            case TurnDone():
                finishes[event.choice] = event.finish
                carriers[event.choice] = event.carriers
            case Noted():
                notes[event.choice] = event.notes
            case Started():
                started = event
            case UsageReported():
                usage = event.usage
            case Failed():
                error = event.error
            case _:
                pass
    candidates = tuple(
        Candidate(
            Turn("assistant", tuple(items.get(choice, ())), carriers=carriers.get(choice, ())),
            choice,
            finishes.get(choice),
            notes.get(choice, NO_NOTES),
        )
        for choice in sorted(items.keys() | finishes.keys())
    )
    return Reply(
        format, candidates, b"", id=started.id, model=started.model, usage=usage, error=error, created=started.created
    )
