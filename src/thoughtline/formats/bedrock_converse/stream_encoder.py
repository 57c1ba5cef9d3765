"""Writing ConverseStream, in Amazon's binary framing."""

from __future__ import annotations

from msgspec import Raw

from thoughtline.formats.aws_event_stream import encode_event, encode_exception
from thoughtline.formats.bedrock_converse.bodies import FINISH, encode_block, encode_usage, wrap
from thoughtline.formats.bedrock_converse.notes import citations_of
from thoughtline.formats.json_text import encode, object_of
from thoughtline.formats.streaming import BlockCursor, EventEncoder
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import (
    CallDelta,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
)
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Usage


class StreamEncoder(EventEncoder):
    """Events in, bytes of a Converse stream out."""

    def __init__(self, dialect: Dialect = BEDROCK_CLAUDE) -> None:
        super().__init__(dialect)
        self._cursor = BlockCursor()

    def _start(self, event: Started) -> bytes:
        return encode_event("messageStart", b'{"role":"assistant"}')

    def _text(self, event: TextDelta) -> bytes:
        return self._enter(event.choice, event.position) + self._grow({"text": event.text})

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._enter(event.choice, event.position) + self._grow({"reasoningContent": {"text": event.text}})

    def _turn_done(self, event: TurnDone) -> bytes:
        closing = object_of([("stopReason", FINISH.encode(event.finish))])
        return self._leave() + (encode_event("messageStop", closing) if event.finish else b"")

    def _report(self, usage: Usage) -> bytes:
        return encode_event("metadata", object_of([("usage", encode_usage(usage))]))

    def _fail(self, error: Raw) -> bytes:
        return encode_exception(error)

    def finish(self) -> bytes:
        """A Converse stream has no end mark."""
        return b""

    def _enter(self, choice: int, position: int) -> bytes:
        if self._cursor.open == position:
            return b""
        left = self._leave()
        self._cursor.enter(choice, position)
        return left

    def _grow(self, delta: object) -> bytes:
        return encode_event("contentBlockDelta", encode({"contentBlockIndex": self._cursor.index, "delta": delta}))

    def _leave(self) -> bytes:
        index = self._cursor.leave()
        return b"" if index is None else encode_event("contentBlockStop", encode({"contentBlockIndex": index}))

    def _call(self, event: CallDelta) -> bytes:
        said = b""
        if self._cursor.open != event.position:
            said = self._enter(event.choice, event.position)
            start = {"toolUse": {"toolUseId": event.id or "", "name": event.name or ""}}
            said += encode_event("contentBlockStart", encode({"contentBlockIndex": self._cursor.index, "start": start}))
        return said + (self._grow({"toolUse": {"input": event.arguments}}) if event.arguments else b"")

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if isinstance(item, (ReasoningText, ReasoningEncrypted)):
            encode_block(item, self._dialect)  # refuses a seal of another maker
        said = b""
        if event.position not in self._cursor.told:
            said = self._whole(event.choice, event.position, item)
        elif self._cursor.open != event.position:
            return b""
        if isinstance(item, ReasoningText) and item.signature is not None:
            said += self._grow({"reasoningContent": {"signature": item.signature}})
        elif isinstance(item, Text):
            said += b"".join(self._grow({"citation": one}) for one in citations_of(item.raw))
        return said + self._leave()

    def _whole(self, choice: int, position: int, item: Item) -> bytes:
        """An item that no delta announced."""
        match item:
            case Text():
                return self._enter(choice, position) + self._grow({"text": item.text})
            case ReasoningText():
                return self._enter(choice, position) + self._grow({"reasoningContent": {"text": item.text}})
            case ReasoningEncrypted():
                grown = {"reasoningContent": {"redactedContent": wrap(item.data)}}
                return self._enter(choice, position) + self._grow(grown)
            case ToolCall():
                return self._call(CallDelta(choice, position, item.arguments, item.id, item.name))
            case _:
                raise EncodeError(f"a Converse stream can't hold a {type(item).__name__}")
