"""Whole responses and streams for a client of another format, and each made from the other.

Reply ── translate_reply ──> a whole body          bytes ── StreamTranslator ──> bytes, and events for capture
Reply ── stream_reply ─────> a stream              events ── whole_reply ──────> a whole body
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.replay.capture import fold
from thoughtline.replay.findings import Finding
from thoughtline.translation.errors import error_event
from thoughtline.translation.outward import Outward
from thoughtline.translation.ways import Way
from thoughtline.values.errors import ErrorReply
from thoughtline.values.events import Event, Failed, ItemDone, Noted, Started, TurnDone, UsageReported
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningText, Text
from thoughtline.values.turns import Candidate, Reply


class Translated(NamedTuple):
    """A body for the client, and what it could not hold."""

    body: bytes
    findings: tuple[Finding, ...] = ()


def reply_events(reply: Reply) -> list[Event]:
    """A whole response as the events of a stream that says the same."""
    events: list[Event] = [Started(reply.id, reply.model, reply.created)]
    for candidate in reply.candidates:
        events += [Noted(candidate.index, candidate.notes)] if candidate.notes else []
        events += [ItemDone(candidate.index, at, item) for at, item in enumerate(candidate.turn.items)]
    if reply.usage is not None:
        events.append(UsageReported(reply.usage))
    events += [TurnDone(candidate.index, candidate.finish) for candidate in reply.candidates]
    return [*events, *([Failed(reply.error)] if reply.error is not None else [])]


def translate_reply(reply: Reply, way: Way) -> Translated:
    """A whole response of the upstream's for the client."""
    if way.source == way.to and reply.body:
        return Translated(reply.body)
    return _whole(reply_events(reply), way)


def whole_reply(events: Iterable[Event], way: Way) -> Translated:
    """A whole response made from the events of a stream."""
    if way.source == way.to:
        reply = replace(fold(events, way.to), created=way.created)
        return Translated(FORMATS[way.to].bodies.encode_response(reply, way.source_dialect))
    return _whole(events, way)


def stream_reply(reply: Reply, way: Way) -> Translated:
    """A stream made from a whole response."""
    if way.source == way.to:
        encoder = FORMATS[way.to].stream_encoder(way.source_dialect)
        said = reply_events(replace(reply, created=way.created))
        return Translated(b"".join([*map(encoder.encode, said), encoder.finish()]))
    outward = Outward(way)
    encoder = FORMATS[way.to].stream_encoder(way.dialect)
    events = [one for event in reply_events(reply) for one in outward.take(event)]
    data = b"".join([*map(encoder.encode, [*events, *outward.finish()]), encoder.finish()])
    return Translated(data, tuple(outward.findings))


def _whole(events: Iterable[Event], way: Way) -> Translated:
    outward = Outward(way._replace(wants_usage=True))
    said = [one for event in events for one in outward.take(event)]
    folded = fold([*said, *outward.finish()], way.to)
    if "one_text" in FORMATS[way.to].quirks:
        folded = replace(folded, candidates=tuple(_in_one_field(one) for one in folded.candidates))
    return Translated(FORMATS[way.to].bodies.encode_response(folded, way.dialect), tuple(outward.findings))


def _in_one_field(candidate: Candidate) -> Candidate:
    """An answer with its reasoning in one piece and its text in one, before its calls."""
    items = candidate.turn.items
    thoughts = [item.text for item in items if isinstance(item, ReasoningText)]
    texts = [item.text for item in items if isinstance(item, Text)]
    rest = [item for item in items if not isinstance(item, (*REASONING_KINDS, Text))]
    said: list[Item] = []
    if thoughts:
        said.append(ReasoningText("\n\n".join(thoughts)))
    if texts:
        said.append(Text("".join(texts)))
    return replace(candidate, turn=replace(candidate.turn, items=(*said, *rest)))


class Chunk(NamedTuple):
    """What some bytes of the upstream's amount to.

    `data` is for the client at once; `ending` tells it that its turn is over, and may be held until the turn is saved.
    `events` are the upstream's own, for capture.
    """

    data: bytes
    ending: bytes
    events: list[Event]


class StreamTranslator:
    """Bytes of an upstream's stream in, bytes for the client out; in one and the same format, the very bytes."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._is_same = way.source == way.to
        self._decoder = FORMATS[way.source].stream_decoder(way.source_dialect)
        self._encoder = FORMATS[way.to].stream_encoder(way.dialect)
        self._outward = Outward(way)
        self._is_ending = False
        self._has_failed = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._outward.findings)

    def feed(self, data: bytes) -> Chunk:
        """More of the stream. Bytes that can't be read raise `DecodeError`: `fail` says so to the client."""
        events = self._decoder.feed(data)
        if self._is_same:
            return Chunk(data, b"", events)
        said = [one for event in events for one in self._outward.take(event)]
        return self._chunk(events, said)

    def finish(self) -> Chunk:
        """The upstream has ended."""
        events = self._decoder.finish()
        if self._is_same:
            return Chunk(b"", b"", events)
        said = [one for event in events for one in self._outward.take(event)]
        chunk = self._chunk(events, [*said, *self._outward.finish()])
        last = b"" if self._has_failed else self._encoder.finish()
        return chunk._replace(ending=chunk.ending + last)

    def fail(self, message: str) -> bytes:
        """An error of ours in mid-stream, as the client's format tells it."""
        self._has_failed = True
        return self._encoder.encode(Failed(error_event(ErrorReply(502, message), self._way.to)))

    def _chunk(self, events: list[Event], said: list[Event]) -> Chunk:
        data: list[bytes] = []
        ending: list[bytes] = []
        for event in said:
            if self._has_failed:
                break  # nothing follows an error
            self._is_ending = self._is_ending or (isinstance(event, TurnDone) and event.finish is not None)
            self._has_failed = self._has_failed or isinstance(event, Failed)
            (ending if self._is_ending else data).append(self._encoder.encode(event))
        return Chunk(b"".join(data), b"".join(ending), events)
