"""`streamGenerateContent`, decoded and encoded: partial responses, as server-sent events (`alt=sse`). One growing array
is decoded too.

Text without a signature grows over chunks. A part with a signature is an item of its own: joined to its neighbours it
would no longer match its signature.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.framing import EventsOrArray, sse
from thoughtline.formats.gemini_generate.bodies import FINISH, USAGE, Answer, Response, encode_answer
from thoughtline.formats.gemini_generate.notes import Noting, decode_notes, encode_notes
from thoughtline.formats.gemini_generate.partial_arguments import PartialArguments
from thoughtline.formats.gemini_generate.parts import Call, encode_part, part_decoder, typed_part
from thoughtline.formats.json_text import NULL, array, encode, is_given, members, object_of, set_members
from thoughtline.formats.streaming import EventEncoder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, Json, Reading, Steps, Texts, TextSpot, inner, objects
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
from thoughtline.values.items import NO_RAW, Item, ReasoningText, Text, ToolCall, seal_of
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.turns import Usage

MAX_CANDIDATES = 128


class _Content(Struct, gc=False):
    parts: list[Raw] | None = None


_decode_chunk = msgspec.json.Decoder(Response[_Content]).decode


class _Draft:
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
        self._native: str | None = None

    def add(self, raw: Raw, events: list[Event]) -> None:
        part = part_decoder.decode(raw)
        call = part.function_call or part.snake_call
        if call is not None and (call.will_continue or self._call is not None):
            self._add_piece(call, typed_part(part, raw, self._dialect), events)
            return
        if part.text is not None and call is None and not (part.thought_signature or part.snake_signature):
            self._add_text(part.text, bool(part.thought), raw, events)
            return
        item = typed_part(part, raw.copy(), self._dialect)
        if self._is_thought and self._pieces and isinstance(item, ReasoningText) and not item.text:
            # Claude at Antigravity: the signature follows its thought (CLIProxyAPI#570, 2026-11).
            item, self._pieces = replace(item, text="".join(self._pieces), raw=NO_RAW), []
        self._end_item(events)
        self._done(item, events)

    def note(self, noting: Noting) -> None:
        """The notes of a chunk: citations refer to the whole text so far."""
        kept = self._noting
        for name in Noting.__struct_fields__:
            raw = getattr(noting, name)
            if is_given(raw):
                setattr(kept, name, _with(getattr(kept, name), raw.copy()))

    def _give_notes(self, events: list[Event]) -> None:
        items = [*self._items, *([Text("".join(self._pieces))] if self._pieces and not self._is_thought else [])]
        if notes := decode_notes(self._noting, items):
            events.append(Noted(self.choice, notes))

    def _add_text(self, text: str, is_thought: bool, raw: Raw, events: list[Event]) -> None:
        if self._pieces and is_thought != self._is_thought:
            self._end_item(events)
        if not text:
            return  # the closing chunk, `{"text":""}` without a signature, has no content
        self._is_thought = is_thought
        self._raw = NO_RAW if self._pieces else raw.copy()
        self._pieces.append(text)
        delta = ReasoningDelta if is_thought else TextDelta
        events.append(delta(self.choice, self._position, text))

    def _add_piece(self, call: Call, item: Item, events: list[Event]) -> None:
        """Extend a call whose arguments stream; a piece that says it is the last one ends it."""
        if self._call is None or call.name:
            self._end_item(events)
            self._call = replace(item, raw=NO_RAW) if isinstance(item, ToolCall) else None
            events.append(CallDelta(self.choice, self._position, "", call.id, call.name))
        for piece in call.partial_args or ():
            self._arguments.add(piece)
        if not call.will_continue:
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
        """Handle the finish reason. With code execution the provider sends one and then continues."""
        self._give_notes(events)
        self._end_item(events)
        self.is_done = True
        self._native = native or self._native
        events.append(TurnDone(self.choice, FINISH.decode(self._native, self._items)))


def _with(before: Raw, more: Raw) -> Raw:
    """An object of notes with the members of a later chunk."""
    return Raw(set_members(before, members(more).items())) if is_given(before) else more


class StreamDecoder(PayloadStreamDecoder):
    def __init__(self, dialect: Dialect = GEMINI) -> None:
        super().__init__(EventsOrArray())
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._usage = NULL
        self._is_started = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        chunk = _decode_chunk(payload)
        if chunk.error is not NULL and is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
            return
        if not self._is_started:
            self._is_started = True
            events.append(Started(chunk.response_id, chunk.model_version))
        if not chunk.candidates and not is_given(chunk.usage_metadata):
            events.append(Other(Raw(payload)))
        if chunk.usage_metadata is not NULL:
            self._usage = chunk.usage_metadata  # comes with every chunk; the last one counts
        for candidate in chunk.candidates or ():
            if self._grow(candidate, events):
                self._report_usage(events)
                self._drafts[candidate.index].end(candidate.finish_reason, events)

    def _report_usage(self, events: list[Event]) -> None:
        if is_given(self._usage):
            events.append(UsageReported(USAGE.decode(self._usage)))

    def _grow(self, candidate: Answer[_Content], events: list[Event]) -> bool:
        """Add a chunk of one candidate; returns whether the chunk ends it."""
        if not 0 <= candidate.index < MAX_CANDIDATES:
            raise LimitExceeded(f"candidate index {candidate.index} is not below {MAX_CANDIDATES}", "/candidates")
        draft = self._drafts.get(candidate.index)
        if draft is None:
            draft = self._drafts[candidate.index] = _Draft(candidate.index, self._dialect)
        for raw in candidate.content.parts or () if candidate.content else ():
            draft.is_done = False
            draft.add(raw, events)
        if candidate.has_notes:
            draft.note(candidate)
        return bool(candidate.finish_reason) and not draft.is_done

    def _close(self, events: list[Event]) -> None:
        self._report_usage(events)
        for draft in self._drafts.values():
            if not draft.is_done:
                draft.end(None, events)


class StreamEncoder(EventEncoder):
    def __init__(self, dialect: Dialect = GEMINI) -> None:
        super().__init__(dialect)
        self._written: set[tuple[int, int]] = set()
        self._ended: list[bytes] = []
        self._words: dict[int, str] = {}
        self._noted: dict[int, Notes] = {}

    def _text(self, event: TextDelta) -> bytes:
        self._written.add((event.choice, event.position))
        return self._part(event.choice, encode({"text": event.text}))

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        self._written.add((event.choice, event.position))
        return self._part(event.choice, encode({"text": event.text, "thought": True}))

    def pulse(self) -> bytes:
        """A partial answer without content: Google's SDKs would read a comment as JSON."""
        return self._part(0, b'{"text":""}')

    def _note(self, event: Noted) -> bytes:
        self._noted[event.choice] = event.notes
        return b""

    def _report(self, usage: Usage) -> bytes:
        return self._ending() if self._ended else b""

    def _fail(self, error: Raw) -> bytes:
        return sse(object_of([("error", error)]))

    def finish(self) -> bytes:
        return self._ending()

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if isinstance(item, Text):  # for positions of notes: a stream counts from the beginning of the whole text
            self._words[event.choice] = self._words.get(event.choice, "") + item.text
        if (event.choice, event.position) not in self._written or isinstance(item, ToolCall):
            return self._part(event.choice, encode_part(item, self._dialect))
        if not isinstance(item, (Text, ReasoningText)) or seal_of(item) is None:
            return b""
        # The text was sent without its signature; Gemini itself sends the signature in an empty part then.
        return self._part(event.choice, encode_part(replace(item, text="", raw=NO_RAW), self._dialect))

    def _turn_done(self, event: TurnDone) -> bytes:
        if event.finish is None:
            return b""
        words = (Text(self._words.get(event.choice, "")),)
        notes = encode_notes(self._noted.get(event.choice, NO_NOTES), words)
        self._ended.append(encode_answer((), event.choice, event.finish, notes))
        return self._ending() if self._usage else b""

    def _ending(self) -> bytes:
        """Finish reasons and usage in one chunk, as Gemini sends it: its SDKs expect an answer in each chunk."""
        ended, usage = self._ended, self._usage
        self._ended, self._usage = [], None
        head = [("candidates", array(ended))] if ended else []
        head += [("usageMetadata", USAGE.encode(usage))] if usage is not None else []
        return self._chunk(head) if head else b""

    def _part(self, choice: int, part: bytes) -> bytes:
        return self._chunk([("candidates", array([encode_answer((part,), choice)]))])

    def _chunk(self, head: list[tuple[str, bytes]]) -> bytes:
        named = [("modelVersion", self._started.model), ("responseId", self._started.id)]
        tail = [(key, encode(value)) for key, value in named if value is not None]
        return sse(self._answer(object_of([*head, *tail])))

    def _answer(self, answer: bytes) -> bytes:
        """A partial response as it is sent."""
        return answer


# --- positions of visible text ----------------------------------------------------------------------------------------
# Signed text is left out: an edit would invalidate its signature.


def _event(value: Json) -> Reading:
    """A signed part or a call is an item of its own, so it ends the text before it."""
    spots: list[TextSpot] = []
    ended: list[Steps] = [EVERY] if value.get("error") else []
    for at, candidate in objects(value.get("candidates")):
        key = (candidate.get("index", at),)
        spots += [spot._replace(key=key, is_whole=False) for spot in _spots(at, candidate)]
        parts = inner(candidate, "content").get("parts")
        is_over = any(not _is_text(part) for _, part in objects(parts)) or candidate.get("finishReason") is not None
        ended += [key] if is_over else []
    return Reading(tuple(spots), tuple(ended))


def _body(value: Json) -> Iterator[TextSpot]:
    for at, candidate in objects(value.get("candidates")):
        yield from _spots(at, candidate)


def _spots(at: int, candidate: Json) -> Iterator[TextSpot]:
    for place, part in objects(inner(candidate, "content").get("parts")):
        if _is_text(part):
            owner = ("candidates", at, "content", "parts", place)
            yield TextSpot((at, place), (*owner, "text"), part["text"], owner, is_whole=True)


def _is_text(part: Json) -> bool:
    is_sealed = part.get("thought") or part.get("thoughtSignature") or part.get("thought_signature")
    return isinstance(part.get("text"), str) and not is_sealed


TEXTS = Texts(_body, _event, EventsOrArray, flag="thought")
