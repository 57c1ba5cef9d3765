"""The AI SDK's UI message stream, version 1: what a browser gets. Stream only; there is no request of this shape.

Seals travel in `providerMetadata` under the name of the provider that made them, on any part.
Shapes: vercel/ai `ui-message-chunks.ts`, read 2026-11.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from thoughtline.errors import EncodeError, LimitExceeded
from thoughtline.events import (
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
from thoughtline.formats.framing import MAX_EVENT_BYTES, ServerSentEvents, sse
from thoughtline.formats.json_text import NULL, array, encode, is_given, object_of
from thoughtline.formats.reasoning_details import decode_detail, encode_detail
from thoughtline.formats.streaming import PayloadStreamDecoder, is_end_mark
from thoughtline.items import (
    ANTHROPIC_CLAUDE_V1,
    GOOGLE_GEMINI_V1,
    OPENAI_RESPONSES_V1,
    Item,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    Unknown,
)
from thoughtline.providers import AI_SDK, Dialect
from thoughtline.turns import Finish, FinishReason

MAX_OPEN_PARTS = 10_000
"""No message has so many parts; a stream that opens more is not one."""

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
    "error": "error",
}
_NATIVE: dict[FinishReason, str] = {reason: native for native, reason in _REASONS.items()} | {"other": "other"}


class _Anthropic(Struct, gc=False):
    signature: str | None = None
    redactedData: str | None = None  # noqa: N815 - the wire's spelling


class _OpenAI(Struct, gc=False):
    itemId: str | None = None  # noqa: N815 - the wire's spelling
    reasoningEncryptedContent: str | None = None  # noqa: N815 - the wire's spelling


class _Google(Struct, gc=False):
    thoughtSignature: str | None = None  # noqa: N815 - the wire's spelling


class _OpenRouter(Struct, gc=False):
    reasoning_details: list[Raw] | None = None


class _Metadata(Struct, gc=False):
    anthropic: _Anthropic | None = None
    openai: _OpenAI | None = None
    google: _Google | None = None
    openrouter: _OpenRouter | None = None

    def updated(self, later: _Metadata) -> _Metadata:
        """What two parts of one item say together; a later part replaces what an earlier one said."""
        return _Metadata(
            later.anthropic or self.anthropic,
            later.openai or self.openai,
            later.google or self.google,
            later.openrouter or self.openrouter,
        )


class _Part(Struct, gc=False):
    type: str = ""
    id: str | None = None
    delta: str | None = None
    messageId: str | None = None  # noqa: N815 - the wire's spelling
    toolCallId: str | None = None  # noqa: N815 - the wire's spelling
    toolName: str | None = None  # noqa: N815 - the wire's spelling
    inputTextDelta: str | None = None  # noqa: N815 - the wire's spelling
    input: Raw = NULL
    errorText: str | None = None  # noqa: N815 - the wire's spelling
    finishReason: str | None = None  # noqa: N815 - the wire's spelling
    providerMetadata: _Metadata | None = None  # noqa: N815 - the wire's spelling


_decode_part = msgspec.json.Decoder(_Part).decode


class _Draft:
    """A part that grows."""

    __slots__ = ("kind", "metadata", "pieces", "position")

    def __init__(self, kind: str, position: int) -> None:
        self.kind = kind
        self.position = position
        self.pieces: list[str] = []
        self.metadata = _Metadata()


class StreamDecoder(PayloadStreamDecoder):
    """Bytes of a UI message stream in, events out."""

    def __init__(self, dialect: Dialect = AI_SDK, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(ServerSentEvents(limit))
        self._dialect = dialect
        self._drafts: dict[tuple[str, str], _Draft] = {}
        self._next_position = 0
        self._is_started = False
        self._is_done = False

    def _take(self, payload: bytes, events: list[Event]) -> None:
        try:
            part = _decode_part(payload)
        except msgspec.DecodeError:
            if is_end_mark(payload):
                return
            raise
        kind, _, step = part.type.partition("-")
        if not self._is_started:
            self._is_started = True
            events.append(Started(part.messageId))
        if kind in ("text", "reasoning") and step in ("start", "delta", "end"):
            self._grow(kind, step, part, events)
        elif part.type.startswith("tool-input-"):
            self._call(part, payload, events)
        elif part.type == "finish" and not self._is_done:
            self._end(part, events)
        elif part.type == "error":
            events.append(Failed(Raw(encode(part.errorText or ""))))
        elif part.type not in ("start", "start-step", "finish-step"):
            events.append(Other(Raw(payload)))

    def _draft(self, kind: str, name: str) -> _Draft:
        draft = self._drafts.get((kind, name))
        if draft is None:
            if len(self._drafts) >= MAX_OPEN_PARTS:
                raise LimitExceeded(f"more than {MAX_OPEN_PARTS} parts open at once")
            draft = self._drafts[kind, name] = _Draft(kind, self._next_position)
            self._next_position += 1
        return draft

    def _grow(self, kind: str, step: str, part: _Part, events: list[Event]) -> None:
        draft = self._draft(kind, part.id or "")
        if part.providerMetadata is not None:
            draft.metadata = draft.metadata.updated(part.providerMetadata)
        if part.delta:
            draft.pieces.append(part.delta)
            delta = TextDelta if kind == "text" else ReasoningDelta
            events.append(delta(0, draft.position, part.delta))
        if step == "end":
            self._item_done(kind, part.id or "", events)

    def _item_done(self, kind: str, name: str, events: list[Event]) -> None:
        draft = self._drafts.pop((kind, name))
        text = "".join(draft.pieces)
        items: list[Item] = [Text(text, _seal(draft.metadata))]
        if kind == "reasoning":
            items = _reasoning(text, draft.metadata, self._dialect)
        self._give(draft.position, items, events)

    def _give(self, position: int, items: list[Item], events: list[Event]) -> None:
        for item in items:
            events.append(ItemDone(0, position, item))
            position, self._next_position = self._next_position, self._next_position + 1

    def _call(self, part: _Part, payload: bytes, events: list[Event]) -> None:
        name = part.toolCallId or ""
        match part.type:
            case "tool-input-start":
                position = self._draft("call", name).position
                events.append(CallDelta(0, position, "", name, part.toolName))
            case "tool-input-delta":
                draft = self._draft("call", name)
                draft.pieces.append(part.inputTextDelta or "")
                events.append(CallDelta(0, draft.position, part.inputTextDelta or ""))
            case "tool-input-available":
                self._call_done(part, name, events)
            case _:
                events.append(Other(Raw(payload)))

    def _call_done(self, part: _Part, name: str, events: list[Event]) -> None:
        draft = self._draft("call", name)
        del self._drafts["call", name]
        metadata = draft.metadata.updated(part.providerMetadata or _Metadata())
        arguments = str(bytes(part.input), "utf-8", "replace") if is_given(part.input) else "".join(draft.pieces)
        call = ToolCall(part.toolName or "", arguments or "{}", name, seal=_seal(metadata))
        details: list[Item] = list(_details(metadata))
        self._give(draft.position, [call], events)
        self._give(self._next_position, details, events)

    def _end(self, part: _Part, events: list[Event]) -> None:
        self._is_done = True
        for kind, name in list(self._drafts):
            if kind != "call":
                self._item_done(kind, name, events)
        native = part.finishReason or "stop"
        events.append(TurnDone(0, Finish(_REASONS.get(native, "other"), native)))

    def _close(self, events: list[Event]) -> None:
        if self._is_started and not self._is_done:
            for kind, name in list(self._drafts):
                if kind != "call":
                    self._item_done(kind, name, events)
            events.append(TurnDone(0, None))


def _seal(metadata: _Metadata) -> Seal | None:
    google = metadata.google
    return Seal(google.thoughtSignature, GOOGLE_GEMINI_V1) if google and google.thoughtSignature else None


def _details(metadata: _Metadata) -> list[Item]:
    entries = metadata.openrouter.reasoning_details if metadata.openrouter else None
    return [decode_detail(raw.copy()) for raw in entries or ()]


def _reasoning(text: str, metadata: _Metadata, dialect: Dialect) -> list[Item]:
    """One reasoning part: what it is depends on whose metadata it carries."""
    if metadata.openrouter is not None:
        return _details(metadata) or [ReasoningText(text, None, dialect.reasoning_format)]
    if metadata.openai is not None:
        return _openai(text, metadata.openai)
    if metadata.google is not None and metadata.google.thoughtSignature:
        return [ReasoningText(text, metadata.google.thoughtSignature, GOOGLE_GEMINI_V1)]
    if metadata.anthropic is not None and metadata.anthropic.redactedData:
        return [ReasoningEncrypted(metadata.anthropic.redactedData, ANTHROPIC_CLAUDE_V1)]
    if metadata.anthropic is not None:
        return [ReasoningText(text, metadata.anthropic.signature, ANTHROPIC_CLAUDE_V1)]
    return [ReasoningText(text, None, dialect.reasoning_format)]


def _openai(text: str, metadata: _OpenAI) -> list[Item]:
    items: list[Item] = [ReasoningSummary(text, OPENAI_RESPONSES_V1, metadata.itemId)]
    if metadata.reasoningEncryptedContent:
        items.append(ReasoningEncrypted(metadata.reasoningEncryptedContent, OPENAI_RESPONSES_V1, metadata.itemId))
    return items


# --- writing ---------------------------------------------------------------------------------------------------------


class StreamEncoder:
    """Events in, bytes of a UI message stream out."""

    def __init__(self, dialect: Dialect = AI_SDK) -> None:
        self._dialect = dialect
        self._open: dict[int, str] = {}
        self._calls: set[int] = set()
        self._last_summary: tuple[str, str | None] | None = None
        self._finish: Finish | None = None

    def encode(self, event: Event) -> bytes:
        """The bytes that say what this event says."""
        match event:
            case Started():
                return _part("start", [("messageId", encode(event.id) if event.id else None)]) + _part("start-step", [])
            case TextDelta():
                return self._grow("text", event.position, event.text)
            case ReasoningDelta():
                return self._grow("reasoning", event.position, event.text)
            case CallDelta():
                return self._call(event)
            case ItemDone():
                return self._item_done(event.position, event.item)
            case TurnDone():
                self._finish = event.finish
                return b""
            case UsageReported():
                return b""
            case Failed():
                return _part("error", [("errorText", encode(bytes(event.error).decode()))])
            case Other():
                return b": keep-alive\n\n"
            case _:
                assert_never(event)

    def finish(self) -> bytes:
        """The end of the stream; no finish part if the turn was cut."""
        if self._finish is None:
            return sse(b"[DONE]")
        reason = encode(_NATIVE[self._finish.reason])
        return _part("finish-step", []) + _part("finish", [("finishReason", reason)]) + sse(b"[DONE]")

    def _grow(self, kind: str, position: int, text: str) -> bytes:
        said = b""
        if position not in self._open:
            self._open[position] = kind
            said = _part(f"{kind}-start", [("id", encode(str(position)))])
        if not text:
            return said
        return said + _part(f"{kind}-delta", [("id", encode(str(position))), ("delta", encode(text))])

    def _call(self, event: CallDelta) -> bytes:
        said = b""
        if event.position not in self._calls:
            self._calls.add(event.position)
            name, call_id = encode(event.name or ""), encode(event.id or "")
            said = _part("tool-input-start", [("toolCallId", call_id), ("toolName", name)])
            self._open[event.position] = event.id or ""
        if not event.arguments:
            return said
        call_id = encode(self._open.get(event.position, ""))
        return said + _part("tool-input-delta", [("toolCallId", call_id), ("inputTextDelta", encode(event.arguments))])

    def _item_done(self, position: int, item: Item) -> bytes:
        match item:
            case Text():
                return self._end("text", position, item.text, _google(item.seal))
            case ReasoningText():
                return self._end("reasoning", position, item.text, _signed(item))
            case ReasoningSummary():
                metadata = encode({"openai": {"itemId": item.id}}) if item.id is not None else None
                return self._end("reasoning", position, item.summary, metadata)
            case ReasoningEncrypted():
                return self._end("reasoning", position, "", _encrypted(item))
            case ToolCall():
                return self._call_done(item)
            case Unknown():
                return b""
            case _:
                raise EncodeError(f"a UI message stream can't hold a {type(item).__name__}")

    def _end(self, kind: str, position: int, text: str, metadata: bytes | None) -> bytes:
        said = b"" if position in self._open else self._grow(kind, position, text)
        return said + _part(f"{kind}-end", [("id", encode(str(position))), ("providerMetadata", metadata)])

    def _call_done(self, call: ToolCall) -> bytes:
        known = [("toolCallId", encode(call.id or "")), ("toolName", encode(call.name))]
        rest = [("input", call.arguments.encode()), ("providerMetadata", _google(call.seal))]
        return _part("tool-input-available", [*known, *rest])


def _part(kind: str, rest: list[tuple[str, bytes | None]]) -> bytes:
    return sse(object_of([("type", encode(kind)), *rest]))


def _google(seal: Seal | None) -> bytes | None:
    if seal is None:
        return None
    if seal.format != GOOGLE_GEMINI_V1:
        raise EncodeError(f"a UI message part has no place for the seal of {seal.format}")
    return encode({"google": {"thoughtSignature": seal.data}})


def _signed(item: ReasoningText) -> bytes | None:
    if item.signature is None:
        return None
    by_maker: dict[ReasoningFormat, dict[str, dict[str, str]]] = {
        ANTHROPIC_CLAUDE_V1: {"anthropic": {"signature": item.signature}},
        GOOGLE_GEMINI_V1: {"google": {"thoughtSignature": item.signature}},
    }
    if item.format in by_maker:
        return encode(by_maker[item.format])
    return _entry(item)


def _encrypted(item: ReasoningEncrypted) -> bytes:
    if item.format == ANTHROPIC_CLAUDE_V1:
        return encode({"anthropic": {"redactedData": item.data}})
    if item.format == OPENAI_RESPONSES_V1:
        return encode({"openai": {"itemId": item.id, "reasoningEncryptedContent": item.data}})
    return _entry(item)


def _entry(item: Item) -> bytes:
    """Any other maker's seal, as an entry of OpenRouter's, which names the maker."""
    return object_of([("openrouter", object_of([("reasoning_details", array([encode_detail(item)]))]))])
