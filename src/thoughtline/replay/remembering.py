"""Recent conversations, cached by their bytes: an agent sends the same one again and again, each time with a little
more.

The list of a conversation is kept in segments. Each ends where a model step begins. It has the client's bytes, the
bytes that were sent for them, and what a walk and a plan need to continue from there. A new body whose list begins with
the same bytes is processed from there on.

    body   {"model":"m","messages":[ segment │ segment │ segment │ what is new ],"tools":[…]}
    short  {"model":"m","messages":[                               what is new ],"tools":[…]}

A segment says which records its steps had; before continuing from it, check that this still holds. Turns whose plan
depends on later turns are not part of a segment (`segments.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import element_spans, member_spans, span_at
from thoughtline.formats.weighing import MAX_TURNS, Weight, total, weight_of
from thoughtline.providers import Contract, Rung
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.frames import Scope, scope_of
from thoughtline.replay.keys import Standing, opening
from thoughtline.replay.moving import Movable, moved
from thoughtline.replay.plans import Found, Past, Policy
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import SYSTEM_MEMBER, FormatName, ThinkingSwitch, Transcript

MAX_ALIKE = 4
"""Cached conversations with the same beginning: branches of one, and copies at other destinations."""

FEW = 12
"""A conversation that went back by at most this many segments was edited at its end; otherwise it is a branch. Clients
that clear old results keep ten."""

IDLE_SECONDS = 3600.0
"""Agents continue within minutes, people within the hour."""

NAMES_SECONDS = 60.0
"""How often the store is asked again whether a call id still means one record: another replica may have saved one more.
It takes some milliseconds for 200 steps."""

MAX_NEW_BYTES = 512 * 2**10
"""A short body is processed on the event loop, in a millisecond or two; a longer one is processed in full, in a
thread."""

FIRST = 9
"""Segments that identify a conversation whose opening has changed: a sliding window moves by a turn or two."""

MOVED = -2

_SAMPLE, LONG_SAMPLE = 64, 160
_SEARCHED = 64 * 2**10
_SEGMENT_BYTES, _KEY_BYTES = 2048, 200
"""Approximate overhead of a segment and of a key, in addition to the conversation's bytes."""


class Lookup(NamedTuple):
    """A key that was looked up, and the ids of its records. With `names` the record was found by these, as the only
    one: then others may share the key."""

    key: Key
    ids: tuple[RecordId, ...]
    names: tuple[Key, ...] = ()


Lookups: TypeAlias = tuple[Lookup, ...]

Index: TypeAlias = tuple[str, FormatName, int, bytes]
"""Tenant and format, and a sample of a conversation's beginning: where the model speaks first, and the text there."""

Span: TypeAlias = tuple[int, int]
"""Where a list is: after its opening bracket, and after its closing one."""


class Segment(Struct, frozen=True, eq=False, gc=False):
    """Some turns of a conversation, up to the start of a model step. `standing` and `past` describe everything before
    that; they are None if the segment was moved and not continued yet. `movable` is its only step, if it may be at
    another place."""

    client: bytes
    sent: bytes
    looked_up: Lookups
    standing: Standing | None
    past: Past | None
    weight: Weight
    size: int
    movable: Movable | None = None


def size_of(client: bytes, sent: bytes, looked_up: Lookups) -> int:
    """Return the memory use of a segment."""
    own = 0 if sent is client else len(sent)
    return len(client) + own + _SEGMENT_BYTES + _KEY_BYTES * len(looked_up)


class Premises(NamedTuple):
    """The inputs, apart from the body, that a plan depends on."""

    destination: Destination
    identity: Identity
    contract: Contract
    ladder: tuple[Rung, ...] | None
    refused: frozenset[Key]


class Surroundings(NamedTuple):
    """The parts of a request outside its conversation that plans depend on."""

    thinking: ThinkingSwitch
    has_tools: bool
    is_stored: bool | None
    includes: tuple[str, ...]
    bound: bytes
    scope: Scope


def surroundings_of(transcript: Transcript, premises: Premises) -> Surroundings:
    beside = replace(transcript, turns=tuple([turn for turn in transcript.turns if turn.at == SYSTEM_MEMBER]))
    bound = bound_of(beside) if premises.contract.binds_prefix else b""
    stored, includes = transcript.is_stored, transcript.includes
    scope = scope_of(beside, premises.identity)
    switch = premises.contract.switch(transcript)
    return Surroundings(switch, bool(transcript.tools), stored, includes, bound=bound, scope=scope)


class KnownConversation(Struct, frozen=True, eq=False, gc=False):
    """A conversation that was sent. `begun` names it if no client does, `size` is its memory use. `asked_at` is when
    the ids of its calls were looked up."""

    index: Index
    premises: Premises
    surroundings: Surroundings
    segments: tuple[Segment, ...]
    begun: str
    size: int
    names: dict[Key, RecordId] = {}
    asked_at: float = 0.0

    @property
    def samples(self) -> list[Index]:
        """Samples by which it is found if its opening has changed."""
        tenant, its_format = self.index[:2]
        first = [segment.movable.sample for segment in self.segments[:FIRST] if segment.movable is not None]
        return [(tenant, its_format, MOVED, sample) for sample in first if sample]

    def with_segments(self, segments: tuple[Segment, ...], known: int = 0) -> KnownConversation:
        """Replace its segments; the first `known` are its own."""
        new = segments[known:]
        names = {name: one.ids[0] for segment in new for one in segment.looked_up for name in one.names}
        size = sum([segment.size for segment in segments])
        return replace(self, segments=segments, size=size, names={**self.names, **names} if names else self.names)

    def is_doubted_by(self, record: Record) -> bool:
        """Whether a record made calls whose ids identified another record here."""
        return any(self.names.get(one, record.id) != record.id for one in record.keys)

    def shared(self, body: bytes, start: int) -> tuple[int, int]:
        """Return how many of its segments a body's list begins with, and where they end."""
        for number, segment in enumerate(self.segments):
            client = segment.client
            if not body.startswith(client, start):
                return number, start
            start += len(client)
        return len(self.segments), start


def premises_of(destination: Destination, identity: Identity, contract: Contract, policy: Policy) -> Premises:
    return Premises(destination, identity, contract, policy.ladder, policy.refused)


def found_list(body: bytes, format: FormatName) -> Span | None:
    """Return where the conversation's list is; None if it could not be found again without reading the whole body."""
    listed, found = list_span(body, format), LISTS[format].search(body)
    return listed if listed is not None and found is not None and found.end() == listed[0] else None


def conversation_of(
    body: bytes, start: int, premises: Premises, *, surroundings: Surroundings, begun: str
) -> KnownConversation:
    """Return a conversation that was processed from its beginning; its list begins at `start`."""
    index = index_of(body, start, premises.destination.format, premises.identity.tenant)
    return KnownConversation(index, premises, surroundings, (), begun=begun, size=0)


class Cut(NamedTuple):
    """A body that begins like a cached conversation. `short` is the body without `segments`, and `listed` the list's
    position in it: the rest of the request can be read from there, and also whether it is JSON at all."""

    conversation: KnownConversation
    segments: tuple[Segment, ...]
    short: bytes
    listed: Span
    head: bytes = b""
    shared: int = 0
    elements: int = 0

    @property
    def past(self) -> Past:
        """The plan state of the removed turns, for turns that are counted in the short body."""
        past = self.segments[-1].past
        assert past is not None
        return replace(past, elements=past.elements - self.elements)

    @property
    def standing(self) -> Standing:
        standing = self.segments[-1].standing
        assert standing is not None
        return standing

    @property
    def looked_up(self) -> list[Lookup]:
        return [one for segment in self.segments for one in segment.looked_up]

    def asks_again(self, now: float) -> bool:
        """Whether the ids of all calls are due to be looked up again."""
        return bool(self.conversation.names) and not 0 <= now - self.conversation.asked_at < NAMES_SECONDS

    def names_to_ask(self, now: float) -> list[Lookup]:
        """Lookups that must still hold: for steps to be moved that their lineage has settled so far, and each minute
        for all that are known by the ids of their calls."""
        names: list[Lookup] = []
        if self.asks_again(now):
            names += [Lookup(name, one.ids) for one in self.looked_up for name in one.names]
        if self.head:
            steps = [segment.movable for segment in self.segments if not segment.looked_up[0].names]
            names += [Lookup(name, (step.record,)) for step in steps if step is not None for name in step.names]
        return names

    def moved(self, transcript: Transcript, identity: Identity) -> tuple[Cut, Transcript] | None:
        """Return the cut with the new opening turns before the removed ones, and the turns after them."""
        start, contract = self.listed[0], self.conversation.premises.contract
        spans = element_spans(self.short, start - 1, self.listed[1])
        count = sum([begin < start + len(self.head) for begin, _ in spans])
        before = [turn for turn in transcript.turns if turn.at < count]
        if any(turn.role == "assistant" for turn in before):
            return None
        standing = opening(before, scope_of(transcript, identity), identity)
        steps = [segment.movable for segment in self.segments]
        done = moved(steps, standing, count, counts_loops=contract.scope == "loop_head")
        if done is None:
            return None
        first = Segment(
            self.head,
            self.head,
            (),
            standing,
            past=Past(count),
            weight=weight_of(self.head),
            size=len(self.head),
        )
        *others, last = map(_unplaced, self.segments)
        last = replace(last, standing=done[0], past=done[1])
        turns = tuple([turn for turn in transcript.turns if not 0 <= turn.at < count])
        cut = self._replace(segments=(first, *others, last), elements=count)
        return cut, replace(transcript, turns=turns)

    def fits(self, transcript: Transcript) -> bool:
        """Whether the short body is the end of such a conversation: it begins with a model step, and the rest of the
        request is the same."""
        first = next((turn for turn in transcript.turns if turn.at == self.elements), None)
        if first is None or first.role != "assistant" or transcript.has_lone_surrogates:
            return False
        is_bounded = self.past.elements + len(transcript.turns) <= MAX_TURNS
        return is_bounded and surroundings_of(transcript, self.conversation.premises) == self.conversation.surroundings

    def joined(self, body: bytes, short: bytes) -> bytes | None:
        """Return the body to send: the segments as they were sent, inside the result for the short body; None if that
        begins differently."""
        is_same = all(segment.sent is segment.client for segment in self.segments)
        if is_same and short == self.short:
            return body
        start = self.listed[0]
        if not short.startswith(self.short[:start]):
            found = list_span(short, self.conversation.premises.destination.format)
            assert found is not None
            start = found[0]
        if not short.startswith(self.head, start):
            return None
        end = start + len(self.head)
        sent = [segment.sent for segment in (self.segments[1:] if self.head else self.segments)]
        return b"".join([short[:end], *sent, short[end:]])


def still_holds(looked_up: list[Lookup], found: Found) -> bool:
    """Whether a store still finds the same records."""
    for key, ids, names in looked_up:
        records = found.get(key, ())
        if len(records) == 1 == len(ids) and records[0].id == ids[0]:
            continue
        there = [record.id for record in records]
        if (ids[0] not in there) if names else there != list(ids):
            return False
    return True


def list_span(body: bytes, format: FormatName) -> Span | None:
    """Return where the conversation's list is, after its bracket; None if it is not a list, or there are several."""
    wire = FORMATS[format]
    outer = span_at(body, (wire.inside,)) if wire.inside else (0, len(body))
    if outer is None:
        return None
    request = body[outer[0] : outer[1]]
    lists = [member for member in member_spans(request) if member.key == wire.list_member]
    if len(lists) != 1 or request[lists[0].value_start : lists[0].value_start + 1] != b"[":
        return None
    return outer[0] + lists[0].value_start + 1, outer[0] + lists[0].end


LISTS = {name: re.compile(rb'"%b"\s*:\s*\[' % wire.list_member.encode()) for name, wire in FORMATS.items()}
_ROLES = {name: b'"%b"' % wire.message.role.encode() for name, wire in FORMATS.items()}


def index_of(body: bytes, start: int, format: FormatName, tenant: str) -> Index:
    """Return an index that is the same for all bodies of a conversation in which the model has answered."""
    first = body.find(_ROLES[format], start, start + _SEARCHED)
    end = first if first >= 0 else start + _SAMPLE
    return tenant, format, first - start, body[max(start, end - _SAMPLE) : end]


class Conversations:
    """Recent conversations, limited in bytes: the least recently used are dropped first, and those unused for an hour.
    With zero bytes, none are kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.are_kept = max_bytes > 0
        self._size = 0
        self._alike: dict[Index, list[KnownConversation]] = {}
        self._movable: dict[Index, KnownConversation] = {}
        self._used_at: dict[KnownConversation, float] = {}

    @property
    def size(self) -> int:
        return self._size

    def cuts(self, body: bytes, format: FormatName, tenant: str) -> tuple[Cut, ...]:
        """Return cuts of a body that begins like cached conversations, longest first."""
        found = LISTS[format].search(body) if self._used_at else None
        if found is None:
            return ()
        start = found.end()
        alike = self._alike.get(index_of(body, start, format, tenant), ())
        cuts = [cut for conversation in alike if (cut := _cut(body, start, conversation)) is not None]
        if all(2 * len(cut.short) > len(body) for cut in cuts):
            sample, place = _sample_of(body, start, format)
            other = self._movable.get((tenant, format, MOVED, sample))
            cut = _cut_moved(body, start, place, other, sample) if other is not None else None
            cuts = [cut, *cuts] if cut is not None else cuts
        return tuple(sorted(cuts, key=lambda cut: len(cut.short)))

    def begin(self, new: KnownConversation, body: bytes, now: float) -> None:
        """Add a conversation that was processed in full."""
        found = LISTS[new.premises.destination.format].search(body)
        assert found is not None
        for old in self._alike.get(new.index, [])[:]:
            if old.premises == new.premises and old.surroundings == new.surroundings:
                self._go_past(old, old.shared(body, found.end())[0])
        self._put(replace(new, asked_at=now), now)

    def go_on(self, cut: Cut, segments: Sequence[Segment], now: float, begun: str) -> None:
        """Replace a conversation by its continuation. `begun` names it as it begins now."""
        old = new = cut.conversation
        if cut.asks_again(now):
            new = replace(old, asked_at=now)
        if not segments:
            self.drop(old)
            self._put(new, now)
            return
        if cut.head:
            self._go_past(old, cut.shared)
            together = b"".join([segment.client for segment in cut.segments[:FIRST]])
            new, known = replace(new, index=index_of(together, 0, *old.index[1::-1]), begun=begun), 0
        else:
            known = len(cut.segments)
            self._go_past(old, known)
        self._put(new.with_segments((*cut.segments, *segments), known), now)

    def _go_past(self, old: KnownConversation, shared: int) -> None:
        """Drop a conversation that was continued and is no longer needed. A branch leaves it as it was."""
        if len(old.segments) - shared <= FEW:
            self.drop(old)

    def _put(self, new: KnownConversation, now: float) -> None:
        if new.size > self._max_bytes:
            return
        alike = self._alike.setdefault(new.index, [])
        alike.append(new)
        self._movable.update(dict.fromkeys(new.samples, new))
        self._used_at[new] = now
        self._size += new.size
        if len(alike) > MAX_ALIKE:
            self.drop(alike[0])
        while self._size > self._max_bytes or next(iter(self._used_at.values())) < now - IDLE_SECONDS:
            self.drop(next(iter(self._used_at)))

    def doubt(self, records: Sequence[Record]) -> None:
        """Drop conversations that these records affect in a way that no lookup would show."""
        for conversation in [one for one in self._used_at if one.names]:
            if any(map(conversation.is_doubted_by, records)):
                self.drop(conversation)

    def clear(self) -> None:
        self._alike.clear()
        self._movable.clear()
        self._used_at.clear()
        self._size = 0

    def drop(self, conversation: KnownConversation) -> None:
        if conversation not in self._used_at:
            return
        del self._used_at[conversation]
        self._size -= conversation.size
        alike = self._alike[conversation.index]
        alike.remove(conversation)
        for sample in conversation.samples:
            if self._movable.get(sample) is conversation:
                del self._movable[sample]
        if not alike:
            del self._alike[conversation.index]


def _cut(body: bytes, start: int, conversation: KnownConversation) -> Cut | None:
    count, end = conversation.shared(body, start)
    segments = conversation.segments[:count]
    if not segments or segments[-1].past is None:
        return None
    if len(body) - (end - start) > MAX_NEW_BYTES:
        return None
    short = body[:start] + body[end:]
    if not total([segment.weight for segment in segments]).plus(weight_of(short)).is_read:
        return None
    listed = _listed(short, start, conversation.index[1])
    return Cut(conversation, segments, short, listed) if listed is not None else None


def _cut_moved(body: bytes, start: int, place: int, conversation: KnownConversation, sample: bytes) -> Cut | None:
    """The same for a conversation with another opening: from its first step that the body has."""
    all_of_them = conversation.segments
    for first, segment in enumerate(all_of_them[:FIRST]):
        if segment.movable is None or segment.movable.sample != sample:
            continue
        at = place - segment.client.index(sample)
        last, end = first, at
        while last < len(all_of_them) and all_of_them[last].movable and body.startswith(all_of_them[last].client, end):
            end += len(all_of_them[last].client)
            last += 1
        if not start < at < end or len(body) - (end - at) > MAX_NEW_BYTES:
            continue
        short, run = body[:at] + body[end:], all_of_them[first:last]
        listed = _listed(short, at, conversation.index[1], start)
        if listed is None or not total([segment.weight for segment in run]).plus(weight_of(short)).is_read:
            return None
        return Cut(conversation, run, short, listed, body[start:at], shared=last)
    return None


def _unplaced(segment: Segment) -> Segment:
    """Return a segment for another place, with its step identified by ids."""
    looked_up, step = segment.looked_up, segment.movable
    if step is not None and not looked_up[0].names:
        looked_up = (looked_up[0]._replace(names=step.names),)
    elif segment.standing is None:
        return segment
    return replace(segment, looked_up=looked_up, standing=None, past=None)


def sample_of(client: bytes, format: FormatName) -> bytes:
    """Return the beginning of a step; empty if it is too short to identify it."""
    sample, _ = _sample_of(client, 0, format)
    return sample if len(sample) == LONG_SAMPLE else b""


def _sample_of(body: bytes, start: int, format: FormatName) -> tuple[bytes, int]:
    place = body.find(_ROLES[format], start, start + _SEARCHED)
    return (body[place : place + LONG_SAMPLE], place) if place >= 0 else (b"", place)


def _listed(short: bytes, at: int, format: FormatName, start: int | None = None) -> Span | None:
    """Return where the list is, if the conversation's list was cut and a message follows, which is read here."""
    try:
        found = list_span(short, format) if short[at : at + 1] == b"{" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DecodeError):
        return None
    return found if found is not None and found[0] == (at if start is None else start) else None
