"""Splits a processed request into segments that can be cached.

A step is cached if its lineage settled it, or no store has any record of it, and if nothing planned for it or before it
depends on later turns.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import element_spans
from thoughtline.formats.weighing import weight_of
from thoughtline.providers import Dialect
from thoughtline.providers.contract import is_said_by_user
from thoughtline.replay.chains import follow_each_other, is_plain, settled_of
from thoughtline.replay.keys import ModelStep, outlined
from thoughtline.replay.matching import evidence_of_names, is_exact
from thoughtline.replay.moving import Movable
from thoughtline.replay.plans import NO_PAST, Found, Match, Needs, Past, Trace, keys_of, match_by_lineage
from thoughtline.replay.remembering import Lookup, Lookups, Segment, Span, list_span, sample_of, size_of
from thoughtline.values.items import reasoning_of
from thoughtline.values.outcome import Counts, chained
from thoughtline.values.records import NO_PARENT, UNCERTAIN_PARENT, is_lineage
from thoughtline.values.turns import Transcript

T = TypeVar("T")


class Worked(NamedTuple):
    """A processed request, or the end of one: the input, with its list at `listed`, and the result."""

    transcript: Transcript
    needed: Needs
    found: Found
    trace: Trace
    sent: bytes
    dialect: Dialect
    listed: Span
    past: Past = NO_PAST
    head: bytes = b""
    elements: int = 0
    is_bound: bool = False


def settles_all(needed: Needs, found: Found, past: Past = NO_PAST, before: Iterable[Segment] = ()) -> bool:
    """Whether every step is settled by its lineage or its call ids, or stays without a record whatever its neighbours
    are: then neighbours need not be compared. `before` are the segments before."""
    settled, steps = settled_of(needed, found), needed.steps
    if not all(_is_settled(step, match) for step, match in zip(steps, settled, strict=True) if match is not None):
        return False
    taken = [name for segment in before for one in segment.looked_up for name in one.ids]
    if past.parent == UNCERTAIN_PARENT or not follow_each_other(settled, past.parent, taken):
        return False
    pairs = zip(steps, needed.by_lineage(found), strict=True)
    if all(match is not None or _is_unknown(step, found) for step, match in pairs):
        return True
    first = settled[0]
    if past.parent == NO_PARENT and first is not None and not is_exact(first.record, steps[0]):
        return False  # the text before it may belong to it
    return is_plain(needed, settled, found, past.parent)


def _is_settled(step: ModelStep, match: Match) -> bool:
    """Whether it is settled: not if a client may have written several answers as one."""
    return len(reasoning_of(step.items)) <= len(reasoning_of(match.record.items))


def _is_unknown(step: ModelStep, found: Found) -> bool:
    return not any(map(found.get, keys_of([step])))


def segments_of(worked: Worked) -> list[Segment] | None:
    """Return a segment up to each model step, except one at the very start; None if different turns were sent."""
    needed, turns = worked.needed, worked.transcript.turns
    as_sent, body = _as_sent(worked), worked.transcript.whole
    if len(as_sent.turns) != len(turns):
        return None
    if not needed.steps or turns[needed.steps[-1].positions[0]].at == worked.elements:
        return []
    sent_at = worked.listed if worked.sent is body else list_span(worked.sent, as_sent.format)
    if sent_at is None:
        return None
    if not worked.sent.startswith(worked.head, sent_at[0]):
        return None
    skipped = len(worked.head)
    came = _Elements(body, worked.transcript, worked.listed, skipped)
    sent = _Elements(worked.sent, as_sent, sent_at, skipped)
    pasts = _Pasts(worked)
    segments: list[Segment] = []
    settled = settled_of(needed, worked.found)
    taken, was_in_loop = 0, False
    for number, is_in_loop in _marks(worked):
        step = needed.steps[number]
        position = step.positions[0]
        if turns[position].at == worked.elements:
            was_in_loop = is_in_loop
            continue
        own, there = came.up_to(position), sent.up_to(position)
        if own is None or there is None:
            return None
        there = own if own == there else there
        looked_up = tuple([one for at in range(taken, number) for one in _lookups(worked, settled[at], at)])
        is_one = number - taken == 1
        loops = {"was_in_loop": was_in_loop, "is_in_loop": is_in_loop}
        segments.append(
            Segment(
                own,
                there,
                looked_up,
                step.standing,
                past=pasts.before(position, is_in_loop),
                weight=weight_of(own),
                size=size_of(own, there, looked_up),
                movable=_movable(worked, settled[taken], taken, own, **loops) if is_one else None,
            )
        )
        taken, was_in_loop = number, is_in_loop
    return segments


def _as_sent(worked: Worked) -> Transcript:
    """Return what was sent, with its turns at their new positions: only a turn of several elements may have grown."""
    came = worked.transcript
    if worked.sent is came.body or "items_are_elements" not in FORMATS[came.format].quirks:
        return came
    return FORMATS[came.format].bodies.decode_request(worked.sent, worked.dialect)


def _lookups(worked: Worked, match: Match | None, number: int) -> Lookups:
    """Return the lookups to repeat for a step."""
    step, found = worked.needed.steps[number], worked.found
    if match is None:
        return tuple([Lookup(key, tuple([record.id for record in found.get(key, ())])) for key in keys_of([step])])
    if step.lineage is not None and match_by_lineage(step, found, worked.needed.identity):
        return (Lookup(step.lineage, (match.record.id,)),)
    return (Lookup(match.record.keys[0], (match.record.id,), names=step.names),)


def _movable(
    worked: Worked, match: Match | None, number: int, client: bytes, *, was_in_loop: bool, is_in_loop: bool
) -> Movable | None:
    """Return what a step adds to a conversation at any place, if nothing else needs to be known of it."""
    trace, turns, steps = worked.trace, worked.transcript.turns, worked.needed.steps
    step, following = steps[number], steps[number + 1]
    is_bound = step.spot.bound or step.spot.scope.any_frame or worked.is_bound
    if match is None or match.is_glued or is_bound or not step.names or len(step.positions) > 1:
        return None
    record, position, end = match.record, step.positions[0], following.positions[0]
    note = trace.notes.get(position)
    is_told = any(position <= at < end for at, _ in trace.findings) or position in trace.fillers
    is_known = note is None or note.treatment in ("restored", "kept")
    if is_told or not is_known or record.parent == UNCERTAIN_PARENT or not is_lineage(record.keys[0]):
        return None
    if any(turns[at].role == "assistant" for at in range(position + 1, end)):
        return None
    at = turns[position].at
    return Movable(
        step.names,
        record.id,
        record.parent,
        bytes.fromhex(record.keys[0].partition(":")[2]),
        texts=tuple(step.texts[step.texts_before : following.texts_before]),
        outlined=outlined(step.outline.turns[step.mark : following.mark]),
        calls=following.spot.calls_before,
        elements=turns[end].at - at,
        counts=Counter([what for place, what in trace.counted if place == position]),
        note=None if note is None else replace(note, at=0),
        evidence=evidence_of_names(step, record, is_moved=True),
        carrier=trace.carriers.get(position, ""),
        was_in_loop=was_in_loop,
        is_in_loop=is_in_loop,
        sample=sample_of(client, worked.transcript.format),
    )


def _marks(worked: Worked) -> Iterator[tuple[int, bool]]:
    """Yield the steps before which nothing depends on later turns, each with whether it is in a tool loop."""
    trace, turns = worked.trace, worked.transcript.turns
    is_in_loop, is_loose, position = worked.past.is_in_loop, False, 0
    for number, step in enumerate(worked.needed.steps):
        if any(map(is_said_by_user, turns[position : step.positions[0]])):
            is_in_loop = is_loose = False
        if not is_loose:
            yield number, is_in_loop
        if not trace.loose.isdisjoint(step.positions):
            return
        is_loose_head = not is_in_loop and step.positions[0] in trace.loose_heads
        is_loose = is_loose or is_loose_head or not trace.loose_in_loop.isdisjoint(step.positions)
        is_in_loop, position = True, step.positions[-1] + 1


class _Elements:
    """The list of a body, read turn by turn."""

    def __init__(self, body: bytes, transcript: Transcript, listed: Span, skipped: int) -> None:
        self._body = body
        self._turns = transcript.turns
        self._at = listed[0] + skipped
        self._spans = element_spans(body, listed[0] - 1, listed[1])

    def up_to(self, position: int) -> bytes | None:
        """Return the bytes from the end of the last turn to the start of this one; None if there is no such turn."""
        at = self._turns[position].at if position < len(self._turns) else -1
        if not 0 <= at < len(self._spans):
            return None
        start, self._at = self._at, self._spans[at][0]
        return self._body[start : self._at]


class _Pasts:
    """Plan states before each position, summed up as it advances."""

    def __init__(self, worked: Worked) -> None:
        trace, self._past = worked.trace, worked.past
        self._turns = worked.transcript.turns
        self._counted = deque(sorted(trace.counted))
        self._findings = deque(trace.findings)
        self._fillers = deque(sorted(trace.fillers.items()))
        self._carriers = deque(sorted(trace.carriers.items()))
        self._notes = deque(sorted(trace.notes.items(), key=itemgetter(0)))
        self._parents = deque(sorted(trace.parents.items()))
        self._blocks = deque(sorted(trace.blocks.items()))

    def before(self, position: int, is_in_loop: bool) -> Past:
        past = self._past
        counts = Counter(_taken(self._counted, position))
        counts.update(past.counts.counted)
        fillers = [*_taken(self._fillers, position), *([] if past.filler is None else [past.filler])]
        carriers = [one for one in _taken(self._carriers, position) if one]
        parents, blocks = _taken(self._parents, position), _taken(self._blocks, position)
        self._past = Past(
            past.elements,
            Counts(**counts),
            (*past.findings, *_taken(self._findings, position)),
            filler=min(fillers, default=None),
            carrier=carriers[-1] if carriers else past.carrier,
            notes=chained(past.notes, tuple(_taken(self._notes, position))),
            parent=parents[-1] if parents else past.parent,
            block=blocks[-1] if blocks else past.block,
        )
        return replace(self._past, elements=past.elements + self._turns[position].at, is_in_loop=is_in_loop)


def _taken(waiting: deque[tuple[int, T]], position: int) -> list[T]:
    """Return the entries of turns before this one."""
    taken = []
    while waiting and waiting[0][0] < position:
        taken.append(waiting.popleft()[1])
    return taken
