"""Shared code of all stream decoders (framing, positions of errors, the state after an error) and of all encoders.

Events before an error are returned first, the error is raised at the next call, so that a reader sees the same however
the bytes are split. A decoder that has failed stays failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import Framing
from thoughtline.formats.nesting import MAX_NESTING, TOO_DEEP, check_nesting
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, EncodeError, LimitExceeded
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Noted,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.turns import Finish, Usage

_END_MARKS = (b"[DONE]", b"")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DecodeError)


class PayloadStreamDecoder(ABC):
    """Decodes the bytes of a stream to events; a format decodes single payloads."""

    has_end_mark = True
    """Whether a payload that is not JSON may mark the end of the stream."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._frames_of = framing.feed
        self._failure: DecodeError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._failure is not None:
            raise self._failure
        events: list[Event] = []
        try:
            for frame in self._frames_of(data):
                payload = frame.payload
                try:
                    if payload:
                        if len(payload) > MAX_NESTING:
                            check_nesting(payload)
                        self._consume(payload, events)
                except msgspec.DecodeError:
                    if not self.has_end_mark or payload.strip() not in _END_MARKS:
                        raise
        except _UNREADABLE as error:
            self._failure = _named(error)
            if not events:
                raise self._failure from None
        return events

    def finish(self) -> list[Event]:
        """The stream has ended: the remaining events, and the end of every open turn."""
        if self._failure is not None:
            raise self._failure
        events: list[Event] = []
        try:
            for frame in self._framing.finish():
                if frame.payload:
                    self._consume_last(frame.payload, events)
            self._close(events)
        except _UNREADABLE as error:
            raise _named(error) from None
        return events

    def _consume_last(self, payload: bytes, events: list[Event]) -> None:
        with suppress(*_UNREADABLE):  # cut off in the middle of an event: the missing finish reports it
            self._consume(payload, events)

    @abstractmethod
    def _consume(self, payload: bytes, events: list[Event]) -> None:
        """Decode one payload."""

    @abstractmethod
    def _close(self, events: list[Event]) -> None:
        """End everything that the stream left open."""


class IndexOrder(Struct):
    """Items in the order of their index, even if a host ends a later one first or announces one only at the end."""

    _next: int = 0
    waiting: dict[int, list[ItemDone]] = {}

    def done(self, index: int, items: list[ItemDone], events: list[Event]) -> None:
        """Return these items as soon as all before them were returned; an index that comes again adds to it."""
        if index < self._next:
            events += items
            return
        self.waiting.setdefault(index, []).extend(items)
        while self._next in self.waiting:
            events += self.waiting.pop(self._next)
            self._next += 1

    def flush(self, events: list[Event]) -> None:
        """Nothing more will come: return items that still wait for a missing index."""
        for index in sorted(self.waiting):
            events += self.waiting[index]
        self.waiting.clear()


class BlockCursor(Struct):
    """The open block of a written stream: its position and its number."""

    index: int = 0
    entered: set[int] = set()
    open: int | None = None

    def enter(self, choice: int, position: int) -> None:
        """Open a new block, for an item without one."""
        if choice != 0:
            raise EncodeError("a stream of this format holds one answer")
        if position in self.entered:
            raise EncodeError("a block that has ended can't grow")
        self.open = position
        self.entered.add(position)

    def leave(self) -> int | None:
        """Close the open block; returns its number, or None if there is none."""
        if self.open is None:
            return None
        self.open = None
        self.index += 1
        return self.index - 1


def _named(error: Exception) -> DecodeError:
    place = "stream"
    if isinstance(error, LimitExceeded):
        return LimitExceeded(error.problem, place).from_upstream()
    if isinstance(error, DecodeError):
        return error.within(place).from_upstream()
    if isinstance(error, RecursionError):
        return LimitExceeded(TOO_DEEP, place).from_upstream()
    if isinstance(error, UnicodeDecodeError):
        return DecodeError("invalid UTF-8 in a string", place).from_upstream()
    return DecodeError(str(error).replace("`", ""), place).from_upstream()


class EventEncoder(ABC):
    """Encodes events to the bytes of a stream; a format encodes each kind of event."""

    keep_alive = b""
    """The bytes for an event that has no content."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._started = Started()
        self._finish: Finish | None = None
        self._usage: Usage | None = None

    def encode(self, event: Event) -> bytes:
        """The bytes for this event."""
        match event:
            case TextDelta():
                return self._text(event)
            case ReasoningDelta():
                return self._reasoning(event)
            case CallDelta():
                return self._call(event)
            case ItemDone():
                return self._item_done(event)
            case Started():
                self._started = event
                return self._start(event)
            case Noted():
                return self._note(event)
            case TurnDone():
                self._finish = event.finish
                return self._turn_done(event)
            case UsageReported():
                self._usage = event.usage
                return self._report(event.usage)
            case Failed():
                return self._fail(event.error)
            case Other():
                return self.keep_alive
            case _:
                assert_never(event)

    @abstractmethod
    def finish(self) -> bytes:
        """The end of the stream."""

    def pulse(self) -> bytes:
        """A keep-alive between two events; empty if the format has none."""
        return self.keep_alive

    @abstractmethod
    def _text(self, event: TextDelta) -> bytes: ...

    @abstractmethod
    def _reasoning(self, event: ReasoningDelta) -> bytes: ...

    @abstractmethod
    def _item_done(self, event: ItemDone) -> bytes: ...

    @abstractmethod
    def _fail(self, error: Raw) -> bytes: ...

    def _call(self, event: CallDelta) -> bytes:
        return b""  # a call is written complete

    def _start(self, event: Started) -> bytes:
        return b""

    def _note(self, event: Noted) -> bytes:
        return b""  # it is written with the text, or has no place

    def _turn_done(self, event: TurnDone) -> bytes:
        return b""

    def _report(self, usage: Usage) -> bytes:
        return b""
