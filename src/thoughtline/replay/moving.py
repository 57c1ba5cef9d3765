"""Steps at another place than before: a client dropped the first turns of a conversation, or rewrote its opening.

A step that is settled by its call ids is the same step at any place, and what was sent for it is the same. Everything
else that is remembered of a conversation is computed again, from what each step adds to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.replay.keys import Standing, outline_after
from thoughtline.replay.plans import Past
from thoughtline.values.outcome import Counts, Evidence, TurnNote, chained
from thoughtline.values.records import UNKNOWN_PARENT, Key, RecordId, digest


class Movable(Struct, frozen=True, eq=False, gc=False):
    """What a step, and the messages after it, add to a conversation at any place.

    `names` are the keys of its calls; `record`, `parent` and `lineage` those of its record. `texts` is for the lineage,
    `outlined` for the outline. `note` counts its elements from here. `evidence` identifies the step if everything
    before it has changed. `was_in_loop` and `is_in_loop`: whether a tool loop was running before it, and is after it.
    """

    names: tuple[Key, ...]
    record: RecordId
    parent: RecordId
    lineage: bytes
    texts: tuple[bytes, ...]
    outlined: tuple[bytes, bytes, bytes, bytes]
    calls: tuple[str, ...]
    elements: int
    counts: dict[str, int]
    note: TurnNote | None
    evidence: Evidence
    carrier: str
    was_in_loop: bool
    is_in_loop: bool
    sample: bytes


def moved(
    steps: Sequence[Movable | None], start: Standing, elements: int, *, counts_loops: bool
) -> tuple[Standing, Past] | None:
    """Return the place in a conversation that begins with `elements` of no model turns, followed by these steps; None
    if one of them may belong to another conversation there. `counts_loops`: the request depends on tool loops."""
    spot, last = start.spot, start.spot.last
    lineage, parent, carrier, is_in_loop = spot.lineage, UNKNOWN_PARENT, "", False
    counts: dict[str, int] = {}
    notes: list[TurnNote] = []
    taken: set[RecordId] = set()
    step: Movable | None = None
    for step in steps:
        if step is None or step.record in taken:
            return None
        if parent and step.parent not in (UNKNOWN_PARENT, parent):
            return None
        if counts_loops and step.was_in_loop != is_in_loop:
            return None
        taken.add(step.record)
        parent, is_in_loop = step.record, step.is_in_loop
        own = digest(lineage + step.texts[0])
        lineage = own
        for text in step.texts[1:]:
            lineage = digest(lineage + text)
        last = (*last, *step.texts)[-3:]
        note = step.note
        if note is not None:
            why = "lineage" if own == step.lineage else step.evidence
            notes.append(TurnNote(note.at + elements, note.treatment, why, note.record))
        for name, count in step.counts.items():
            counts[name] = counts.get(name, 0) + count
        carrier = step.carrier or carrier
        elements += step.elements
    if step is None:
        return None
    spot = replace(spot, lineage=lineage, last=last, turns_since=len(step.texts) - 1, calls_before=step.calls)
    outline = outline_after(start.outline, [one.outlined for one in steps if one is not None])
    past = Past(
        elements,
        Counts(**counts),
        carrier=carrier,
        is_in_loop=is_in_loop,
        notes=chained(None, tuple(notes)),
        parent=parent,
    )
    return Standing(spot, outline), past
