"""Decodes Messages streams: blocks that start, grow by deltas and stop, each under its index."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.anthropic_messages.bodies import (
    FINISH,
    KNOWN_BLOCKS,
    USAGE,
    decode_block,
    together,
    with_dropped,
)
from thoughtline.formats.framing import MAX_EVENT_BYTES, Framing, ServerSentEvents
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_kind,
    encode,
    is_given,
    is_json,
    members,
    set_members,
)
from thoughtline.formats.streaming import IndexOrder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Texts, TextSpot, contents, inner
from thoughtline.providers import ANTHROPIC, Dialect
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
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.turns import Finish

MAX_BLOCKS = 10_000
"""No answer has this many blocks; a stream that opens more is rejected."""


class _Delta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: Raw = NULL
    content: Raw = NULL
    encrypted_content: Raw = NULL
    stop_reason: str | None = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: Raw = NULL
    message: Raw = NULL
    usage: Raw = NULL
    error: Raw = NULL
    input_transformations: Raw = NULL


class _Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: Raw = NULL
    input_transformations: Raw = NULL


class _Start(Struct, gc=False):
    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_start_decoder = msgspec.json.Decoder(_Start)
_message_decoder = msgspec.json.Decoder(_Message)


class _Draft(Struct):
    """A block under construction."""

    start: Raw
    is_call: bool
    texts: list[str] = []
    thoughts: list[str] = []
    json: list[str] = []
    signature: str | None = None
    citations: list[Raw] = []
    compaction: dict[str, bytes] = {}

    def compact(self, content: Raw, sealed: Raw) -> None:
        """A compaction, which comes in one delta."""
        delta = {"content": content, "encrypted_content": sealed}
        self.compaction |= {name: bytes(raw) for name, raw in delta.items() if is_given(raw)}

    def whole(self) -> tuple[Raw, str | None]:
        """The complete block as a whole response has it, and the text of the arguments if it is no JSON (an incomplete
        call).
        """
        changes: list[tuple[str, bytes | None]] = []
        known = members(self.start)
        if self.texts:
            changes.append(("text", _joined(known, "text", self.texts)))
        if self.thoughts:
            changes.append(("thinking", _joined(known, "thinking", self.thoughts)))
        if self.signature is not None or "signature" in known:
            # `content_block_start` has an empty one: there is no signature until its delta has come
            changes.append(("signature", encode(self.signature) if self.signature else None))
        changes += self.compaction.items()
        if self.citations:
            changes.append(("citations", array(self.citations)))
        arguments = "".join(self.json)
        is_whole = not arguments or is_json(arguments)
        if arguments and is_whole:
            changes.append(("input", arguments.encode()))
        raw = Raw(set_members(self.start, changes)) if changes else self.start
        return raw, None if is_whole else arguments


def _joined(known: dict[str, Raw], key: str, pieces: list[str]) -> bytes:
    head = known.get(key, NULL)
    return encode((msgspec.json.decode(head, type=str) if is_given(head) else "") + "".join(pieces))


class StreamDecoder(PayloadStreamDecoder):
    """Decodes the bytes of a Messages stream to events."""

    def __init__(
        self, dialect: Dialect = ANTHROPIC, limit: int = MAX_EVENT_BYTES, framing: Framing | None = None
    ) -> None:
        super().__init__(framing or ServerSentEvents(limit))
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._count = 0
        self._order = IndexOrder()
        self._finish: Finish | None = None
        self._is_done = False
        self._has_begun = False
        self._usage = NULL
        self._transformations = NULL

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        event = _decode_event(payload)
        if event.type == "content_block_delta" and event.delta is not None:
            draft = self._drafts.get(event.index)
            if draft is not None:
                self._grow(draft, event.index, event.delta, payload, events)
                return
        self._consume_frame(event, payload, events)

    def _grow(self, draft: _Draft, index: int, delta: _Delta, payload: bytes, events: list[Event]) -> None:
        if delta.type == "text_delta" and delta.text is not None:
            draft.texts.append(delta.text)
            events.append(TextDelta(0, index, delta.text))
        elif delta.type == "thinking_delta" and delta.thinking is not None:
            draft.thoughts.append(delta.thinking)
            events.append(ReasoningDelta(0, index, delta.thinking))
        elif delta.type == "input_json_delta" and delta.partial_json is not None:
            draft.json.append(delta.partial_json)
            if draft.is_call:
                events.append(CallDelta(0, index, delta.partial_json))
        elif delta.type == "signature_delta" and delta.signature is not None:
            draft.signature = delta.signature
        elif delta.type == "citations_delta" and is_given(delta.citation):
            draft.citations.append(delta.citation.copy())
        elif delta.type == "compaction_delta":
            draft.compact(delta.content, delta.encrypted_content)
        else:
            events.append(Other(Raw(payload)))

    def _consume_frame(self, event: _Event, payload: bytes, events: list[Event]) -> None:
        match event.type:
            case "message_start":
                message = decode(_message_decoder, event.message, "/message") if is_given(event.message) else _Message()
                self._has_begun = True
                self._usage = message.usage.copy() if is_given(message.usage) else NULL
                transformations = message.input_transformations
                self._transformations = transformations.copy() if is_given(transformations) else NULL
                events.append(Started(message.id, message.model))
            case "content_block_start":
                self._open(event, events)
            case "content_block_stop":
                self._stop(event.index, events)
            case "message_delta":
                self._end(event, events)
            case "message_stop":
                pass
            case "error" | "" if is_given(event.error):
                events.append(Failed(event.error.copy()))
            case _:
                events.append(Other(Raw(payload)))

    def _open(self, event: _Event, events: list[Event]) -> None:
        self._count += 1
        if self._count > MAX_BLOCKS:
            raise LimitExceeded(f"more than {MAX_BLOCKS} blocks in one answer")
        start = decode_kind(_start_decoder, event.content_block, KNOWN_BLOCKS, "/content_block")
        self._has_begun = True
        if isinstance(start, str):
            start = _Start(start)
        self._drafts[event.index] = _Draft(event.content_block.copy(), start.type == "tool_use")
        if start.type == "tool_use":
            events.append(CallDelta(0, event.index, "", start.id, start.name))
        if start.text:
            events.append(TextDelta(0, event.index, start.text))
        if start.thinking:
            events.append(ReasoningDelta(0, event.index, start.thinking))

    def _stop(self, index: int, events: list[Event]) -> None:
        draft = self._drafts.pop(index, None)
        if draft is not None:
            self._order.done(index, [ItemDone(0, index, _item(draft, self._dialect))], events)

    def _end(self, event: _Event, events: list[Event]) -> None:
        usage = event.usage if is_given(event.usage) else self._usage
        if usage is not self._usage and is_given(self._usage):
            usage = together(self._usage, usage)
        if is_given(event.input_transformations):
            self._transformations = event.input_transformations.copy()
        counted = with_dropped(USAGE.decode(usage) if is_given(usage) else None, self._transformations)
        if counted is not None:
            events.append(UsageReported(counted))
        self._finish = FINISH.decode(event.delta.stop_reason if event.delta else None)
        if self._finish is not None and not self._is_done:
            self._end_turn(events)

    def _end_turn(self, events: list[Event]) -> None:
        for index in sorted(self._drafts):
            self._stop(index, events)
        self._order.flush(events)
        self._is_done = True
        events.append(TurnDone(0, self._finish))

    def _close(self, events: list[Event]) -> None:
        if self._has_begun and not self._is_done:
            for draft in self._drafts.values():
                draft.signature = None  # a signature is valid only when its block is closed
            self._end_turn(events)


def _item(draft: _Draft, dialect: Dialect) -> Item:
    raw, arguments = draft.whole()
    item = decode_block(raw, dialect)
    if arguments is not None and isinstance(item, ToolCall):
        return ToolCall(item.name, arguments, item.id)
    return item


# --- positions of visible text ----------------------------------------------------------------------------------------


def _event(value: Json) -> Reading:
    match value.get("type"):
        case "content_block_start" if inner(value, "content_block").get("type") == "text":
            return _text(value, "content_block")
        case "content_block_delta" if inner(value, "delta").get("type") == "text_delta":
            return _text(value, "delta")
        case "content_block_stop":
            return Reading((), ((value.get("index", 0),),))
        case "message_stop" | "message_delta" | "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _text(value: Json, member: str) -> Reading:
    text = inner(value, member).get("text")
    return Reading((TextSpot((value.get("index", 0),), (member, "text"), text),)) if isinstance(text, str) else NOTHING


def _body(value: Json) -> Iterator[TextSpot]:
    return contents(value.get("content"), (), ("content",), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents)
