"""From what a response said to what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from thoughtline.replay.keys import Spot, frame_of, walk
from thoughtline.replay.weaving import is_filler
from thoughtline.values.digests import digest
from thoughtline.values.events import Event, Failed, ItemDone, Noted, Started, TurnDone, UsageReported
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import Record, RecordId, encode_record
from thoughtline.values.turns import Candidate, Finish, FormatName, Provenance, Reply, Transcript, Turn, Usage


def fold(events: Iterable[Event], format: FormatName) -> Reply:
    """The reply that the whole response would have given. A candidate without a finish was cut short."""
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


def capture(
    request: Transcript,
    reply: Reply,
    provenance: Provenance,
    now: float,
    spot: Spot | None = None,
    outcome: Outcome | None = None,
) -> tuple[Record, ...]:
    """What to remember of a reply to a request. `spot` is the `end` of what was needed to plan it, if it was planned:
    it knows what stands around a conversation only where thinking is bound to it."""
    return captured_at(spot or end_of(request, Identity(provenance.tenant)), reply, provenance, now, outcome)


def end_of(request: Transcript, identity: Identity) -> Spot:
    """Where the reply to a request will stand."""
    return walk(request, identity, frame_of(request)).end


def captured_at(
    spot: Spot, reply: Reply, provenance: Provenance, now: float, outcome: Outcome | None = None
) -> tuple[Record, ...]:
    """What to remember of a reply: one record for each answer that shows anything. A failed reply leaves nothing.

    A turn without reasoning is remembered too: as the fact that it had none. `spot` is where the reply stands,
    `outcome` what was done to its request.
    """
    identity = Identity(provenance.tenant, provenance.named_session, provenance.agent)
    records = []
    for candidate in reply.candidates:
        turn, finish = candidate.turn, candidate.finish
        items: list[Item] = []
        for item in turn.items:
            if not is_filler(item):  # without the body that it is a view of
                items.append(replace(item, raw=item.raw.copy()) if item.raw else item)
        keys = spot.keys(items, identity)
        if keys:
            keys = tuple(dict.fromkeys((*keys, spot.prefix()) if spot.frame else keys))
            made = replace(provenance, carrier=turn.carriers[0]) if turn.carriers else provenance
            record = Record(RecordId(""), made, tuple(items), keys=keys, created_at=0.0, is_complete=finish is not None)
            # The same turn captured twice is the same record, whenever that was.
            name = RecordId(digest(encode_record(record)).hex())
            told = replace(outcome, finish=finish.reason) if outcome and finish else outcome
            records.append(replace(record, id=name, created_at=now, outcome=told))
    return tuple(records)
