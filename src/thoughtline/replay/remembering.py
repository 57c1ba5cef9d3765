"""Conversations of late, remembered by their bytes: an agent sends the same one again and again, and a little more.

The list of a conversation is kept in segments. Each ends where a model step begins, and has the bytes that the client
sent, those that went up for them, and what a walk and a plan that go on from there have to know of all before. A new
body whose list begins with the same bytes is worked through from there on.

    body   {"model":"m","messages":[ segment │ segment │ segment │ what is new ],"tools":[…]}
    short  {"model":"m","messages":[                               what is new ],"tools":[…]}

A segment says what was found for its steps: whoever goes on from it asks whether that still holds. What depends on
turns that follow is no part of one (`segments.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import member_spans, span_at
from thoughtline.formats.weighing import MAX_TURNS, Weight, weight_of
from thoughtline.providers import Contract, Rung
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.frames import Scope, scope_of
from thoughtline.replay.keys import Standing
from thoughtline.replay.plans import Found, Past, Policy
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import SYSTEM_MEMBER, FormatName, ThinkingSwitch, Transcript

MOST_ALIKE = 4
"""Conversations kept that begin alike: branches of one, and the same at other destinations."""

FEW = 4
"""A conversation that went back no more than so many segments was edited at its end; otherwise it is a branch."""

IDLE_SECONDS = 3600.0
"""Agents go on within minutes, people within the hour."""

MOST_NEW_BYTES = 512 * 2**10
"""A short body is looked at on the loop, in a millisecond or two; a longer one is worked through as a whole, aside."""

FINE = 16
"""Steps at the end that have a segment each; so many of those before them share one."""

_SAMPLE = 64
_SEARCHED = 64 * 2**10
_SEGMENT_BYTES, _KEY_BYTES = 2048, 200
"""What a segment and a key take beside the conversation's bytes, about."""


class Lookup(NamedTuple):
    """A key that was looked for, and the ids of its records. With `names` the record was found by these, as the only
    one: then others may share the key."""

    key: Key
    ids: tuple[RecordId, ...]
    names: tuple[Key, ...] = ()


Lookups: TypeAlias = tuple[Lookup, ...]

Index: TypeAlias = tuple[str, FormatName, int, bytes]
"""Tenant and format, and a sample of how a conversation begins: where the model speaks first, and what stands there."""

Span: TypeAlias = tuple[int, int]
"""Where a list stands: behind its opening bracket, and behind its closing one."""


class Segment(Struct, frozen=True, eq=False, gc=False):
    """Some turns of a conversation, up to the start of a model step; `standing` and `past` are of all before that."""

    client: bytes
    sent: bytes
    looked_up: Lookups
    standing: Standing
    past: Past
    weight: Weight
    steps: int = 1

    @property
    def size(self) -> int:
        sent = 0 if self.sent is self.client else len(self.sent)
        return len(self.client) + sent + _SEGMENT_BYTES + _KEY_BYTES * len(self.looked_up)


class Premises(NamedTuple):
    """For whom, and by which rules, a conversation was worked through."""

    destination: Destination
    identity: Identity
    contract: Contract
    ladder: tuple[Rung, ...] | None
    refused: frozenset[Key]


class Surroundings(NamedTuple):
    """What a request says beside its conversation, as far as plans depend on it."""

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
    """One that was sent. `begun` names it where no client does, `size` is what it takes in memory."""

    index: Index
    premises: Premises
    surroundings: Surroundings
    segments: tuple[Segment, ...]
    begun: str
    size: int
    names: dict[Key, RecordId] = {}

    def with_segments(self, segments: tuple[Segment, ...]) -> KnownConversation:
        segments = _thinned(segments)
        names = {name: one.ids[0] for segment in segments for one in segment.looked_up for name in one.names}
        return replace(self, segments=segments, size=sum([segment.size for segment in segments]), names=names)

    def is_doubted_by(self, record: Record) -> bool:
        """Whether a record made calls by whose ids another one was found."""
        return any(self.names.get(one, record.id) != record.id for one in record.keys)

    def shared(self, body: bytes, start: int) -> int:
        """How many of its segments stand at the beginning of a body's list."""
        for number, segment in enumerate(self.segments):
            if not body.startswith(segment.client, start):
                return number
            start += len(segment.client)
        return len(self.segments)


def premises_of(destination: Destination, identity: Identity, contract: Contract, policy: Policy) -> Premises:
    return Premises(destination, identity, contract, policy.ladder, policy.refused)


def found_list(body: bytes, format: FormatName) -> Span | None:
    """Where the conversation's list stands; None where it could not be found again without reading the body."""
    listed, found = list_span(body, format), _LISTS[format].search(body)
    return listed if listed is not None and found is not None and found.end() == listed[0] else None


def conversation_of(
    body: bytes, start: int, premises: Premises, *, surroundings: Surroundings, begun: str
) -> KnownConversation:
    """One that was worked through from its beginning; its list begins at `start`."""
    index = index_of(body, start, premises.destination.format, premises.identity.tenant)
    return KnownConversation(index, premises, surroundings, (), begun=begun, size=0)


class Cut(NamedTuple):
    """A body that begins as a conversation did. `short` is it without `segments`, and `listed` where the list stands in
    that: what stands beside it can be read from there, and whether it is JSON at all."""

    conversation: KnownConversation
    segments: tuple[Segment, ...]
    short: bytes
    listed: Span

    @property
    def past(self) -> Past:
        return self.segments[-1].past

    @property
    def standing(self) -> Standing:
        return self.segments[-1].standing

    @property
    def looked_up(self) -> list[Lookup]:
        return [one for segment in self.segments for one in segment.looked_up]

    def fits(self, transcript: Transcript) -> bool:
        """Whether the short body, read, is the end of such a conversation: it begins with a model step, and says the
        same beside it."""
        first = next((turn for turn in transcript.turns if turn.at == 0), None)
        if first is None or first.role != "assistant" or transcript.has_lone_surrogates:
            return False
        is_bounded = self.past.elements + len(transcript.turns) <= MAX_TURNS
        return is_bounded and surroundings_of(transcript, self.conversation.premises) == self.conversation.surroundings

    def joined(self, body: bytes, short: bytes) -> bytes:
        """What to send: what went up for the segments, within what was made of the short body."""
        is_same = all(segment.sent is segment.client for segment in self.segments)
        if is_same and short == self.short:
            return body
        start = self.listed[0]
        if not short.startswith(self.short[:start]):
            found = list_span(short, self.conversation.premises.destination.format)
            assert found is not None
            start = found[0]
        return b"".join([short[:start], *[segment.sent for segment in self.segments], short[start:]])


def still_holds(looked_up: list[Lookup], found: Found) -> bool:
    """Whether a store finds what it found."""
    for key, ids, names in looked_up:
        records = found.get(key, ())
        if len(records) == 1 == len(ids) and records[0].id == ids[0]:
            continue
        there = [record.id for record in records]
        if (ids[0] not in there) if names else there != list(ids):
            return False
    return True


def list_span(body: bytes, format: FormatName) -> Span | None:
    """Where the conversation's list stands, behind its bracket; None if it is no list, or there are several."""
    wire = FORMATS[format]
    outer = span_at(body, (wire.inside,)) if wire.inside else (0, len(body))
    if outer is None:
        return None
    request = body[outer[0] : outer[1]]
    lists = [member for member in member_spans(request) if member.key == wire.list_member]
    if len(lists) != 1 or request[lists[0].value_start : lists[0].value_start + 1] != b"[":
        return None
    return outer[0] + lists[0].value_start + 1, outer[0] + lists[0].end


_LISTS = {name: re.compile(rb'"%b"\s*:\s*\[' % wire.list_member.encode()) for name, wire in FORMATS.items()}
_ROLES = {name: b'"%b"' % wire.message.role.encode() for name, wire in FORMATS.items()}


def index_of(body: bytes, start: int, format: FormatName, tenant: str) -> Index:
    """The same for all bodies of a conversation in which the model has spoken."""
    first = body.find(_ROLES[format], start, start + _SEARCHED)
    end = first if first >= 0 else start + _SAMPLE
    return tenant, format, first - start, body[max(start, end - _SAMPLE) : end]


class Conversations:
    """The conversations of late, bounded in bytes: the least recently used go first, and those that nobody went on with
    for an hour. None are kept in zero bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.are_kept = max_bytes > 0
        self._size = 0
        self._alike: dict[Index, list[KnownConversation]] = {}
        self._used_at: dict[KnownConversation, float] = {}

    @property
    def size(self) -> int:
        return self._size

    def cuts(self, body: bytes, format: FormatName, tenant: str) -> tuple[Cut, ...]:
        """Where a body begins as conversations did, the longest first."""
        found = _LISTS[format].search(body) if self._used_at else None
        if found is None:
            return ()
        start = found.end()
        alike = self._alike.get(index_of(body, start, format, tenant), ())
        cuts = [cut for conversation in alike if (cut := _cut(body, start, conversation)) is not None]
        return tuple(sorted(cuts, key=lambda cut: len(cut.short)))

    def begin(self, new: KnownConversation, body: bytes, now: float) -> None:
        """Keep a conversation that was worked through as a whole."""
        found = _LISTS[new.premises.destination.format].search(body)
        assert found is not None
        for old in self._alike.get(new.index, [])[:]:
            if old.premises == new.premises and old.surroundings == new.surroundings:
                self._go_past(old, old.shared(body, found.end()))
        self._put(new, now)

    def go_on(self, cut: Cut, segments: Sequence[Segment], now: float) -> None:
        """Keep a conversation with what is new in it."""
        old = cut.conversation
        if not segments:
            self.drop(old)
            self._put(old, now)
            return
        self._go_past(old, len(cut.segments))
        self._put(old.with_segments((*cut.segments, *segments)), now)

    def _go_past(self, old: KnownConversation, shared: int) -> None:
        """A conversation was gone on with, and is no longer needed. A branch of it leaves it as it was."""
        if len(old.segments) - shared <= FEW:
            self.drop(old)

    def _put(self, new: KnownConversation, now: float) -> None:
        if new.size > self._max_bytes:
            return
        alike = self._alike.setdefault(new.index, [])
        alike.append(new)
        self._used_at[new] = now
        self._size += new.size
        if len(alike) > MOST_ALIKE:
            self.drop(alike[0])
        while self._size > self._max_bytes or next(iter(self._used_at.values())) < now - IDLE_SECONDS:
            self.drop(next(iter(self._used_at)))

    def doubt(self, records: Sequence[Record]) -> None:
        """Drop the conversations in which these records make a difference that no look-up would show."""
        for conversation in [one for one in self._used_at if one.names]:
            if any(map(conversation.is_doubted_by, records)):
                self.drop(conversation)

    def clear(self) -> None:
        self._alike.clear()
        self._used_at.clear()
        self._size = 0

    def drop(self, conversation: KnownConversation) -> None:
        if conversation not in self._used_at:
            return
        del self._used_at[conversation]
        self._size -= conversation.size
        alike = self._alike[conversation.index]
        alike.remove(conversation)
        if not alike:
            del self._alike[conversation.index]


def _thinned(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The last ones as they are, and those before them many in one: clients change the end of a conversation."""
    first = next((at for at, segment in enumerate(segments) if segment.steps < FINE), len(segments))
    while len(segments) - first >= 2 * FINE:
        together = segments[first : first + FINE]
        segments = (*segments[:first], _together(together), *segments[first + FINE :])
        first += 1
    return segments


def _together(some: Sequence[Segment]) -> Segment:
    client = b"".join([segment.client for segment in some])
    is_same = all(segment.sent is segment.client for segment in some)
    sent = client if is_same else b"".join([segment.sent for segment in some])
    looked_up = tuple([one for segment in some for one in segment.looked_up])
    last = some[-1]
    return Segment(client, sent, looked_up, last.standing, past=last.past, weight=total(some), steps=len(some))


def total(some: Sequence[Segment]) -> Weight:
    return Weight(*map(sum, zip(*[segment.weight for segment in some], strict=True)))


def _cut(body: bytes, start: int, conversation: KnownConversation) -> Cut | None:
    segments = conversation.segments[: conversation.shared(body, start)]
    end = start + sum([len(segment.client) for segment in segments])
    if not segments or len(body) - (end - start) > MOST_NEW_BYTES:
        return None
    short = body[:start] + body[end:]
    if not total(segments).plus(weight_of(short)).is_read:
        return None
    listed = _listed(short, start, conversation.index[1])
    return Cut(conversation, segments, short, listed) if listed is not None else None


def _listed(short: bytes, start: int, format: FormatName) -> Span | None:
    """Where the list stands, if it was the conversation's that was cut, and a message follows: that is read here."""
    try:
        found = list_span(short, format) if short[start : start + 1] == b"{" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DecodeError):
        return None
    return found if found is not None and found[0] == start else None
