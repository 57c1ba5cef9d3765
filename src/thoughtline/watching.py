"""Reading a copy of a response: what it said so far, and when a turn is over.

A watch never raises and never holds anything back: what it can't read, or what grows beyond its bound, it stops
reading, and says so. Its records can be taken whenever a turn has ended, and once more at the end of the response, for
turns that were cut short.
"""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.continuity.tagged_events import shown_items
from thoughtline.continuity.tags import TagMode
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight
from thoughtline.replay.capture import captured_at, end_of
from thoughtline.replay.keys import Spot
from thoughtline.replayer import Prepared
from thoughtline.sessions import untold_session
from thoughtline.translation import with_made_ids
from thoughtline.values.errors import DecodeError, LimitExceeded
from thoughtline.values.events import Event, Failed, ItemDone, Started, TurnDone
from thoughtline.values.items import Item
from thoughtline.values.records import Outcome, Record
from thoughtline.values.turns import Candidate, Finish, Provenance, Reply, Turn

MAX_BYTES = 32 * 2**20
"""As much of a response as is read: a model's longest answer is well below 1 MB; images may be many."""


class Watch:
    """What is remembered of the response to one request."""

    def __init__(
        self, prepared: Prepared, max_bytes: int = MAX_BYTES, tags: TagMode = "off", *, shows_seals: bool = True
    ) -> None:
        # Of the request, which may be long, only this: it need not stay for as long as it is answered.
        self._format, self._dialect = prepared.destination.format, prepared.contract.dialect
        self._made = _made(prepared)
        self._call_ids = prepared.carried.call_ids
        self._tags: TagMode = tags
        self._shows_seals = shows_seals
        self._left = max_bytes
        self._items: dict[int, list[Item]] = {}
        self._ended: dict[int, Finish | None] = {}
        self._carriers: dict[int, tuple[str, ...]] = {}
        self._taken: set[int] = set()
        self._started = Started()
        self._has_failed = False
        self.problem: DecodeError | None = None

    @property
    def has_news(self) -> bool:
        """Whether a turn has ended whose record was not taken yet."""
        return len(self._ended) > len(self._taken)

    def read_whole(self, body: bytes) -> None:
        """A response that is one body."""
        wire = FORMATS[self._format]
        try:
            if len(body) > self._left:
                raise LimitExceeded("a response that is too large to remember")
            check_weight(body)
            reply = wire.bodies.decode_response(body, self._dialect)
        except DecodeError as problem:
            self.problem = problem
            return
        self._started = Started(reply.id, reply.model)
        for candidate in reply.candidates:
            self._items[candidate.index] = list(candidate.turn.items)
            self._ended[candidate.index] = candidate.finish
            self._carriers[candidate.index] = candidate.turn.carriers

    def hear(self, events: list[Event]) -> None:
        """Events of a stream."""
        for event in events:
            match event:
                case ItemDone():
                    self._items.setdefault(event.choice, []).append(event.item)
                case TurnDone():
                    self._ended[event.choice] = event.finish
                    self._carriers[event.choice] = event.carriers
                case Started():
                    self._started = event
                case Failed():
                    self._has_failed = True
                case _:
                    pass

    def _shown(self, choice: int) -> tuple[Item, ...]:
        """As the client was shown them: it will be known again by that."""
        shown = shown_items(tuple(self._items.get(choice, ())), self._tags, shows_seals=self._shows_seals)
        return with_made_ids(shown, self._call_ids, choice) if self._call_ids is not None else shown

    def _turn(self, choice: int) -> Turn:
        return Turn("assistant", self._shown(choice), carriers=self._carriers.get(choice, ()))

    def take(self, now: float, outcome: Outcome) -> tuple[Record, ...]:
        """The records of the turns that have ended since the last time."""
        new = sorted(self._ended.keys() - self._taken)
        self._taken.update(new)
        if self._made is None or not new:
            return ()
        candidates = tuple(
            Candidate(self._turn(choice), choice, self._ended[choice])
            for choice in new
            if not (self._has_failed and self._ended[choice] is None and not self._items.get(choice))
        )
        reply = Reply(self._format, candidates, b"", self._started.id, self._started.model)
        spot, made = self._made
        made = replace(made, model_answered=reply.model) if reply.model else made
        return captured_at(spot, reply, made, now, outcome)


def _made(prepared: Prepared) -> tuple[Spot, Provenance] | None:
    """Where the answer to a request stands, and where it comes from; None if the request could not be read."""
    if prepared.transcript is None:
        return None
    made = provenance_of(prepared)
    end = prepared.needed.end if prepared.needed else None
    return end or end_of(prepared.transcript, made), made


def provenance_of(prepared: Prepared) -> Provenance:
    """Where the answer to a request comes from, and whose it is; as long as it says no other, of the model asked."""
    where, who, transcript = prepared.destination, prepared.identity, prepared.transcript
    assert transcript is not None
    return Provenance(
        who.tenant,
        where.provider,
        where.endpoint,
        where.account,
        where.model,
        where.model,
        where.format,
        prepared.contract.dialect.name,
        who.session or (prepared.handover.session if prepared.handover else untold_session(transcript)),
        who.agent,
    )


class StreamWatch(Watch):
    """A watch on a stream: bytes in, cut anywhere. `unended_bytes` are those since it last heard an event."""

    def __init__(self, prepared: Prepared, max_bytes: int = MAX_BYTES, tags: TagMode = "off") -> None:
        super().__init__(prepared, max_bytes, tags, shows_seals=False)  # words come first, their seal behind them
        wire = FORMATS[prepared.destination.format]
        self._decoder = wire.stream_decoder(prepared.contract.dialect)
        self.unended_bytes = 0

    def feed(self, data: bytes) -> bool:
        """Read on; whether a turn has ended in these bytes."""
        if self.problem is not None:
            return False
        self._left -= len(data)
        if self._left < 0:
            self.problem = LimitExceeded("a stream that is too long to remember").from_upstream()
            return False
        try:
            events = self._decoder.feed(data)
        except DecodeError as problem:
            self.problem = problem
            return False
        self.unended_bytes = 0 if events else self.unended_bytes + len(data)
        self.hear(events)
        return self.has_news

    def finish(self) -> bool:
        """The stream is over; whether that ended a turn."""
        if self.problem is None:
            try:
                self.hear(self._decoder.finish())
            except DecodeError as problem:
                self.problem = problem
        return self.has_news
