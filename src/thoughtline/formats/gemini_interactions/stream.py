"""Streams of interactions, decoded and encoded: steps that start, grow and stop.

The signature of a thought comes several times, empty first, between pieces of its summary: the last non-empty one
counts (recorded).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import ServerSentEvents, sse
from thoughtline.formats.gemini_interactions.bodies import FINISH, USAGE, encode_interaction, interaction_decoder
from thoughtline.formats.gemini_interactions.steps import Content, Step, decode_step, encode_step, step_decoder
from thoughtline.formats.json_text import (
    NULL,
    as_text,
    decode,
    decode_kind,
    encode,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.streaming import BlockCursor, EventEncoder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Texts, TextSpot, contents, inner, objects
from thoughtline.providers import INTERACTIONS, Dialect
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.items import Item, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Finish

MAX_STEPS = 10_000
"""No answer has this many steps; a stream that opens more is rejected."""

_GROWS: dict[str, type[ReasoningDelta | TextDelta | CallDelta]] = {
    "thought_summary": ReasoningDelta,
    "text": TextDelta,
    "arguments_delta": CallDelta,
}
_KNOWN = (*_GROWS, "thought_signature")
_GROWING = ("thought", "model_output", "function_call")


class _Event(Struct, gc=False):
    event_type: str = ""
    index: int = 0
    step: Raw = NULL
    delta: Raw = NULL
    interaction: Raw = NULL
    error: Raw = NULL
    metadata: dict[str, Raw] | None = None


class _Delta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    content: Content | None = None
    signature: str | None = None
    arguments: str | None = None

    @property
    def growth(self) -> str:
        """The text by which the step grows."""
        return self.text or self.arguments or (self.content.text if self.content is not None else None) or ""


_decode_event = msgspec.json.Decoder(_Event).decode
_delta_decoder = msgspec.json.Decoder(_Delta)


class _Draft(Struct):
    """A step under construction: its announced part and the content of its deltas."""

    raw: Raw
    step: Step
    pieces: list[str] = []
    signature: str = ""
    more: dict[str, bytes] = {}

    def item(self, dialect: Dialect, *, is_whole: bool) -> Item:
        """The step as an item. One that was cut off has no signature."""
        text = "".join(self.pieces)
        match self.step.type:
            case "thought":
                signature = (self.signature or self.step.signature) if is_whole else None
                return ReasoningText(text, signature or None, dialect.reasoning_format)
            case "model_output":
                return Text(text)
            case "function_call":
                arguments = text or (as_text(self.step.arguments) if is_given(self.step.arguments) else "{}")
                return ToolCall(self.step.name or "", arguments, self.step.id)
            case _:
                whole = set_members(self.raw, list(self.more.items())) if self.more else self.raw
                return decode_step(Raw(whole), dialect)[1][0]


class StreamDecoder(PayloadStreamDecoder):
    def __init__(self, dialect: Dialect = INTERACTIONS) -> None:
        super().__init__(ServerSentEvents())
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._usage = NULL
        self._is_started = False
        self._is_ended = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        event = _decode_event(payload)
        if event.metadata is not None and is_given(usage := event.metadata.get("usage", NULL)):
            self._usage = usage.copy()
        match event.event_type:
            case "interaction.created":
                self._start(event.interaction, events)
            case "step.start":
                self._open(event, events)
            case "step.delta":
                self._grow(event, events)
            case "step.stop":
                self._stop(event.index, events)
            case "interaction.completed":
                self._end(event.interaction, events)
            case "error":
                events.append(Failed(event.error.copy() if is_given(event.error) else Raw(payload)))
            case _ if is_given(event.error):
                events.append(Failed(event.error.copy()))
            case _:
                events.append(Other(Raw(payload)))

    def _start(self, interaction: Raw, events: list[Event]) -> None:
        if self._is_started:
            return
        self._is_started = True
        named = decode(interaction_decoder, interaction, "/interaction") if is_given(interaction) else None
        events.append(Started(named.id if named else None, named.model if named else None))

    def _open(self, event: _Event, events: list[Event]) -> None:
        if len(self._drafts) >= MAX_STEPS or not 0 <= event.index < MAX_STEPS:
            raise LimitExceeded(f"more than {MAX_STEPS} steps in one answer")
        self._start(NULL, events)
        step = decode_kind(step_decoder, event.step, _GROWING, "/step")
        draft = _Draft(event.step.copy(), step if isinstance(step, Step) else Step(step))
        self._drafts[event.index] = draft
        if draft.step.type == "function_call":
            events.append(CallDelta(0, event.index, "", draft.step.id, draft.step.name))

    def _grow(self, event: _Event, events: list[Event]) -> None:
        draft = self._drafts.get(event.index)
        if draft is None:
            return
        delta = decode_kind(_delta_decoder, event.delta, _KNOWN, "/delta")
        if isinstance(delta, str) or delta.type not in _KNOWN:
            draft.more |= {name: bytes(value) for name, value in members(event.delta).items() if name != "type"}
            return
        if delta.type == "thought_signature":
            draft.signature = delta.signature or draft.signature
        elif text := delta.growth:
            draft.pieces.append(text)
            events.append(_GROWS[delta.type](0, event.index, text))

    def _stop(self, index: int, events: list[Event], *, is_whole: bool = True) -> None:
        draft = self._drafts.pop(index, None)
        if draft is not None:
            events.append(ItemDone(0, index, draft.item(self._dialect, is_whole=is_whole)))

    def _end(self, interaction: Raw, events: list[Event]) -> None:
        if self._is_ended or not is_given(interaction):
            return
        self._is_ended = True
        self._start(interaction, events)
        for index in sorted(self._drafts):
            self._stop(index, events)
        whole = decode(interaction_decoder, interaction, "/interaction")
        self._report(whole.usage if is_given(whole.usage) else self._usage, events)
        if is_given(whole.error):
            events.append(Failed(whole.error.copy()))
        events.append(TurnDone(0, FINISH.decode(whole.status)))

    def _report(self, usage: Raw, events: list[Event]) -> None:
        if is_given(usage):
            events.append(UsageReported(USAGE.decode(usage)))

    def _close(self, events: list[Event]) -> None:
        if self._is_ended or not self._is_started:
            return
        for index in sorted(self._drafts):
            self._stop(index, events, is_whole=False)
        self._report(self._usage, events)
        events.append(TurnDone(0, None))


class StreamEncoder(EventEncoder):
    def __init__(self, dialect: Dialect = INTERACTIONS) -> None:
        super().__init__(dialect)
        self._cursor = BlockCursor()

    def _start(self, event: Started) -> bytes:
        return _written("interaction.created", ("interaction", self._interaction(None)))

    def _text(self, event: TextDelta) -> bytes:
        opened = self._enter(event.choice, event.position, b'{"type":"model_output"}')
        return opened + self._grow({"type": "text", "text": event.text})

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        opened = self._enter(event.choice, event.position, b'{"type":"thought"}')
        return opened + self._grow({"type": "thought_summary", "content": {"type": "text", "text": event.text}})

    def _call(self, event: CallDelta) -> bytes:
        step = {"type": "function_call", "id": event.id or "", "name": event.name or "", "arguments": {}}
        opened = self._enter(event.choice, event.position, encode(step))
        if not event.arguments:
            return opened
        return opened + self._grow({"type": "arguments_delta", "arguments": event.arguments})

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        step = encode_step(item, self._dialect)  # rejects another provider's seal
        if event.position not in self._cursor.entered:
            return self._whole(event.choice, event.position, item, step)
        if self._cursor.open != event.position:
            return b""
        return self._signed(item) + self._leave()

    def _whole(self, choice: int, position: int, item: Item, step: bytes) -> bytes:
        """An item without deltas."""
        match item:
            case ReasoningText():
                opened = self._enter(choice, position, b'{"type":"thought"}')
                thought = self._reasoning(ReasoningDelta(choice, position, item.text)) if item.text else b""
                return opened + thought + self._signed(item) + self._leave()
            case Text():
                return self._text(TextDelta(choice, position, item.text)) + self._leave()
            case ToolCall():
                return self._call(CallDelta(choice, position, item.arguments, item.id, item.name)) + self._leave()
            case _:
                return self._enter(choice, position, step) + self._leave()

    def _signed(self, item: Item) -> bytes:
        if not isinstance(item, ReasoningText) or not item.signature:
            return b""
        return self._grow({"type": "thought_signature", "signature": item.signature})

    def _turn_done(self, event: TurnDone) -> bytes:
        return self._leave()

    def _fail(self, error: Raw) -> bytes:
        return _written("error", ("error", error))

    def finish(self) -> bytes:
        """The end of the stream; nothing if the turn was cut off."""
        if self._finish is None:
            return b""
        done = _written("interaction.completed", ("interaction", self._interaction(self._finish)))
        return done + b"event: done\ndata: [DONE]\n\n"

    def _interaction(self, finish: Finish | None) -> bytes:
        return encode_interaction(self._started.id, self._started.model, finish, self._usage)

    def _enter(self, choice: int, position: int, step: bytes) -> bytes:
        """Open the step at this position unless it is open."""
        if self._cursor.open == position:
            return b""
        left = self._leave()
        self._cursor.enter(choice, position)
        return left + _written("step.start", ("index", encode(self._cursor.index)), ("step", step))

    def _grow(self, delta: object) -> bytes:
        return _written("step.delta", ("index", encode(self._cursor.index)), ("delta", encode(delta)))

    def _leave(self) -> bytes:
        index = self._cursor.leave()
        return b"" if index is None else _written("step.stop", ("index", encode(index)))


def _written(name: str, *members: tuple[str, bytes | Raw]) -> bytes:
    return sse(object_of([*members, ("event_type", encode(name))]), name)


# --- positions of visible text ----------------------------------------------------------------------------------------


def _event(value: Json) -> Reading:
    key = (value.get("index", 0),)
    match value.get("event_type"):
        case "step.delta":
            delta = inner(value, "delta")
            is_text = delta.get("type") == "text" and isinstance(delta.get("text"), str)
            return Reading((TextSpot(key, ("delta", "text"), delta["text"], ("delta",)),)) if is_text else NOTHING
        case "step.stop":
            return Reading((), (key,))
        case "interaction.completed" | "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _body(value: Json) -> Iterator[TextSpot]:
    for at, step in objects(value.get("steps")):
        if step.get("type") == "model_output":
            yield from contents(step.get("content"), (at,), ("steps", at, "content"), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents)
