"""ConverseStream, decoded and encoded: blocks that grow by deltas under their index, in Amazon's binary framing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.aws_event_stream import NamedEvents, encode_event, encode_exception
from thoughtline.formats.bedrock_converse.blocks import (
    ReasoningMember,
    ToolUse,
    citations_of,
    cited_block,
    decode_block,
    encode_block,
    unwrap,
    wrap,
)
from thoughtline.formats.bedrock_converse.bodies import FINISH, USAGE, encode_usage
from thoughtline.formats.json_text import NULL, array, encode, is_given, is_json, object_of, set_members
from thoughtline.formats.streaming import BlockCursor, EventEncoder, IndexOrder, PayloadStreamDecoder
from thoughtline.formats.texts import Json, Texts, TextSpot, inner, objects
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.errors import EncodeError, LimitExceeded
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
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Text, ToolCall, Unknown
from thoughtline.values.turns import Finish, Usage

MAX_BLOCKS = 10_000
"""No answer has this many blocks; a stream that opens more is rejected."""


class _CallDelta(Struct, gc=False):
    input: str | None = None


class _Delta(Struct, gc=False, rename="camel"):
    text: str | None = None
    reasoning_content: ReasoningMember | None = None
    tool_use: _CallDelta | None = None
    tool_result: list[Raw] | None = None
    citation: Raw = NULL


class _Start(Struct, gc=False, rename="camel"):
    tool_use: ToolUse | None = None
    tool_result: Raw = NULL


class _BlockEvent(Struct, gc=False, rename="camel"):
    """A block starts, grows or stops."""

    content_block_index: int = 0
    start: _Start | None = None
    delta: _Delta | None = None


class _MessageStop(Struct, gc=False, rename="camel"):
    stop_reason: str | None = None


class _Event(Struct, gc=False, rename="camel"):
    """One event as SDKs show it: an object with one member named after the event."""

    content_block_delta: _BlockEvent | None = None
    message_start: Raw = NULL
    content_block_start: _BlockEvent | None = None
    content_block_stop: _BlockEvent | None = None
    message_stop: _MessageStop | None = None
    metadata: dict[str, Raw] | None = None
    exception: Raw = NULL


_decode_event = msgspec.json.Decoder(_Event).decode


class _Draft(Struct):
    texts: list[str] = []
    thoughts: list[str] = []
    json: list[str] = []
    blobs: list[str] = []
    citations: list[Raw] = []
    signature: str | None = None
    call: ToolUse | None = None
    result: Raw = NULL
    results: list[Raw] = []
    is_text: bool = False

    def items(self, dialect: Dialect) -> list[Item]:
        made_by = dialect.reasoning_format
        if self.call is not None and not self.call.is_ours:
            return [self._own_call(self.call)]
        if self.call is not None:
            return [ToolCall(self.call.name or "", "".join(self.json) or "{}", self.call.tool_use_id)]
        if is_given(self.result):
            result = set_members(self.result, [("content", array(self.results))])
            return [decode_block(Raw(object_of([("toolResult", result)])), dialect)]
        if self.thoughts or self.signature is not None:
            return [ReasoningText("".join(self.thoughts), self.signature, made_by)]
        if self.blobs:
            return [ReasoningEncrypted(blob, made_by) for blob in self.blobs]
        text = "".join(self.texts)
        if self.citations:
            return [Text(text, raw=cited_block(text, self.citations))]
        return [Text(text)] if self.is_text else []

    def _own_call(self, call: ToolUse) -> Item:
        """A call of a tool that Amazon runs, as a whole response has it."""
        named = {"toolUseId": call.tool_use_id, "name": call.name, "type": call.type}
        known = [(name, encode(value)) for name, value in named.items()]
        text = "".join(self.json)
        use = object_of([*known, ("input", text.encode() if is_json(text) else b"{}")])
        return Unknown("toolUse", Raw(object_of([("toolUse", use)])))


class StreamDecoder(PayloadStreamDecoder):
    def __init__(self, dialect: Dialect = BEDROCK_CLAUDE) -> None:
        super().__init__(NamedEvents())
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._order = IndexOrder()
        self._is_started = False
        self._is_done = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        event = _decode_event(payload)
        delta = event.content_block_delta
        if delta is not None:
            if delta.delta is not None:
                self._grow(delta.content_block_index, delta.delta, events)
        elif event.content_block_start is not None:
            self._start_block(event.content_block_start, events)
        elif event.content_block_stop is not None:
            self._stop(event.content_block_stop.content_block_index, events)
        elif event.message_stop is not None:
            self._end(FINISH.decode(event.message_stop.stop_reason), events)
        elif event.metadata is not None and is_given(usage := event.metadata.get("usage", NULL)):
            events.append(UsageReported(USAGE.decode(usage)))
        elif is_given(event.message_start):
            self._is_started = True
            events.append(Started())
        elif is_given(event.exception):
            events.append(Failed(event.exception.copy()))
        else:
            events.append(Other(Raw(payload)))

    def _draft(self, index: int) -> _Draft:
        draft = self._drafts.get(index)
        if draft is None:
            if len(self._drafts) >= MAX_BLOCKS:
                raise LimitExceeded(f"more than {MAX_BLOCKS} blocks in one answer")
            draft = self._drafts[index] = _Draft()
        return draft

    def _start_block(self, event: _BlockEvent, events: list[Event]) -> None:
        draft = self._draft(event.content_block_index)
        if event.start is not None and event.start.tool_use is not None:
            call = draft.call = event.start.tool_use
            if call.is_ours:
                events.append(CallDelta(0, event.content_block_index, "", call.tool_use_id, call.name))
        elif event.start is not None and is_given(event.start.tool_result):
            draft.result = event.start.tool_result.copy()

    def _grow(self, index: int, delta: _Delta, events: list[Event]) -> None:
        draft = self._draft(index)
        if delta.text is not None:
            draft.is_text = True
            draft.texts.append(delta.text)
            if delta.text:
                events.append(TextDelta(0, index, delta.text))
        elif delta.reasoning_content is not None:
            self._think(draft, index, delta.reasoning_content, events)
        elif delta.tool_use is not None and delta.tool_use.input is not None:
            draft.json.append(delta.tool_use.input)
            if draft.call is None or draft.call.is_ours:
                events.append(CallDelta(0, index, delta.tool_use.input))
        elif delta.tool_result is not None:
            draft.results += [raw.copy() for raw in delta.tool_result]
        elif is_given(delta.citation):
            draft.citations.append(delta.citation.copy())

    def _think(self, draft: _Draft, index: int, reasoning: ReasoningMember, events: list[Event]) -> None:
        if reasoning.text is not None:
            draft.thoughts.append(reasoning.text)
            events.append(ReasoningDelta(0, index, reasoning.text))
        if reasoning.signature is not None:
            draft.signature = reasoning.signature
        if reasoning.redacted_content is not None:
            draft.blobs.append(unwrap(reasoning.redacted_content))

    def _stop(self, index: int, events: list[Event]) -> None:
        draft = self._drafts.pop(index, None)
        if draft is not None:
            items = [ItemDone(0, index, item) for item in draft.items(self._dialect)]
            self._order.done(index, items, events)

    def _end(self, finish: Finish | None, events: list[Event]) -> None:
        if not self._is_done:
            self._is_done = True
            for index in sorted(self._drafts):
                self._stop(index, events)
            self._order.flush(events)
            events.append(TurnDone(0, finish))

    def _close(self, events: list[Event]) -> None:
        if self._is_started and not self._is_done:
            for draft in self._drafts.values():
                draft.signature = None  # a signature is valid only when its block is closed
            self._end(None, events)


class StreamEncoder(EventEncoder):
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
        output = b""
        if self._cursor.open != event.position:
            output = self._enter(event.choice, event.position)
            start = {"toolUse": {"toolUseId": event.id or "", "name": event.name or ""}}
            output += encode_event(
                "contentBlockStart", encode({"contentBlockIndex": self._cursor.index, "start": start})
            )
        return output + (self._grow({"toolUse": {"input": event.arguments}}) if event.arguments else b"")

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if isinstance(item, (ReasoningText, ReasoningEncrypted)):
            encode_block(item, self._dialect)  # rejects another provider's seal
        output = b""
        if event.position not in self._cursor.entered:
            output = self._whole(event.choice, event.position, item)
        elif self._cursor.open != event.position:
            return b""
        if isinstance(item, ReasoningText) and item.signature is not None:
            output += self._grow({"reasoningContent": {"signature": item.signature}})
        elif isinstance(item, Text):
            output += b"".join(self._grow({"citation": one}) for one in citations_of(item.raw))
        return output + self._leave()

    def _whole(self, choice: int, position: int, item: Item) -> bytes:
        """An item without deltas."""
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


# --- positions of visible text ----------------------------------------------------------------------------------------
# Only for whole answers: streams are binary with checksums, so they are decoded and encoded again.


def _body(value: Json) -> Iterator[TextSpot]:
    for at, block in objects(inner(inner(value, "output"), "message").get("content")):
        if isinstance(block.get("text"), str):
            yield TextSpot((at,), ("output", "message", "content", at, "text"), block["text"], is_whole=True)


TEXTS = Texts(_body)
