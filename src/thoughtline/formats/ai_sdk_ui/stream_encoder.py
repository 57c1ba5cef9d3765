"""Writing a UI message stream."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from thoughtline.formats.ai_sdk_ui.metadata import (
    encode_encrypted,
    encode_entry,
    encode_seal,
    encode_stored,
    encode_text,
)
from thoughtline.formats.ai_sdk_ui.stream import REASONS
from thoughtline.formats.event_encoder import EventEncoder
from thoughtline.formats.framing import sse
from thoughtline.formats.json_text import arguments_object, encode, is_json, object_of
from thoughtline.providers import AI_SDK, Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import (
    CallDelta,
    Event,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
)
from thoughtline.values.items import (
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
)

_NATIVE = {reason: native for native, reason in REASONS.items()}


class _Ending(NamedTuple):
    """A summary whose part ends as soon as it is known whether ciphertext goes with it."""

    position: int
    item: ReasoningSummary


class StreamEncoder(EventEncoder):
    """Events in, bytes of a UI message stream out."""

    def __init__(self, dialect: Dialect = AI_SDK) -> None:
        super().__init__(dialect)
        self._open: set[int] = set()
        self._calls: dict[int, str] = {}
        self._ending: _Ending | None = None

    keep_alive = b": keep-alive\n\n"

    def encode(self, event: Event) -> bytes:
        """The bytes that say what this event says."""
        if isinstance(event, ItemDone) and isinstance(event.item, ReasoningEncrypted):
            return self._encrypted(event.position, event.item)
        return self._end_summary(None) + super().encode(event)

    def _start(self, event: Started) -> bytes:
        return _part("start", [("messageId", encode(event.id) if event.id else None)]) + _part("start-step", [])

    def _text(self, event: TextDelta) -> bytes:
        return self._grow("text", event.position, event.text)

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._grow("reasoning", event.position, event.text)

    def _fail(self, error: Raw) -> bytes:
        return _part("error", [("errorText", encode(bytes(error).decode().strip('"')))])

    def finish(self) -> bytes:
        """The end of the stream; no finish part if the turn was cut."""
        ended = self._end_summary(None)
        if self._finish is None:
            return ended + sse(b"[DONE]")
        reason = encode(_NATIVE.get(self._finish.reason, "other"))
        return ended + _part("finish-step", []) + _part("finish", [("finishReason", reason)]) + sse(b"[DONE]")

    def _grow(self, kind: str, position: int, text: str) -> bytes:
        said = b""
        if position not in self._open:
            self._open.add(position)
            said = _part(f"{kind}-start", [("id", encode(str(position)))])
        if not text:
            return said
        return said + _part(f"{kind}-delta", [("id", encode(str(position))), ("delta", encode(text))])

    def _call(self, event: CallDelta) -> bytes:
        said = b""
        if event.position not in self._calls:
            self._calls[event.position] = event.id or ""
            name, call_id = encode(event.name or ""), encode(event.id or "")
            said = _part("tool-input-start", [("toolCallId", call_id), ("toolName", name)])
        if not event.arguments:
            return said
        call_id = encode(self._calls[event.position])
        return said + _part("tool-input-delta", [("toolCallId", call_id), ("inputTextDelta", encode(event.arguments))])

    def _item_done(self, event: ItemDone) -> bytes:
        position, item = event.position, event.item
        match item:
            case Text():
                return self._end("text", position, item.text, encode_seal(item.seal, item.id))
            case ReasoningText():
                return self._end("reasoning", position, item.text, encode_text(item))
            case ReasoningSummary():
                self._ending = _Ending(position, item)
                return b"" if position in self._open else self._grow("reasoning", position, item.summary)
            case ReasoningServerToolCall():
                return self._end("reasoning", position, "", encode_entry(item))
            case ToolCall():
                return self._call_done(item)
            case Unknown(seal=None):
                return b""
            case Unknown():
                return sse(bytes(item.raw))  # a part of this stream's own that carries a signature
            case _:
                raise EncodeError(f"a UI message stream can't hold a {type(item).__name__}")

    def _encrypted(self, position: int, item: ReasoningEncrypted) -> bytes:
        ending = self._ending
        if ending is not None and (ending.item.id, ending.item.format) == (item.id, item.format):
            return self._end_summary(item.data)
        return self._end_summary(None) + self._end("reasoning", position, "", encode_encrypted(item))

    def _end_summary(self, data: str | None) -> bytes:
        if self._ending is None:
            return b""
        (position, item), self._ending = self._ending, None
        metadata = encode_stored(item.format, item.id, data) or encode_entry(item)
        return self._end("reasoning", position, item.summary, metadata)

    def _end(self, kind: str, position: int, text: str, metadata: bytes | None) -> bytes:
        said = b"" if position in self._open else self._grow(kind, position, text)
        return said + _part(f"{kind}-end", [("id", encode(str(position))), ("providerMetadata", metadata)])

    def _call_done(self, call: ToolCall) -> bytes:
        known = [("toolCallId", encode(call.id or "")), ("toolName", encode(call.name))]
        metadata = encode_seal(call.seal, call.item_id)
        if not is_json(call.arguments):
            error = encode("the call was cut short")
            refused = [("input", encode(call.arguments)), ("errorText", error), ("providerMetadata", metadata)]
            return _part("tool-input-error", [*known, *refused])
        whole = arguments_object(call.arguments)
        return _part("tool-input-available", [*known, ("input", whole), ("providerMetadata", metadata)])


def _part(kind: str, rest: list[tuple[str, bytes | None]]) -> bytes:
    return sse(object_of([("type", encode(kind)), *rest]))
