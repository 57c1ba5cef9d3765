"""From what a stream said to the turn it amounts to."""

from __future__ import annotations

from collections.abc import Iterable

from thoughtline.events import Event, Failed, ItemDone, Started, TurnDone, UsageReported
from thoughtline.items import Item
from thoughtline.turns import Candidate, Finish, FormatName, Reply, Turn, Usage


def fold(events: Iterable[Event], format: FormatName) -> Reply:
    """The reply that the whole response would have given. A candidate without a finish was cut short."""
    started = Started()
    items: dict[int, list[Item]] = {}
    finishes: dict[int, Finish | None] = {}
    usage: Usage | None = None
    error = None
    for event in events:
        match event:
            case ItemDone():
                items.setdefault(event.choice, []).append(event.item)
            case TurnDone():
                finishes[event.choice] = event.finish
            case Started():
                started = event
            case UsageReported():
                usage = event.usage
            case Failed():
                error = event.error
            case _:
                pass
    candidates = tuple(
        Candidate(Turn("assistant", tuple(items.get(choice, ()))), choice, finishes.get(choice))
        for choice in sorted(items.keys() | finishes.keys())
    )
    return Reply(format, candidates, b"", started.id, started.model, usage, error)
