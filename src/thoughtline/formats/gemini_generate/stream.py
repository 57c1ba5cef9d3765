"""Reading `streamGenerateContent`: partial responses, as server-sent events (`alt=sse`) or as one growing array.

Text without a signature grows over chunks. A part with a signature is an item by itself: joined to its neighbours it
would no longer be what was signed.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.framing import MAX_EVENT_BYTES, EventsOrArray
from thoughtline.formats.gemini_generate.notes import Noting, decode_notes
from thoughtline.formats.gemini_generate.partial_arguments import PartialArguments
from thoughtline.formats.gemini_generate.parts import Call, part_decoder, typed_part
from thoughtline.formats.gemini_generate.usage import decode_finish, decode_usage
from thoughtline.formats.json_text import NULL, is_given, members, set_members
from thoughtline.formats.streaming import PayloadStreamDecoder
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.errors import LimitExceeded
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
from thoughtline.values.items import NO_RAW, Item, ReasoningText, Text, ToolCall
from thoughtline.values.notes import Notes, together

MAX_CANDIDATES = 128


class _Content(Struct, gc=False):
    parts: list[Raw] | None = None


class _Candidate(Noting, gc=False):
    content: _Content | None = None
    index: int = 0
    finishReason: str | None = None  # noqa: N815 - the wire's spelling


class _Chunk(Struct, gc=False):
    candidates: list[_Candidate] | None = None
    usageMetadata: Raw = NULL  # noqa: N815 - the wire's spelling
    modelVersion: str | None = None  # noqa: N815 - the wire's spelling
    responseId: str | None = None  # noqa: N815 - the wire's spelling
    error: Raw = NULL


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class _Draft:
    """One candidate that grows."""

    def __init__(self, choice: int, dialect: Dialect) -> None:
        self.choice = choice
        self.is_done = False
        self._dialect = dialect
        self._position = 0
        self._is_thought = False
        self._pieces: list[str] = []
        self._raw = NO_RAW
        self._call: ToolCall | None = None
        self._arguments = PartialArguments()
        self._items: list[Item] = []
        self._noting = Noting()
        self._tokens: list[Notes] = []
        self._native: str | None = None

    def add(self, raw: Raw, events: list[Event]) -> None:
        part = part_decoder.decode(raw)
        call = part.functionCall or part.function_call
        if call is not None and (call.willContinue or self._call is not None):
            self._add_piece(call, typed_part(part, raw, self._dialect), events)
            return
        if part.text is not None and call is None and not (part.thoughtSignature or part.thought_signature):
            self._add_text(part.text, bool(part.thought), raw, events)
            return
        self._end_item(events)
        self._done(typed_part(part, raw.copy(), self._dialect), events)

    def note(self, noting: Noting, events: list[Event], before: int) -> None:
        """The notes of a chunk. Tokens are those of its words; where the words came from is told of all so far."""
        kept = self._noting
        for name in ("groundingMetadata", "citationMetadata", "urlContextMetadata"):
            raw = getattr(noting, name)
            if is_given(raw):
                setattr(kept, name, _with(getattr(kept, name), raw.copy()))
        if is_given(noting.logprobsResult):
            found = decode_notes(Noting(logprobsResult=noting.logprobsResult), ())
            self._tokens.append(found)
            last = events[-1] if len(events) > before else None
            if isinstance(last, TextDelta):
                events[-1] = TextDelta(self.choice, last.position, last.text, found.tokens)

    def _give_notes(self, events: list[Event]) -> None:
        said = [*self._items, *([Text("".join(self._pieces))] if self._pieces and not self._is_thought else [])]
        notes = together((decode_notes(self._noting, said), *self._tokens))
        if notes:
            words = "".join(item.text for item in said if isinstance(item, Text))
            events.append(Noted(self.choice, notes.of_words(words)))

    def _add_text(self, text: str, is_thought: bool, raw: Raw, events: list[Event]) -> None:
        if self._pieces and is_thought != self._is_thought:
            self._end_item(events)
        if not text:
            return  # the closing chunk: `{"text":""}` without a signature says nothing
        self._is_thought = is_thought
        self._raw = NO_RAW if self._pieces else raw.copy()
        self._pieces.append(text)
        delta = ReasoningDelta if is_thought else TextDelta
        events.append(delta(self.choice, self._position, text))

    def _add_piece(self, call: Call, item: Item, events: list[Event]) -> None:
        """More of a call whose arguments stream; a piece that will not continue ends it."""
        if self._call is None or call.name:
            self._end_item(events)
            self._call = replace(item, raw=NO_RAW) if isinstance(item, ToolCall) else None
            events.append(CallDelta(self.choice, self._position, "", call.id, call.name))
        for piece in call.partialArgs or ():
            self._arguments.add(piece)
        if not call.willContinue:
            self._end_item(events)

    def _end_item(self, events: list[Event]) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            if self._is_thought:
                self._done(ReasoningText(text, None, self._dialect.reasoning_format, raw=self._raw), events)
            else:
                self._done(Text(text, raw=self._raw), events)
            self._pieces, self._raw = [], NO_RAW
        if self._call is not None:
            call, self._call = replace(self._call, arguments=self._arguments.text()), None
            self._arguments = PartialArguments()
            events.append(CallDelta(self.choice, self._position, call.arguments))
            self._done(call, events)

    def _done(self, item: Item, events: list[Event]) -> None:
        self._items.append(item)
        events.append(ItemDone(self.choice, self._position, item))
        self._position += 1

    def end(self, native: str | None, events: list[Event]) -> None:
        """The candidate is over, as far as the provider says. With code execution it says so and then goes on."""
        self._give_notes(events)
        self._end_item(events)
        self.is_done = True
        self._native = native or self._native
        events.append(TurnDone(self.choice, decode_finish(self._native, self._items)))


def _with(before: Raw, more: Raw) -> Raw:
    """An object of notes with the members that a later chunk brought."""
    return Raw(set_members(before, members(more).items())) if is_given(before) else more


class StreamDecoder(PayloadStreamDecoder):
    """Bytes of a Gemini stream in, events out."""

    def __init__(self, dialect: Dialect = GEMINI, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(EventsOrArray(limit))
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._usage = NULL
        self._is_started = False

    def _take(self, payload: bytes, events: list[Event]) -> None:
        chunk = _decode_chunk(payload)
        if chunk.error is not NULL and is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
            return
        if not self._is_started:
            self._is_started = True
            events.append(Started(chunk.responseId, chunk.modelVersion))
        if not chunk.candidates and not is_given(chunk.usageMetadata):
            events.append(Other(Raw(payload)))
        if chunk.usageMetadata is not NULL:
            self._usage = chunk.usageMetadata  # comes with every chunk; the last one counts
        for candidate in chunk.candidates or ():
            if self._grow(candidate, events):
                self._report_usage(events)
                self._drafts[candidate.index].end(candidate.finishReason, events)

    def _report_usage(self, events: list[Event]) -> None:
        if is_given(self._usage):
            events.append(UsageReported(decode_usage(self._usage.copy())))

    def _grow(self, candidate: _Candidate, events: list[Event]) -> bool:
        """Take in what a chunk brings for one candidate; says whether it ends it."""
        if not 0 <= candidate.index < MAX_CANDIDATES:
            raise LimitExceeded(f"candidate index {candidate.index} is not below {MAX_CANDIDATES}", "/candidates")
        draft = self._drafts.get(candidate.index)
        if draft is None:
            draft = self._drafts[candidate.index] = _Draft(candidate.index, self._dialect)
        before = len(events)
        for raw in candidate.content.parts or () if candidate.content else ():
            draft.is_done = False
            draft.add(raw, events)
        if candidate.has_notes:
            draft.note(candidate, events, before)
        return bool(candidate.finishReason) and not draft.is_done

    def _close(self, events: list[Event]) -> None:
        self._report_usage(events)
        for draft in self._drafts.values():
            if not draft.is_done:
                draft.end(None, events)
