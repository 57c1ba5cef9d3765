"""Reads a copy of a response: its content so far, the end of a turn, and the records of its turns.

A watch never delays anything. If it can't read a response, or it exceeds a limit, it stops reading and reports that:
`read` and `end` raise, for the gateway; `feed` and `finish`, for programs, never do. Records can be taken whenever a
turn has ended, and once more at the end of the response, for truncated turns.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from thoughtline.engine.request import Prepared
from thoughtline.engine.sessions import unnamed_session
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.keys import Spot, session_entry, walk
from thoughtline.replay.weaving import is_filler
from thoughtline.values.errors import DecodeError, LimitExceeded
from thoughtline.values.events import Event, Failed, ItemDone, Started, TurnDone, UsageReported
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, seal_of
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import UNKNOWN_PARENT, Record, RecordId, digest, encode_record
from thoughtline.values.turns import Candidate, Finish, FormatName, Provenance, Reply, Transcript, Turn, Usage

log = logging.getLogger(__name__)

MAX_BYTES = 32 * 2**20
"""Maximum that is read of a response: a model's longest answer is well below 1 MB, but there may be many images."""

STREAM_TYPES = frozenset(
    {"application/jsonl", *(str(wire.stream_type, "ascii").partition(";")[0] for wire in FORMATS.values())}
)
"""Content types of streams."""


def is_stream(kind: str, format: FormatName, *, is_asked: bool) -> bool:
    """Whether an answer is a stream: by its content type, or by the request if the type does not say."""
    return kind in STREAM_TYPES or (is_asked and (kind != "application/json" or bool(FORMATS[format].stream_query)))


EditItems: TypeAlias = Callable[[tuple[Item, ...]], tuple[Item, ...]]


class Watch:
    """Collects the records of the response to one request. `edit` returns a turn's items as the client sees them."""

    def __init__(self, prepared: Prepared, edit: EditItems | None = None) -> None:
        # Keep only these parts of the request, which may be long, during the answer.
        self._format, self._dialect = prepared.destination.format, prepared.contract.dialect
        self.provenance: Provenance | None = None
        self._spot: Spot | None = None
        if prepared.transcript is not None:
            self.provenance = provenance_of(prepared)
            known = prepared.needed.end if prepared.needed else None
            self._spot = known or end_of(prepared.transcript, prepared.identity)
        plan = prepared.plan
        self._sent = (plan.block, plan.is_cut) if plan is not None else ("", False)
        self._follows = Follows(plan.parent, plan.enters_session) if plan is not None else Follows()
        self._call_ids = prepared.carried.call_ids
        self._edit = edit
        self._left = MAX_BYTES
        self._items: dict[int, list[Item]] = {}
        self._ended: dict[int, Finish | None] = {}
        self._carriers: dict[int, tuple[str, ...]] = {}
        self._taken: set[int] = set()
        self._started = Started()
        self._has_failed = False
        self.problem: DecodeError | None = None
        self.usage: Usage | None = None
        self.has_news = False
        """Whether a turn has ended whose record was not taken yet."""
        self.is_left = False
        """Whether the client disconnected before the end of its turn."""
        self.words_before: tuple[Item, ...] = ()
        """What stands before the turn, where it is kept."""

    @property
    def answer_id(self) -> str | None:
        return self._started.id

    @property
    def answer_model(self) -> str | None:
        """The model that the answer names."""
        return self._started.model

    @property
    def finishes(self) -> list[Finish]:
        """The finish reasons of the choices that have ended."""
        return [finish for _, finish in sorted(self._ended.items()) if finish is not None]

    def read_whole(self, body: bytes) -> Reply | None:
        """Read a response with one body; None if it can't be read."""
        wire = FORMATS[self._format]
        try:
            if len(body) > self._left:
                raise LimitExceeded("a response that is too large to remember")
            check_weight(body)
            reply = wire.bodies.decode_response(body, self._dialect)
        except DecodeError as problem:
            self.problem = problem.from_upstream()
            return None
        self._started = Started(reply.id, reply.model)
        self.usage = reply.usage
        for candidate in reply.candidates:
            self._items[candidate.index] = list(candidate.turn.items)
            self._ended[candidate.index] = candidate.finish
            self._carriers[candidate.index] = candidate.turn.carriers
        self.has_news = len(self._ended) > len(self._taken)
        return reply

    def note(self, events: list[Event]) -> None:
        """Note the events of a stream."""
        for event in events:
            match event:
                case ItemDone():
                    self._items.setdefault(event.choice, []).append(event.item)
                case TurnDone():
                    self._ended[event.choice] = event.finish
                    self._carriers[event.choice] = event.carriers
                    self.has_news = len(self._ended) > len(self._taken)
                case Started():
                    self._started = event
                case Failed():
                    self._has_failed = True
                case UsageReported():
                    self.usage = event.usage
                case _:
                    pass

    @property
    def losses(self) -> tuple[tuple[str, str], ...]:
        """Lost reasoning: `dropped` if the provider did not read it, `withheld` if the model has thought and its
        response shows nothing of it, not even a seal."""
        usage = self.usage
        if usage is None or not (usage.dropped or (usage.reasoning and self._ended)):
            return ()
        dropped = [("dropped", place) for place in usage.dropped]
        items = [item for some in self._items.values() for item in some]
        is_shown = any(isinstance(item, REASONING_KINDS) or seal_of(item) is not None for item in items)
        return (*dropped, ("withheld", "")) if usage.reasoning and self._ended and not is_shown else tuple(dropped)

    def take(self, now: float, outcome: Outcome) -> tuple[Record, ...]:
        """Return the records of the turns that have ended since the last call."""
        return self.ended(now, outcome)()

    def ended(self, now: float, outcome: Outcome) -> Callable[[], tuple[Record, ...]]:
        """Return a function that makes these records, in any thread. It takes a while for long answers."""
        new = sorted(self._ended.keys() - self._taken)
        self._taken.update(new)
        self.has_news = False
        if self._spot is None or self.provenance is None or not new:
            return tuple
        candidates = []
        for choice in new:
            items, finish = tuple(self._items.get(choice, ())), self._ended[choice]
            if self._has_failed and finish is None and not items:
                continue
            # As the client saw it, since it will be recognised by that.
            if self._edit is not None:
                items = self._edit(items)
            if self._call_ids is not None:
                items = self._call_ids.shown(items, choice)
            turn = Turn("assistant", items, carriers=self._carriers.get(choice, ()))
            candidates.append(Candidate(turn, choice, finish))
        reply = Reply(self._format, tuple(candidates), b"", self._started.id, self._started.model)
        made = replace(self.provenance, model_answered=reply.model) if reply.model else self.provenance
        after, is_cut = self._sent
        spot, follows, is_left = self._spot, self._follows, self.is_left

        def capture() -> tuple[Record, ...]:
            records = captured_at(spot, reply, made, now, outcome, follows=follows)
            if not after and not is_left:
                return records
            return tuple([replace(one, is_seen=not is_left, after=after, is_cut=is_cut) for one in records])

        return capture


def session_of(prepared: Prepared) -> str | None:
    """Return the client's session, or else a name made from the beginning of the conversation."""
    if prepared.identity.session or prepared.transcript is None:
        return prepared.identity.session
    if prepared.handover is not None:
        return prepared.handover.session
    return prepared.begun or unnamed_session(prepared.transcript)


def provenance_of(prepared: Prepared) -> Provenance:
    """Return the origin of the answer to a request; unless it says otherwise, its model is the requested one."""
    where, who, transcript = prepared.destination, prepared.identity, prepared.transcript
    assert transcript is not None
    return Provenance(
        who.tenant,
        where.provider,
        where.endpoint,
        account=where.account,
        model_asked=where.model,
        model_answered=where.model,
        format=where.format,
        dialect=prepared.contract.dialect.name,
        session=session_of(prepared),
        agent=who.agent,
    )


class StreamWatch(Watch):
    """A watch on a stream of bytes, cut anywhere. `unended_bytes` counts the bytes since the last event."""

    def __init__(self, prepared: Prepared, edit: EditItems | None = None) -> None:
        super().__init__(prepared, edit)
        wire = FORMATS[prepared.destination.format]
        self._decoder = wire.stream_decoder(prepared.contract.dialect)
        self.unended_bytes = 0

    def read(self, data: bytes) -> list[Event]:
        """Return the events in these bytes. Raises if they can't be decoded, or are too many; then nothing more can be
        read."""
        self._left -= len(data)
        if self._left < 0:
            raise LimitExceeded("a stream that is too long").from_upstream()
        events = self._decoder.feed(data)
        if events:
            self.unended_bytes = 0
            self.note(events)
        else:
            self.unended_bytes += len(data)
        return events

    def end(self) -> list[Event]:
        """Return the events at the end of the stream."""
        events = self._decoder.finish()
        self.note(events)
        return events

    def feed(self, data: bytes) -> bool:
        """Read on, and return whether a turn has ended in these bytes."""
        if self.problem is None:
            try:
                self.read(data)
            except DecodeError as problem:
                self.problem = problem
                return False
        return self.has_news

    def finish(self) -> bool:
        """End the stream, and return whether that ended a turn."""
        if self.problem is None:
            try:
                self.end()
            except DecodeError as problem:
                self.problem = problem
        return self.has_news


# --- from a response to its records -----------------------------------------------------------------------------------


class Follows(NamedTuple):
    """What a turn follows, by the plan of its request: the record before it, and whether it is the first turn of its
    conversation in the session that the client names."""

    parent: RecordId = UNKNOWN_PARENT
    enters_session: bool = False


def capture(
    request: Transcript,
    reply: Reply,
    provenance: Provenance,
    now: float,
    spot: Spot | None = None,
    outcome: Outcome | None = None,
    follows: Follows | None = None,
) -> tuple[Record, ...]:
    """Return the records of a reply. `spot` is the `end` of its request's needs, if it was planned: it includes the
    context of a conversation only if thinking is bound to it. `follows` comes from the plan."""
    spot = spot or end_of(request, Identity(provenance.tenant))
    return captured_at(spot, reply, provenance, now, outcome, follows=follows or Follows())


def end_of(request: Transcript, identity: Identity) -> Spot:
    """Return the place of the reply to a request."""
    return walk(request, identity, bound_of(request)).end


def captured_at(
    spot: Spot,
    reply: Reply,
    provenance: Provenance,
    now: float,
    outcome: Outcome | None = None,
    *,
    follows: Follows | None = None,
) -> tuple[Record, ...]:
    """Return the records of a reply: one per answer with any content. A failed reply has none.

    A turn without reasoning is recorded too, as the fact that it had none. `spot` is the place of the reply, `outcome`
    what was done for its request.
    """
    identity = Identity(provenance.tenant, provenance.named_session, provenance.agent)
    follows = follows or Follows()
    entry = (session_entry(identity),) if follows.enters_session else ()
    records = []
    for candidate in reply.candidates:
        turn, finish = candidate.turn, candidate.finish
        items: list[Item] = []
        for item in turn.items:
            if not is_filler(item):  # copied, so that it does not keep the whole body in memory
                items.append(replace(item, raw=item.raw.copy()) if item.raw else item)
        keys = spot.keys(items, identity)
        if keys:
            added = (spot.prefix(),) if spot.bound else ()
            keys = tuple(dict.fromkeys((*keys, *added, *spot.goes_on_from, *entry)))
            made = replace(provenance, carrier=turn.carriers[0]) if turn.carriers else provenance
            scope = spot.scope
            record = Record(
                RecordId(""),
                made,
                tuple(items),
                keys=keys,
                created_at=0.0,
                is_complete=finish is not None,
                frame=scope.frame,
                user=scope.user,
                tools=scope.tools,
                exact=spot.exact,
                parent=follows.parent,
                since=spot.since,
            )
            # The same turn captured twice is the same record, at any time.
            name = RecordId(digest(encode_record(record)).hex())
            done = replace(outcome, finish=finish.reason) if outcome and finish else outcome
            records.append(replace(record, id=name, created_at=now, outcome=done))
    return tuple(records)


def log_problem(what: str, problem: BaseException) -> None:
    """Log a problem without its own message, which might quote content."""
    where = "".join(traceback.format_tb(problem.__traceback__)[-3:])
    log.error("%s: %s\n%s", what, type(problem).__name__, where)
