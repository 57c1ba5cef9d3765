"""Which turns of a request are known: their records, of a store and of what a client brought along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from thoughtline.providers import Contract
from thoughtline.replay.chains import proven
from thoughtline.replay.keys import ModelStep, frame_of, walk
from thoughtline.replay.matching import match_merged, match_step
from thoughtline.replay.plans import Found, Match, Needs
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Transcript


class Known(NamedTuple):
    """A step of a request whose record is known."""

    step: ModelStep
    record: Record


def needs_of_all(transcript: Transcript, contract: Contract, identity: Identity) -> Needs:
    """What the planner needs, and the steps of a request to a provider that takes no reasoning too."""
    frame = frame_of(transcript) if contract.binds_prefix else b""
    return Needs(identity, *walk(transcript, identity, frame))


def known_steps(needed: Needs, found: Found) -> tuple[Known, ...]:
    """The steps of a request whose records were found, in their order."""
    used = set(proven(needed.steps, found, needed.identity))
    known: list[Known] = []
    for step in needed.steps:
        known += _known(step, found, needed.identity, used)
    return tuple(known)


def _known(step: ModelStep, found: Found, identity: Identity, used: set[str]) -> Iterator[Known]:
    match = match_step(step, found, identity, used)
    if isinstance(match, Match):
        used.add(match.record.id)
        yield Known(step, match.record)
        return
    merged = match_merged(step, found, identity, used)
    for record in merged:
        used.add(record.id)
        yield Known(step, record)
    if not merged:
        for part in step.parts:
            yield from _known(part, found, identity, used)


def with_opened(found: Found, records: tuple[Record, ...]) -> dict[Key, Sequence[Record]]:
    """What a store found, and what the client's envelopes held for turns that it did not find.

    The store's own record of a turn is the better one: it saw the turn to its end.
    """
    known: dict[Key, Sequence[Record]] = dict(found)
    for record in records:
        if not any(found.get(key) for key in record.keys[:1]):
            for key in record.keys:
                known[key] = (*known.get(key, ()), record)
    return known
