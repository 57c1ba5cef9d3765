"""A message that arrives in pieces. When it ends it becomes the message that would have come whole, and is read so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Raw, Struct, field

from thoughtline.formats import think_tags
from thoughtline.formats.json_text import NULL, is_given
from thoughtline.formats.openai_chat.messages import (
    Call,
    Function,
    Message,
    answer_tail,
    carrier_among,
    chunk_carrier,
    decode_part,
    field_reasoning,
    text_of,
)
from thoughtline.formats.openai_chat.notes import decode_annotations, with_addresses
from thoughtline.formats.reasoning_details import DetailsMerger
from thoughtline.providers import Dialect
from thoughtline.values.events import CallDelta, Event, ItemDone, Noted, ReasoningDelta, TextDelta
from thoughtline.values.items import Item, ReasoningText, Text
from thoughtline.values.notes import Notes, together

_MOST_TELLINGS = 16
"""How often the reasoning of one answer is told before its end: each costs as much as it is long."""

_LEGACY = -1
"""The index of a `function_call`, which has none."""


class FunctionDelta(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None
    input: str | None = None


class ToolCallDelta(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    custom: FunctionDelta | None = None
    extra_content: Raw = NULL


class Delta(Struct, gc=False):
    """The members of a delta that we read."""

    content: str | list[Raw] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Raw] | None = None
    tool_calls: list[ToolCallDelta] | None = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    thinking: Raw = NULL
    extra_content: Raw = NULL
    refusal: str | None = None
    function_call: FunctionDelta | None = None
    annotations: Raw = NULL


def _texts_of(delta: Delta) -> tuple[str, ...]:
    texts = (("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning))
    return tuple(name for name, text in texts if text) or ("thinking",)


class _Piecewise(Struct):
    """Text or thinking in the content that grows, at its position in the answer."""

    kind: Literal["text", "thinking"]
    position: int
    pieces: list[str] = []


class _Call(Struct):
    """A tool call that grows."""

    position: int
    index: int | None
    id: str | None = None
    name: str = ""
    arguments: list[str] = []
    is_custom: bool = False
    extra: Raw = NULL

    def whole(self) -> Call:
        text = "".join(self.arguments)
        if self.is_custom:
            return Call(self.id, None, Function(self.name, None, text), self.extra)
        return Call(self.id, Function(self.name, text), None, self.extra)


class MessageDraft(Struct):
    """One choice of a stream."""

    choice: int
    _dialect: Dialect
    is_done: bool = False
    notes: list[Notes] = []
    addresses: Raw = NULL
    _next_position: int = 0
    _has_given: bool = False
    _has_news: bool = False
    _tellings: int = 0
    _reasoning: list[str] = []
    _reasoning_position: int = -1
    _told_in: tuple[str, ...] = ()
    _details: DetailsMerger = field(default_factory=DetailsMerger)
    _contents: list[_Piecewise | Item] = []
    _text: _Piecewise | None = None
    _calls: list[_Call] = []
    _copilot: list[str] = []
    _opaque: str | None = None
    _extra: Raw = NULL
    _refusal: list[str] = []
    _splitter: think_tags.Splitter | None = None

    def __post_init__(self) -> None:
        if self._dialect.carrier == "think_tags":
            self._splitter = think_tags.Splitter()

    def add(self, delta: Delta, events: list[Event]) -> None:
        """Take one delta in. Order of the checks: what comes most often first."""
        thought = delta.reasoning_content or delta.reasoning
        if delta.thinking is not NULL:
            thought = thought or text_of(delta.thinking)
        if thought:
            if not self._reasoning:
                self._told_in = _texts_of(delta)
            self._reasoning.append(thought)
            position = self._reasoning_position
            if position < 0:
                position = self._position_of_reasoning()
            events.append(ReasoningDelta(self.choice, position, thought))
        content = delta.content
        if content:
            text = self._text
            if text is not None and content.__class__ is str and self._splitter is None:
                text.pieces.append(content)
                events.append(TextDelta(self.choice, text.position, content))
            elif isinstance(content, str):
                self.add_content(content, events)
            else:
                self._add_parts(content, events)
        if delta.tool_calls or delta.reasoning_details or delta.reasoning_text or delta.reasoning_opaque:
            self._add_structured(delta, bool(thought), events)
        if delta.refusal or delta.function_call is not None or delta.extra_content is not NULL:
            self._add_rare(delta, events)
        if delta.annotations is not NULL:
            self.notes.append(decode_annotations(delta.annotations))

    def _position_of_reasoning(self) -> int:
        if self._reasoning_position < 0:
            self._reasoning_position = self._take_position()
        return self._reasoning_position

    def _take_position(self) -> int:
        self._next_position += 1
        return self._next_position - 1

    def add_content(self, content: str, events: list[Event]) -> None:
        if self._splitter is not None:
            thought, content = self._splitter.feed(content)
            self.add_thinking(thought, events)
        if content:
            draft = self._text
            if draft is None:
                self._tell_reasoning(events)
                draft = self._text = self._open_content("text")
            draft.pieces.append(content)
            events.append(TextDelta(self.choice, draft.position, content))

    def add_thinking(self, thought: str, events: list[Event]) -> None:
        """Reasoning that stands in the content."""
        if thought:
            last = self._contents[-1] if self._contents else None
            if not isinstance(last, _Piecewise) or last.kind != "thinking":
                last = self._open_content("thinking")
            self._text = None
            last.pieces.append(thought)
            events.append(ReasoningDelta(self.choice, last.position, thought))

    def _open_content(self, kind: Literal["text", "thinking"]) -> _Piecewise:
        draft = _Piecewise(kind, self._take_position())
        self._contents.append(draft)
        return draft

    def _add_parts(self, parts: list[Raw], events: list[Event]) -> None:
        for raw in parts:
            match decode_part(raw.copy(), self._dialect):
                case ReasoningText(text=text) as chunk:
                    self._told_in = self._told_in or (chunk_carrier(chunk),)
                    self.add_thinking(text, events)
                case Text(text=text):
                    self.add_content(text, events)
                case other:
                    self._contents.append(other)
                    self._text = None
                    self._give_contents(events)  # in its place between what was said before and after it

    def _tell_reasoning(self, events: list[Event]) -> None:
        """Something else begins: what is known of sealed reasoning, again where it has grown since."""
        if self._has_news and self._tellings < _MOST_TELLINGS:
            self._has_news = False
            self._tellings += 1
            known = tuple(field_reasoning(self._fields(), self._dialect))
            events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), "", known=known))

    def _tell_seal(self, call: _Call, events: list[Event]) -> None:
        """A call that comes with its seal: Gemini's, which comes whole."""
        if is_given(call.extra):
            sealed = answer_tail(Message(role="assistant", tool_calls=[call.whole()]))
            events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), "", known=tuple(sealed)))

    def add_call(self, delta: ToolCallDelta, events: list[Event]) -> None:
        count = len(self._calls)
        call = self._call_for(delta)
        is_new = len(self._calls) > count
        function = delta.function or delta.custom or FunctionDelta()
        pieces = function.arguments or function.input or ""
        call.name = function.name or call.name
        call.id = delta.id or (call.id if call.id is not None else delta.id)
        if delta.extra_content is not NULL:
            call.extra = delta.extra_content.copy()
        call.is_custom = call.is_custom or delta.custom is not None
        call.arguments.append(pieces)
        if is_new:
            self._tell_reasoning(events)
            self._tell_seal(call, events)
        events.append(
            CallDelta(self.choice, call.position, pieces, id=delta.id, name=function.name, is_custom=call.is_custom)
        )

    def _call_for(self, delta: ToolCallDelta) -> _Call:
        """The call a piece belongs to.

        The id decides where there is one: some hosts give every parallel call the index 0, others leave the index out.
        Then the index, of which the call opened last counts; then a name, which opens a call.
        """
        known: Iterable[_Call] = ()
        if delta.id:
            # An id that comes late names the call that is open under its index.
            waits = [call for call in self._calls if call.index == delta.index and not call.id]
            known = [*(waits if delta.index is not None else ()), *(c for c in self._calls if c.id == delta.id)]
        elif delta.index is not None:
            known = [call for call in self._calls if call.index == delta.index]
        elif not (delta.function is not None and delta.function.name):
            known = self._calls
        for call in reversed(list(known)):
            return call
        call = _Call(self._take_position(), delta.index)
        self._calls.append(call)
        return call

    def _add_details(self, details: list[Raw], is_told: bool, events: list[Event]) -> None:
        for raw in details:
            text, is_summary = self._details.add(raw)
            if text and not is_told:  # `reasoning` repeats the text of the entries beside it
                events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), text, is_summary))

    def _add_structured(self, delta: Delta, is_told: bool, events: list[Event]) -> None:
        if delta.reasoning_details:
            self._add_details(delta.reasoning_details, is_told, events)
        if delta.reasoning_text:
            self._copilot.append(delta.reasoning_text)
            events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), delta.reasoning_text))
        if delta.reasoning_opaque:
            self._opaque = delta.reasoning_opaque
        self._has_news = self._has_news or bool(delta.reasoning_details or delta.reasoning_opaque)
        for call in delta.tool_calls or ():
            self.add_call(call, events)

    def _add_rare(self, delta: Delta, events: list[Event]) -> None:
        if delta.function_call is not None and (delta.function_call.name or delta.function_call.arguments):
            self.add_call(ToolCallDelta(_LEGACY, None, delta.function_call), events)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        if is_given(delta.extra_content):
            self._extra = delta.extra_content.copy()

    def end(self, events: list[Event]) -> None:
        """Give every item whole."""
        self.is_done = True
        if self._splitter is not None:
            thought, text = self._splitter.finish()
            self._splitter = None
            self.add_thinking(thought, events)
            self.add_content(text, events)
        self._give_notes(events)
        self._give_contents(events)
        self._calls.sort(key=lambda call: call.index if call.index is not None else call.position)
        positions = [call.position for call in self._calls]
        if self._refusal:
            positions.insert(0, self._take_position())
        for position, item in zip(positions, answer_tail(self._tail()), strict=True):
            events.append(ItemDone(self.choice, position, item))

    def _give_notes(self, events: list[Event]) -> None:
        notes = with_addresses(together(self.notes), self.addresses)
        if notes:
            events.append(Noted(self.choice, notes))

    def _give_contents(self, events: list[Event]) -> None:
        """The reasoning of the fields, once, and the content so far."""
        if not self._has_given:
            self._has_given = True
            for item in field_reasoning(self._fields(), self._dialect):
                events.append(ItemDone(self.choice, self._position_of_reasoning(), item))
                self._reasoning_position = -1
        for content in self._contents:
            events.append(self._content_done(content))
        self._contents.clear()

    def _content_done(self, content: _Piecewise | Item) -> ItemDone:
        if not isinstance(content, _Piecewise):
            return ItemDone(self.choice, self._take_position(), content)
        text = "".join(content.pieces)
        item = Text(text) if content.kind == "text" else ReasoningText(text, format=self._dialect.reasoning_format)
        return ItemDone(self.choice, content.position, item)

    @property
    def carriers(self) -> tuple[str, ...]:
        """Where the reasoning stood, as in a message that comes whole."""
        sealed = (("reasoning_details", self._details), ("reasoning_text", self._copilot or self._opaque))
        told = [name for name, value in sealed if value]
        return carrier_among((*told, *self._told_in), self._dialect)

    def _fields(self) -> Message:
        """The members of the message that would have come whole which hold its reasoning."""
        return Message(
            role="assistant",
            reasoning_content="".join(self._reasoning) or None,
            reasoning_details=self._details.raws(),
            reasoning_text="".join(self._copilot) or None,
            reasoning_opaque=self._opaque,
            extra_content=self._extra,
        )

    def _tail(self) -> Message:
        """The members of that message which stand after its content."""
        calls = [call.whole() for call in self._calls]
        return Message(role="assistant", tool_calls=calls, refusal="".join(self._refusal) or None)
