"""What an upstream says, as a client's format can hold it, event by event.

    upstream's events ── ResponseTranslator ──> events that the client's encoder takes

Each answer of a response has its `AnswerTranslator`; here is what stands around them: the name of the response, usage,
failures.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.replay.findings import Finding
from thoughtline.translation.answers import AnswerTranslator
from thoughtline.translation.errors import error_in_stream
from thoughtline.translation.response_context import ResponseContext
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
from thoughtline.values.items import NO_RAW


class ResponseTranslator:
    """Events of an upstream in, events for a client out."""

    def __init__(self, context: ResponseContext) -> None:
        self._context = context
        self._to = FORMATS[context.to]
        self._goes_on = "goes_on_after_finish" in FORMATS[context.source].quirks
        self._answers: dict[int, AnswerTranslator] = {}
        self._ended: dict[int, TurnDone] = {}
        self._usage: UsageReported | None = None
        self._is_started = False
        self.findings: list[Finding] = []

    def grown(self, event: Event) -> Event | None:
        """What the client is to hear of more of an item that is open; None if it is something else."""
        if not isinstance(event, (TextDelta, ReasoningDelta)):
            return None
        answer = self._answers.get(event.choice)
        return answer.grown(event) if answer is not None else None

    def take(self, event: Event) -> list[Event]:
        """What the client is to hear of this event. Most events are more of an item that is open: they come first."""
        grown = self.grown(event)
        if grown is not None:
            return [grown]
        match event:
            case Started():
                return self._start(event)
            case UsageReported():
                return self._used(event)
            case Failed():
                return [*self._start(Started()), Failed(error_in_stream(event.error, self._context))]
            case Other():
                return [event] if self._is_started else []
            case TurnDone() if self._goes_on:
                self._ended[event.choice] = event
                return []
            case TextDelta() | ReasoningDelta() | CallDelta() | ItemDone() | Noted() | TurnDone():
                return [*self._start(Started()), *self._answer(event)]
            case _:
                assert_never(event)

    def finish(self) -> list[Event]:
        """The upstream has said all: what was held back."""
        ended = [one for event in self._ended.values() for one in self._answer(event)]
        self._ended = {}
        return [*ended, *([self._usage] if self._usage is not None else [])]

    def _start(self, event: Started) -> list[Event]:
        if self._is_started:
            return []
        self._is_started = True
        if self._context.name:
            return [Started(self._context.name, event.model, self._context.created)]
        prefix = self._to.response_prefix
        name = "".join(one if one.isalnum() or one in "-_" else "-" for one in event.id or self._context.ids.salt)
        name = name if name.startswith(prefix) else prefix + name
        return [Started(name, event.model, self._context.created)]

    def _used(self, event: UsageReported) -> list[Event]:
        plain = UsageReported(replace(event.usage, raw=NO_RAW))
        if "usage_last" not in self._to.quirks:
            return [plain]
        self._usage = plain if self._context.wants_usage else None
        return []

    def _answer(self, event: TextDelta | ReasoningDelta | CallDelta | ItemDone | Noted | TurnDone) -> list[Event]:
        if event.choice > 0 and "choices" not in self._to.quirks:
            return []
        answer = self._answers.get(event.choice)
        if answer is None:
            answer = self._answers[event.choice] = AnswerTranslator(event.choice, self._context, self.findings)
        answer.take(event)
        return answer.given()
