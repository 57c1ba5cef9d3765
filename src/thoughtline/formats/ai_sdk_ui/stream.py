"""Reading a UI message stream: parts that start, grow and end under their ids.

Items stand in the order in which their parts started, as the SDK's own client places them.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats.ai_sdk_ui.metadata import Metadata
from thoughtline.formats.framing import MAX_EVENT_BYTES, ServerSentEvents
from thoughtline.formats.json_text import NULL, encode, is_given
from thoughtline.formats.reasoning_details import decode_detail
from thoughtline.formats.streaming import IndexOrder, PayloadStreamDecoder
from thoughtline.providers import AI_SDK, Dialect
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
)
from thoughtline.values.items import (
    Item,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
)
from thoughtline.values.turns import Finish, FinishReason

MAX_PARTS = 10_000
"""No message has so many parts; a stream that opens more is not one."""

REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
    "error": "error",
}
_SAYS_NOTHING = ("start", "start-step", "finish-step")
_CALL_ENDS = ("tool-input-available", "tool-input-error")


class _Part(Struct, gc=False, rename="camel"):
    type: str = ""
    id: str | None = None
    delta: str | None = None
    message_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input_text_delta: str | None = None
    input: Raw = NULL
    error_text: str | None = None
    finish_reason: str | None = None
    provider_metadata: Metadata | None = None


_decode_part = msgspec.json.Decoder(_Part).decode


class _Draft(Struct):
    """A part that grows."""

    position: int
    pieces: list[str] = []
    metadata: Metadata = field(default_factory=Metadata)
    name: str = ""


class StreamDecoder(PayloadStreamDecoder):
    """Bytes of a UI message stream in, events out."""

    def __init__(self, dialect: Dialect = AI_SDK, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(ServerSentEvents(limit))
        self._dialect = dialect
        self._drafts: dict[tuple[str, str], _Draft] = {}
        self._positions = 0
        self._extra_positions = 0
        self._order = IndexOrder()
        self._held: ItemDone | None = None
        self._details: set[bytes] = set()
        self._is_started = False
        self._is_done = False

    def _take(self, payload: bytes, events: list[Event]) -> None:
        part = _decode_part(payload)
        if not self._is_started:
            self._is_started = True
            events.append(Started(part.message_id))
        kind, _, step = part.type.partition("-")
        if kind in ("text", "reasoning") and step in ("start", "delta", "end"):
            self._grow(kind, step, part, events)
        elif part.type in ("tool-input-start", "tool-input-delta", *_CALL_ENDS):
            self._grow_call(part, events)
        else:
            self._take_rare(part, payload, events)

    def _take_rare(self, part: _Part, payload: bytes, events: list[Event]) -> None:
        seal = part.provider_metadata.seal if part.provider_metadata else None
        if part.type == "finish" and not self._is_done:
            native = part.finish_reason or "stop"
            self._end(Finish(REASONS.get(native, "other"), native), events)
        elif part.type == "error":
            events.append(Failed(Raw(encode(part.error_text or ""))))
        elif seal is not None:
            self._give(self._open().position, [Unknown(part.type, Raw(payload), seal)], events)
        elif part.type not in _SAYS_NOTHING:
            events.append(Other(Raw(payload)))

    def _open(self) -> _Draft:
        if self._positions >= MAX_PARTS:
            raise LimitExceeded(f"more than {MAX_PARTS} parts in one message")
        self._positions += 1
        return _Draft(self._positions - 1)

    def _draft(self, kind: str, part: _Part, events: list[Event]) -> _Draft:
        name = (part.tool_call_id if kind == "call" else part.id) or ""
        draft = self._drafts.get((kind, name))
        if draft is None:
            metadata = part.provider_metadata if kind == "reasoning" else None
            self._release(metadata.item_id if metadata else None, events)
            draft = self._drafts[kind, name] = self._open()
        draft.metadata = draft.metadata.updated(part.provider_metadata)
        return draft

    def _grow(self, kind: str, step: str, part: _Part, events: list[Event]) -> None:
        draft = self._draft(kind, part, events)
        if part.delta:
            draft.pieces.append(part.delta)
            delta = TextDelta if kind == "text" else ReasoningDelta
            events.append(delta(0, draft.position, part.delta))
        if step == "end":
            del self._drafts[kind, part.id or ""]
            self._give(draft.position, self._items(kind, draft, draft.metadata), events)

    def _items(self, kind: str, draft: _Draft, metadata: Metadata) -> list[Item]:
        text = "".join(draft.pieces)
        if kind == "text":
            return [Text(text, metadata.seal, metadata.item_id)]
        if metadata.openrouter is not None:
            fresh = self._new_details(metadata)
            if fresh or metadata.details:
                return fresh
        return metadata.reasoning(text, self._dialect.reasoning_format)

    def _new_details(self, metadata: Metadata) -> list[Item]:
        """Entries not seen before: the provider repeats those of the reasoning on the first call."""
        fresh = [raw for raw in metadata.details if bytes(raw) not in self._details]
        self._details.update(bytes(raw) for raw in fresh)
        return [decode_detail(raw.copy()) for raw in fresh]

    def _grow_call(self, part: _Part, events: list[Event]) -> None:
        draft = self._draft("call", part, events)
        draft.name = part.tool_name or draft.name
        if part.type == "tool-input-start":
            events.append(CallDelta(0, draft.position, "", part.tool_call_id or "", part.tool_name))
        elif part.type == "tool-input-delta":
            draft.pieces.append(part.input_text_delta or "")
            events.append(CallDelta(0, draft.position, part.input_text_delta or ""))
        else:
            del self._drafts["call", part.tool_call_id or ""]
            whole = str(bytes(part.input), "utf-8", "replace") if is_given(part.input) else ""
            call = _call(part.tool_call_id or "", draft, whole, draft.metadata)
            self._give(draft.position, [*self._new_details(draft.metadata), call], events)

    def _give(self, position: int, items: list[Item], events: list[Event]) -> None:
        """The items of one part. The one its deltas told has the part's position, the others get their own."""
        told = next((at for at, item in enumerate(items) if isinstance(item, (ReasoningText, ReasoningSummary))), -1)
        done = []
        for at, item in enumerate(items):
            is_told = at == told or (told < 0 and at == len(items) - 1)
            self._extra_positions -= 0 if is_told else 1
            done.append(ItemDone(0, position if is_told else self._extra_positions, item))
        given: list[Event] = []
        self._order.done(position, done, given)
        self._tell(given, events)

    def _tell(self, given: list[Event], events: list[Event]) -> None:
        """Ciphertext that is repeated on every summary of one element is given once, after the last of them."""
        for event in given:
            item = event.item if isinstance(event, ItemDone) else None
            self._release(item.id if isinstance(item, (ReasoningSummary, ReasoningEncrypted)) else None, events)
            if isinstance(event, ItemDone) and isinstance(item, ReasoningEncrypted) and item.id is not None:
                self._held = event
            else:
                events.append(event)

    def _release(self, next_id: str | None, events: list[Event]) -> None:
        """Give the ciphertext that was held back, unless what comes next is of the same element."""
        held = self._held
        if held is not None and isinstance(held.item, ReasoningEncrypted) and held.item.id != next_id:
            events.append(held)
            self._held = None

    def _end(self, finish: Finish | None, events: list[Event]) -> None:
        """The message is over; a part that is still open has what came, and no seal."""
        self._is_done = True
        given: list[Event] = []
        for (kind, name), draft in self._drafts.items():
            bare = draft.metadata.unsealed()
            items = [_call(name, draft, "", bare)] if kind == "call" else self._items(kind, draft, bare)
            self._order.done(draft.position, [ItemDone(0, draft.position, item) for item in items[:1]], given)
        self._drafts.clear()
        self._order.flush(given)
        self._tell(given, events)
        self._release(None, events)
        events.append(TurnDone(0, finish))

    def _close(self, events: list[Event]) -> None:
        if self._is_started and not self._is_done:
            self._end(None, events)


def _call(name: str, draft: _Draft, whole: str, metadata: Metadata) -> ToolCall:
    arguments = whole or "".join(draft.pieces) or "{}"
    return ToolCall(draft.name, arguments, name, metadata.item_id, seal=metadata.seal)
