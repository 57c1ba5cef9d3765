"""Whole responses and streams for a client of another format, and conversions between the two.

events ── StreamTranslator ──> a stream            events ── whole_reply ──────> a whole body
Reply ─── stream_reply ──────> a stream            Reply ─── translate_reply ──> a whole body

All go through `ResponseTranslator`, event by event; each answer of a response has its `AnswerTranslator`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, assert_never

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import encode
from thoughtline.replay.findings import Finding
from thoughtline.translation.answers import AnswerTranslator
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.errors import ErrorReply
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
    fold,
)
from thoughtline.values.items import NO_RAW, REASONING_KINDS, Item, ReasoningText, Text
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply

_NOT_IN_A_NAME = re.compile(r"[^\w-]")


class Translated(NamedTuple):
    """A body for the client, and what it could not hold."""

    body: bytes
    findings: tuple[Finding, ...] = ()


def reply_events(reply: Reply) -> list[Event]:
    """A whole response as the events of an equivalent stream."""
    events: list[Event] = [Started(reply.id, reply.model, reply.created)]
    for candidate in reply.candidates:
        events += [Noted(candidate.index, candidate.notes)] if candidate.notes else []
        events += [ItemDone(candidate.index, at, item) for at, item in enumerate(candidate.turn.items)]
    if reply.usage is not None:
        events.append(UsageReported(reply.usage))
    events += [TurnDone(candidate.index, candidate.finish) for candidate in reply.candidates]
    return [*events, *([Failed(reply.error)] if reply.error is not None else [])]


def translate_reply(reply: Reply, context: ResponseContext) -> Translated:
    """Translate a whole response of the upstream."""
    if context.source == context.to and reply.body:
        return Translated(reply.body)
    return _whole(reply_events(reply), context)


def whole_reply(events: Iterable[Event], context: ResponseContext, edits: EditsEvents | None = None) -> Translated:
    """A whole response, built from the events of a stream."""
    if context.source == context.to:
        reply = replace(fold(_all_edited(list(events), edits), context.to), created=context.created)
        return Translated(FORMATS[context.to].bodies.encode_response(reply, context.source_dialect))
    return _whole(events, context, edits)


def stream_reply(reply: Reply, context: ResponseContext) -> Translated:
    """A stream, built from a whole response."""
    if context.source == context.to:
        encoder = FORMATS[context.to].stream_encoder(context.source_dialect)
        events = reply_events(replace(reply, created=context.created))
        return Translated(b"".join([*map(encoder.encode, events), encoder.finish()]))
    translator = StreamTranslator(context)
    chunk = translator.end(reply_events(reply))
    return Translated(chunk.data + chunk.ending, translator.findings)


def _whole(events: Iterable[Event], context: ResponseContext, edits: EditsEvents | None = None) -> Translated:
    translator = ResponseTranslator(context._replace(wants_usage=True))
    translated = [one for event in events for one in translator.feed(event)]
    folded = fold(_all_edited([*translated, *translator.finish()], edits), context.to)
    if "one_text" in FORMATS[context.to].quirks:
        folded = replace(folded, candidates=tuple(_in_one_field(one) for one in folded.candidates))
    return Translated(FORMATS[context.to].bodies.encode_response(folded, context.dialect), tuple(translator.findings))


def _in_one_field(candidate: Candidate) -> Candidate:
    """An answer with its reasoning in one piece and its text in one, before its calls."""
    items = candidate.turn.items
    thoughts = [item.text for item in items if isinstance(item, ReasoningText)]
    texts = [item.text for item in items if isinstance(item, Text)]
    rest = [item for item in items if not isinstance(item, (*REASONING_KINDS, Text))]
    first: list[Item] = []
    if thoughts:
        first.append(ReasoningText("\n\n".join(thoughts)))
    if texts:
        first.append(Text("".join(texts)))
    return replace(candidate, turn=replace(candidate.turn, items=(*first, *rest)))


class EditsEvents(Protocol):
    """Changes events on their way to the client."""

    def feed(self, event: Event) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class Chunk(NamedTuple):
    """Bytes for the client: `data` is sent at once, `ending`, which ends the client's turn, after the turn is saved."""

    data: bytes
    ending: bytes


class StreamTranslator:
    """Translates an upstream's events to a stream for the client. With `keeps_answer` the whole answer is available
    too.
    """

    def __init__(
        self, context: ResponseContext, edits: EditsEvents | None = None, *, keeps_answer: bool = False
    ) -> None:
        self._context = context
        self._edits = edits
        self._encoder = FORMATS[context.to].stream_encoder(context.dialect)
        self._translator = ResponseTranslator(context)
        self._kept: list[Event] | None = [] if keeps_answer else None
        self._is_ending = False
        self._has_failed = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._translator.findings)

    def feed(self, events: list[Event]) -> Chunk:
        """Translate more of the stream. Nearly always it continues one item and is written at once."""
        if len(events) == 1 and self._edits is None and not self._is_ending and not self._has_failed:
            grown = self._translator.grown(events[0])
            if grown is not None:
                return Chunk(self._encoder.encode(grown), b"")
        translated: list[Event] = []
        for event in events:
            translated += self._translator.feed(event)
        return self._chunk(translated if self._edits is None else _edited(translated, self._edits))

    def end(self, events: Iterable[Event]) -> Chunk:
        """Translate the last events of the upstream."""
        translated: list[Event] = []
        for event in events:
            translated += self._translator.feed(event)
        translated += self._translator.finish()
        chunk = self._chunk(translated if self._edits is None else _all_edited(translated, self._edits))
        last = b"" if self._has_failed else self._encoder.finish()
        self._is_ending = self._is_ending or bool(last)
        return chunk._replace(ending=chunk.ending + last)

    def pulse(self) -> bytes:
        """A keep-alive for the client while the turn is open."""
        return b"" if self._is_ending or self._has_failed else self._encoder.pulse()

    def fail(self, message: str) -> bytes:
        """An error of ours in mid-stream, in the client's format."""
        self._has_failed = True
        return self._encoder.encode(Failed(error_event(ErrorReply(502, message), self._context.to)))

    def take_answer(self) -> bytes:
        """The whole answer, once, after its end was written; empty before and after."""
        if not self._kept or not self._is_ending:
            return b""
        events, self._kept = self._kept, None
        return FORMATS[self._context.to].bodies.encode_response(fold(events, self._context.to), self._context.dialect)

    def _chunk(self, events: list[Event]) -> Chunk:
        if self._kept is not None:
            self._kept += without_deltas(events)
        data: list[bytes] = []
        ending: list[bytes] = []
        for event in events:
            if self._has_failed:
                break  # nothing follows an error
            self._is_ending = self._is_ending or (isinstance(event, TurnDone) and event.finish is not None)
            self._has_failed = self._has_failed or isinstance(event, Failed)
            (ending if self._is_ending else data).append(self._encoder.encode(event))
        return Chunk(b"".join(data), b"".join(ending))


def without_deltas(events: Iterable[Event]) -> list[Event]:
    """The events of a whole answer: each item once, complete."""
    return [event for event in events if not isinstance(event, (TextDelta, ReasoningDelta, CallDelta))]


def _all_edited(events: list[Event], edits: EditsEvents | None) -> list[Event]:
    return events if edits is None else [*_edited(events, edits), *edits.finish()]


def _edited(events: list[Event], edits: EditsEvents) -> list[Event]:
    return [one for event in events for one in edits.feed(event)]


# --- errors: the status and the provider's message stay ---------------------------------------------------------------


def translate_error(status: int, body: bytes, source: FormatName, to: FormatName) -> tuple[int, bytes]:
    """Translate an upstream's error for a client of another format."""
    return status, FORMATS[to].errors.write(FORMATS[source].errors.read(status, body))


def error_event(error: ErrorReply, to: FormatName) -> Raw:
    """An error as an event of a stream has it."""
    return Raw(encode(FORMATS[to].errors.object(error)))


def error_in_stream(error: Raw, context: ResponseContext) -> Raw:
    """An upstream's error in mid-stream, in the client's format. Its code may tell the status."""
    read = FORMATS[context.source].errors.read(500, bytes(error))
    code = read.code or ""
    is_status = code.isascii() and code.isdigit() and 400 <= int(code[:4]) < 600
    return error_event(replace(read, status=int(code)) if is_status else read, context.to)


# --- event by event ---------------------------------------------------------------------------------------------------


class ResponseTranslator:
    """Translates an upstream's events and handles everything outside the answers: the name of the response, usage,
    failures.
    """

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
        """The client's event for a delta of the open item; None for any other event."""
        if not isinstance(event, (TextDelta, ReasoningDelta)):
            return None
        answer = self._answers.get(event.choice)
        return answer.grown(event) if answer is not None else None

    def feed(self, event: Event) -> list[Event]:
        """The client's events for this event. Most events are deltas of the open item: they are checked first."""
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
        """Return the events held back until the upstream has finished."""
        events: list[Event] = []
        for event in self._ended.values():
            events += self._answer(event)
        self._ended = {}
        return events if self._usage is None else [*events, self._usage]

    def _start(self, event: Started) -> list[Event]:
        if self._is_started:
            return []
        self._is_started = True
        if self._context.name:
            return [Started(self._context.name, event.model, self._context.created)]
        prefix = self._to.response_prefix
        name = _NOT_IN_A_NAME.sub("-", event.id or self._context.ids.salt)
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
        if isinstance(event, TurnDone):
            event = TurnDone(event.choice, finish_for(self._context, event.finish))
        return answer.feed(event)


def finish_for(context: ResponseContext, finish: Finish | None) -> Finish | None:
    """The reason an answer ended, in values that the client's encoder understands."""
    source, to = FORMATS[context.source], FORMATS[context.to]
    if finish is None or "claude_finishes" in source.quirks & to.quirks:
        return finish
    if finish.reason == "error" and "no_failed_finish" in to.quirks:
        return Finish("stop", "")
    return Finish(finish.reason, "")
