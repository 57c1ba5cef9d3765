"""The chunks of a chat stream, and the message that they build. At its end it is decoded as a whole message is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import compress, count
from typing import Literal

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats import think_tags
from thoughtline.formats.framing import MAX_EVENT_BYTES, ServerSentEvents
from thoughtline.formats.json_text import NULL, is_given
from thoughtline.formats.openai_chat.bodies import FINISH, USAGE
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
from thoughtline.formats.streaming import PayloadStreamDecoder
from thoughtline.providers import REASONING_CONTENT, Dialect
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Noted,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.items import Item, ReasoningText, Text
from thoughtline.values.notes import Notes, together
from thoughtline.values.turns import Finish

_MAX_TELLINGS = 16
"""How often the reasoning of one answer is reported before its end: each report costs time in
proportion to its length.
"""

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
    """The members of a delta that we decode."""

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


class _Piecewise(Struct):
    """Text or thinking in the content, under construction, with its position in the answer."""

    kind: Literal["text", "thinking"]
    position: int
    pieces: list[str] = []


class _Call(Struct):
    """A tool call under construction."""

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
    """One choice of a stream. `_splitter` is set if its reasoning is in tags."""

    choice: int
    _dialect: Dialect
    _splitter: think_tags.Splitter | None = None
    is_done: bool = False
    notes: list[Notes] = []
    addresses: Raw = NULL
    _positions: Iterator[int] = field(default_factory=count)
    _has_given: bool = False
    _has_news: bool = False
    _tellings: int = 0
    _reasoning: list[str] = []
    _reasoning_position: int = -1
    _carriers: tuple[str, ...] = ()
    _details: DetailsMerger | None = None
    _contents: list[_Piecewise | Item] = []
    _text: _Piecewise | None = None
    _calls: list[_Call] = []
    _copilot: list[str] = []
    _opaque: str | None = None
    _extra: Raw = NULL
    _refusal: list[str] = []

    def add(self, delta: Delta, events: list[Event]) -> None:
        """Add one delta. Checks are in order of frequency."""
        thought = delta.reasoning_content or delta.reasoning
        if delta.thinking is not NULL:
            thought = thought or text_of(delta.thinking)
        if thought:
            if not self._reasoning:
                texts = (delta.reasoning_content, delta.reasoning)
                self._carriers = tuple(compress(("reasoning_content", "reasoning"), texts)) or ("thinking",)
            self._reasoning.append(thought)
            if self._reasoning_position < 0:
                self._reasoning_position = next(self._positions)
            events.append(ReasoningDelta(self.choice, self._reasoning_position, thought))
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
        if delta.reasoning_details or delta.reasoning_text or delta.reasoning_opaque:
            self._add_sealed(delta, bool(thought), events)
        for call in delta.tool_calls or ():
            self.add_call(call, events)
        if delta.refusal or delta.function_call is not None or delta.extra_content is not NULL:
            self._add_rare(delta, events)
        if delta.annotations is not NULL:
            self.notes.append(decode_annotations(delta.annotations))

    def _position_of_reasoning(self) -> int:
        if self._reasoning_position < 0:
            self._reasoning_position = next(self._positions)
        return self._reasoning_position

    def add_content(self, content: str, events: list[Event]) -> None:
        if self._splitter is not None:
            thought, content = self._splitter.feed(content)
            self.add_thinking(thought, events)
        if content:
            draft = self._text
            if draft is None:
                if self._has_news:
                    self._report_reasoning(events)
                draft = self._text = _Piecewise("text", next(self._positions))
                self._contents.append(draft)
            draft.pieces.append(content)
            events.append(TextDelta(self.choice, draft.position, content))

    def add_thinking(self, thought: str, events: list[Event]) -> None:
        """Reasoning inside of the content."""
        if thought:
            last = self._contents[-1] if self._contents else None
            if not isinstance(last, _Piecewise) or last.kind != "thinking":
                last = _Piecewise("thinking", next(self._positions))
                self._contents.append(last)
            self._text = None
            last.pieces.append(thought)
            events.append(ReasoningDelta(self.choice, last.position, thought))

    def _add_parts(self, parts: list[Raw], events: list[Event]) -> None:
        for raw in parts:
            match decode_part(raw.copy(), self._dialect):
                case ReasoningText(text=text) as chunk:
                    self._carriers = self._carriers or (chunk_carrier(chunk),)
                    self.add_thinking(text, events)
                case Text(text=text):
                    self.add_content(text, events)
                case other:
                    self._contents.append(other)
                    self._text = None
                    self._give_contents(events)  # at its place between the texts before and after it

    def _report_reasoning(self, events: list[Event]) -> None:
        """When something else begins, report the sealed reasoning known so far, again if it has grown since."""
        if self._tellings < _MAX_TELLINGS:
            self._has_news = False
            self._tellings += 1
            known = tuple(field_reasoning(self._fields(), self._dialect))
            events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), "", known=known))

    def add_call(self, delta: ToolCallDelta, events: list[Event]) -> None:
        known = len(self._calls)
        call = self._call_for(delta)
        is_new = len(self._calls) > known
        function = delta.function or delta.custom or FunctionDelta()
        pieces = function.arguments or function.input or ""
        call.name = function.name or call.name
        call.id = delta.id or (call.id if call.id is not None else delta.id)
        if delta.extra_content is not NULL:
            call.extra = delta.extra_content.copy()
        call.is_custom = call.is_custom or delta.custom is not None
        call.arguments.append(pieces)
        if is_new:
            if self._has_news:
                self._report_reasoning(events)
            if is_given(call.extra):  # a seal that comes complete with its call: Gemini's
                sealed = answer_tail(Message(role="assistant", tool_calls=[call.whole()]))
                events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), "", known=tuple(sealed)))
        events.append(
            CallDelta(self.choice, call.position, pieces, id=delta.id, name=function.name, is_custom=call.is_custom)
        )

    def _call_for(self, delta: ToolCallDelta) -> _Call:
        """The call a piece belongs to.

        The id decides if there is one: some hosts give every parallel call the index 0, others leave the index out.
        Then the index, of which the call opened last counts; then a name, which opens a call.
        """
        waiting = None
        for call in reversed(self._calls):
            is_under_index = delta.index is not None and call.index == delta.index
            if delta.id:
                if call.id == delta.id:
                    return call
                if is_under_index and not call.id:  # a late id names the call that is open at this index
                    waiting = waiting or call
            elif is_under_index or (delta.index is None and not (delta.function and delta.function.name)):
                return call
        if waiting is not None:
            return waiting
        call = _Call(next(self._positions), delta.index)
        self._calls.append(call)
        return call

    def _add_sealed(self, delta: Delta, is_repeated: bool, events: list[Event]) -> None:
        for raw in delta.reasoning_details or ():
            details = self._details or DetailsMerger()
            text, is_summary = details.add(raw)
            self._details = details
            if text and not is_repeated:  # `reasoning` repeats the text of the entries next to it
                events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), text, is_summary))
        if delta.reasoning_text:
            self._copilot.append(delta.reasoning_text)
            events.append(ReasoningDelta(self.choice, self._position_of_reasoning(), delta.reasoning_text))
        if delta.reasoning_opaque:
            self._opaque = delta.reasoning_opaque
        self._has_news = self._has_news or bool(delta.reasoning_details or delta.reasoning_opaque)

    def _add_rare(self, delta: Delta, events: list[Event]) -> None:
        if delta.function_call is not None and (delta.function_call.name or delta.function_call.arguments):
            self.add_call(ToolCallDelta(_LEGACY, None, delta.function_call), events)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        if is_given(delta.extra_content):
            self._extra = delta.extra_content.copy()

    def end(self, finish: Finish | None, events: list[Event]) -> None:
        """Return every item complete, and the end of the turn."""
        self.is_done = True
        if self._splitter is not None:
            thought, text = self._splitter.finish()
            self._splitter = None
            self.add_thinking(thought, events)
            self.add_content(text, events)
        if self.notes or self.addresses is not NULL:
            notes = with_addresses(together(self.notes), self.addresses)
            if notes:
                events.append(Noted(self.choice, notes))
        self._give_contents(events)
        if self._calls or self._refusal:
            self._give_tail(events)
        carriers = self._carriers
        if self._copilot or self._opaque:
            carriers = ("reasoning_text", *carriers)
        if self._details is not None:
            carriers = ("reasoning_details", *carriers)
        if len(carriers) > 1:
            carriers = carrier_among(carriers, self._dialect)
        events.append(TurnDone(self.choice, finish, carriers))

    def _give_contents(self, events: list[Event]) -> None:
        """Return the reasoning of the fields, once, and the content so far."""
        if not self._has_given:
            self._has_given = True
            for item in field_reasoning(self._fields(), self._dialect):
                position, self._reasoning_position = self._reasoning_position, -1
                events.append(ItemDone(self.choice, position if position >= 0 else next(self._positions), item))
        for content in self._contents:
            if not isinstance(content, _Piecewise):
                events.append(ItemDone(self.choice, next(self._positions), content))
                continue
            text = "".join(content.pieces)
            is_text = content.kind == "text"
            item = Text(text) if is_text else ReasoningText(text, format=self._dialect.reasoning_format)
            events.append(ItemDone(self.choice, content.position, item))
        self._contents.clear()

    def _fields(self) -> Message:
        """The members with reasoning, as the whole message would have them."""
        return Message(
            role="assistant",
            reasoning_content="".join(self._reasoning) or None,
            reasoning_details=self._details.raws() if self._details is not None else None,
            reasoning_text="".join(self._copilot) or None,
            reasoning_opaque=self._opaque,
            extra_content=self._extra,
        )

    def _give_tail(self, events: list[Event]) -> None:
        """Return the items after the content of that message."""
        self._calls.sort(key=lambda call: call.index if call.index is not None else call.position)
        positions = [call.position for call in self._calls]
        if self._refusal:
            positions.insert(0, next(self._positions))
        calls = [call.whole() for call in self._calls]
        message = Message(role="assistant", tool_calls=calls, refusal="".join(self._refusal) or None)
        for position, item in zip(positions, answer_tail(message), strict=True):
            events.append(ItemDone(self.choice, position, item))


# --- chunks -----------------------------------------------------------------------------------------------------------


MAX_CHOICES = 128
"""OpenAI allows `n` up to 128; a larger index is rejected."""


class _Choice(Struct, gc=False):
    delta: Delta | None = None
    index: int = 0
    finish_reason: str | None = None


class Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    id: str | None = None
    model: str | None = None
    usage: Raw = NULL
    error: Raw = NULL
    type: str | None = None
    citations: Raw = NULL


_decode_chunk = msgspec.json.Decoder(Chunk).decode


class ChunkDecoder(PayloadStreamDecoder):
    """Decodes chunks with `choices[].delta`.

    A choice's items end with its `finish_reason` (or with the stream), in the order of a whole message.
    """

    def __init__(self, dialect: Dialect = REASONING_CONTENT, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(ServerSentEvents(limit))
        self._dialect = dialect
        self.drafts: dict[int, MessageDraft] = {}

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        chunk = _decode_chunk(payload)
        for choice in chunk.choices or self._consume_rare(chunk, payload, events):
            draft = self.drafts.get(choice.index)
            if draft is None:
                draft = self.draft_for(choice.index, chunk, events)
            if choice.delta is not None and not draft.is_done:
                draft.add(choice.delta, events)
            if chunk.citations is not NULL:
                draft.addresses = chunk.citations  # xAI and Perplexity repeat them with every chunk
            if choice.finish_reason and not draft.is_done:
                draft.end(FINISH.decode(choice.finish_reason), events)
        if chunk.error is not NULL and chunk.choices and is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
        if chunk.usage is not NULL and is_given(chunk.usage):
            events.append(UsageReported(USAGE.decode(chunk.usage)))

    @abstractmethod
    def _consume_rare(self, chunk: Chunk, payload: bytes, events: list[Event]) -> tuple[()]:
        """Decode a payload without choices."""

    def draft_for(self, index: int, chunk: Chunk, events: list[Event]) -> MessageDraft:
        if not 0 <= index < MAX_CHOICES:
            raise LimitExceeded(f"choice index {index} is not between 0 and {MAX_CHOICES - 1}", "/choices")
        if not self.drafts:
            events.append(Started(chunk.id, chunk.model))
        splitter = think_tags.Splitter() if self._dialect.carrier == "think_tags" else None
        draft = self.drafts[index] = MessageDraft(index, self._dialect, splitter)
        return draft

    def _close(self, events: list[Event]) -> None:
        for draft in self.drafts.values():
            if not draft.is_done:
                draft.end(None, events)
