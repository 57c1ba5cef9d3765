"""Encodes Messages streams: one block at a time, with Anthropic's events for start, growth and stop."""

from __future__ import annotations

from msgspec import Raw

from thoughtline.formats.anthropic_messages.bodies import FINISH, encode_block, encode_usage
from thoughtline.formats.bodies import require_own
from thoughtline.formats.framing import sse
from thoughtline.formats.json_text import NULL, Json, elements, encode, is_array, members, object_of, set_members
from thoughtline.formats.streaming import BlockCursor, EventEncoder
from thoughtline.providers import ANTHROPIC, Dialect
from thoughtline.values.events import (
    CallDelta,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
)
from thoughtline.values.items import Item, ReasoningText, Text, ToolCall

_GROWS = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":'


class StreamEncoder(EventEncoder):
    """Encodes events to the bytes of a Messages stream."""

    def __init__(self, dialect: Dialect = ANTHROPIC) -> None:
        super().__init__(dialect)
        self._cursor = BlockCursor()

    keep_alive = sse(b'{"type": "ping"}', "ping")

    def _text(self, event: TextDelta) -> bytes:
        entered = b""
        if self._cursor.open != event.position:
            entered = self._enter(event.choice, event.position, b'{"type":"text","text":""}')
        return entered + self._grow(b'{"type":"text_delta","text":%b}' % encode(event.text))

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        entered = b""
        if self._cursor.open != event.position:
            entered = self._enter(event.choice, event.position, b'{"type":"thinking","thinking":"","signature":""}')
        return entered + self._grow(b'{"type":"thinking_delta","thinking":%b}' % encode(event.text))

    def _turn_done(self, event: TurnDone) -> bytes:
        return self._leave()

    def _fail(self, error: Raw) -> bytes:
        return sse(object_of([("type", b'"error"'), ("error", error)]), "error")

    def finish(self) -> bytes:
        """The end of the stream; nothing if the turn was cut off."""
        if self._finish is None:
            return b""
        delta = object_of([("stop_reason", FINISH.encode(self._finish)), ("stop_sequence", b"null")])
        closing = object_of([("type", b'"message_delta"'), ("delta", delta), ("usage", encode_usage(self._usage))])
        return sse(closing, "message_delta") + sse(b'{"type":"message_stop"}', "message_stop")

    def _start(self, event: Started) -> bytes:
        message = object_of(
            [
                ("id", encode(event.id or "")),
                ("type", b'"message"'),
                ("role", b'"assistant"'),
                ("model", encode(event.model or "")),
                ("content", b"[]"),
                ("stop_reason", b"null"),
                ("stop_sequence", b"null"),
                ("usage", encode_usage(None)),
            ]
        )
        return sse(object_of([("type", b'"message_start"'), ("message", message)]), "message_start")

    def _enter(self, choice: int, position: int, block: bytes) -> bytes:
        """Open the block at this position unless it is open."""
        if self._cursor.open == position:
            return b""
        left = self._leave()
        self._cursor.enter(choice, position)
        start = [("type", b'"content_block_start"'), ("index", encode(self._cursor.index)), ("content_block", block)]
        return left + sse(object_of(start), "content_block_start")

    def _grow(self, delta: bytes) -> bytes:
        """Extend the open block. Called for nearly every event."""
        return b'%b%d,"delta":%b}\n\n' % (_GROWS, self._cursor.index, delta)

    def _leave(self) -> bytes:
        index = self._cursor.leave()
        if index is None:
            return b""
        return sse(encode({"type": "content_block_stop", "index": index}), "content_block_stop")

    def _call(self, event: CallDelta) -> bytes:
        opened = b""
        if self._cursor.open != event.position:
            block = {"type": "tool_use", "id": event.id or "", "name": event.name or "", "input": {}}
            opened = self._enter(event.choice, event.position, encode(block))
        if not event.arguments:
            return opened
        return opened + self._grow(encode({"type": "input_json_delta", "partial_json": event.arguments}))

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if event.position not in self._cursor.entered:
            return self._whole(event.choice, event.position, item)
        if self._cursor.open != event.position:
            return b""
        signed = b""
        if isinstance(item, ReasoningText) and item.signature:
            require_own(item, self._dialect)
            signed = self._grow(encode({"type": "signature_delta", "signature": item.signature}))
        elif isinstance(item, Text) and item.raw:
            signed = self._cite(item.raw)
        return signed + self._leave()

    def _cite(self, block: Json) -> bytes:
        """The citations of a block, which come with its end."""
        listed = members(block).get("citations", NULL)
        citations = elements(listed) if is_array(listed) else []
        return b"".join(self._grow(object_of([("type", b'"citations_delta"'), ("citation", one)])) for one in citations)

    def _whole(self, choice: int, position: int, item: Item) -> bytes:
        """An item without deltas."""
        block = encode_block(item, self._dialect)
        match item:
            case Text():
                start = self._enter(choice, position, set_members(block, [("text", b'""'), ("citations", None)]))
                grown = self._grow(encode({"type": "text_delta", "text": item.text}))
                return start + grown + self._cite(block) + self._leave()
            case ReasoningText():
                return self._whole_thinking(choice, position, item, block)
            case ToolCall():
                start = self._enter(choice, position, set_members(block, [("input", b"{}")]))
                grown = encode({"type": "input_json_delta", "partial_json": item.arguments})
                return start + self._grow(grown) + self._leave()
            case _:
                return self._enter(choice, position, block) + self._leave()

    def _whole_thinking(self, choice: int, position: int, item: ReasoningText, block: bytes) -> bytes:
        if "thinking" not in members(Raw(block)):
            return self._enter(choice, position, block) + self._leave()
        empty = [("thinking", b'""')] + ([("signature", b'""')] if item.signature is not None else [])
        output = self._enter(choice, position, set_members(block, empty))
        if item.text:
            output += self._grow(encode({"type": "thinking_delta", "thinking": item.text}))
        if item.signature:
            output += self._grow(encode({"type": "signature_delta", "signature": item.signature}))
        return output + self._leave()
