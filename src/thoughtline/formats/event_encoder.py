"""What all stream encoders share: which method writes which event, and what they remember of the turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import assert_never

from msgspec import Raw

from thoughtline.providers import Dialect
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


class EventEncoder(ABC):
    """Events in, bytes of a stream out; a format says how each kind of event is written."""

    keep_alive = b""
    """What stands for an event that says nothing about the turn."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._started = Started()
        self._finish: Finish | None = None
        self._usage: Usage | None = None

    def encode(self, event: Event) -> bytes:
        """The bytes that say what this event says."""
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

    @abstractmethod
    def _text(self, event: TextDelta) -> bytes: ...

    @abstractmethod
    def _reasoning(self, event: ReasoningDelta) -> bytes: ...

    @abstractmethod
    def _item_done(self, event: ItemDone) -> bytes: ...

    @abstractmethod
    def _fail(self, error: Raw) -> bytes: ...

    def _call(self, event: CallDelta) -> bytes:
        return b""  # a call comes whole

    def _start(self, event: Started) -> bytes:
        return b""

    def _note(self, event: Noted) -> bytes:
        return b""  # it stands on the words, or has no place

    def _turn_done(self, event: TurnDone) -> bytes:
        return b""

    def _report(self, usage: Usage) -> bytes:
        return b""
