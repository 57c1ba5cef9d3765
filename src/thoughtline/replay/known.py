"""Finds the known turns of a request: their records, from a store or from the client itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from thoughtline.providers import Contract
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.chains import Result, Split, chain_of, records_of
from thoughtline.replay.keys import ModelStep, walk
from thoughtline.replay.plans import Found, Needs
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Transcript


class Known(NamedTuple):
    """A step of a request with its record."""

    step: ModelStep
    record: Record


def needs_of_all(transcript: Transcript, contract: Contract, identity: Identity) -> Needs:
    """Return the planner's needs, and also the steps of a request to a provider that accepts no reasoning."""
    bound = bound_of(transcript) if contract.binds_prefix else b""
    return Needs(identity, *walk(transcript, identity, bound))


def known_steps(needed: Needs, found: Found) -> tuple[Known, ...]:
    """Return the steps of a request whose records were found, in order."""
    results = zip(needed.steps, chain_of(needed, found), strict=True)
    return tuple(known for step, result in results for known in _known(step, result))


def _known(step: ModelStep, result: Result) -> Iterator[Known]:
    if isinstance(result, Split):
        for part, own in zip(step.parts, result.parts, strict=True):
            yield from _known(part, own)
    else:
        yield from (Known(step, record) for record in records_of(result))


def with_opened(found: Found, records: tuple[Record, ...]) -> dict[Key, Sequence[Record]]:
    """Merge a store's records with those from the client's envelopes for turns that it did not find.

    The store's own record of a turn is better: it saw the turn's end.
    """
    known: dict[Key, Sequence[Record]] = dict(found)
    for record in records:
        if not any(found.get(key) for key in record.keys[:1]):
            for key in record.keys:
                known[key] = (*known.get(key, ()), record)
    return known
