"""Reading ConverseStream: blocks that grow by deltas under their index, in Amazon's binary framing."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.aws_event_stream import MAX_MESSAGE_BYTES, EventStream
from thoughtline.formats.bedrock_converse.blocks import ReasoningMember, ToolUse, decode_block, unwrap
from thoughtline.formats.bedrock_converse.bodies import decode_finish, decode_usage
from thoughtline.formats.bedrock_converse.notes import cited_block
from thoughtline.formats.framing import Frame
from thoughtline.formats.json_text import NULL, array, encode, is_given, is_json, object_of, set_members
from thoughtline.formats.streaming import IndexOrder, PayloadStreamDecoder
from thoughtline.providers import BEDROCK_CLAUDE, Dialect
from thoughtline.values.errors import DecodeError, LimitExceeded
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
from thoughtline.values.turns import Finish

MAX_BLOCKS = 10_000
"""No answer has so many blocks; a stream that opens more is not one."""


# The members are spelled as the wire spells them.
class _CallDelta(Struct, gc=False):
    input: str | None = None


class _Delta(Struct, gc=False):
    text: str | None = None
    reasoningContent: ReasoningMember | None = None  # noqa: N815
    toolUse: _CallDelta | None = None  # noqa: N815
    toolResult: list[Raw] | None = None  # noqa: N815
    citation: Raw = NULL


class _Start(Struct, gc=False):
    toolUse: ToolUse | None = None  # noqa: N815
    toolResult: Raw = NULL  # noqa: N815


class _BlockStart(Struct, gc=False):
    contentBlockIndex: int = 0  # noqa: N815
    start: _Start | None = None


class _BlockDelta(Struct, gc=False):
    contentBlockIndex: int = 0  # noqa: N815
    delta: _Delta | None = None


class _BlockStop(Struct, gc=False):
    contentBlockIndex: int = 0  # noqa: N815


class _MessageStop(Struct, gc=False):
    stopReason: str | None = None  # noqa: N815


class _Metadata(Struct, gc=False):
    usage: Raw = NULL


class _Event(Struct, gc=False):
    """One event, as SDKs give it: an object with one member named after the event."""

    contentBlockDelta: _BlockDelta | None = None  # noqa: N815
    messageStart: Raw = NULL  # noqa: N815
    contentBlockStart: _BlockStart | None = None  # noqa: N815
    contentBlockStop: _BlockStop | None = None  # noqa: N815
    messageStop: _MessageStop | None = None  # noqa: N815
    metadata: _Metadata | None = None
    exception: Raw = NULL


_decode_event = msgspec.json.Decoder(_Event).decode


class _NamedPayloads(EventStream):
    """Binary messages as objects with one member named after the event."""

    def feed(self, data: bytes) -> list[Frame]:
        return [replace(frame, payload=_named(frame)) for frame in super().feed(data)]


def _named(frame: Frame) -> bytes:
    headers = frame.headers
    kind = headers.get(":message-type", "event")
    if kind == "event":
        return object_of([(headers.get(":event-type", ""), frame.payload or b"{}")])
    name = headers.get(":exception-type") or headers.get(":error-code") or kind
    payload = frame.payload or encode(headers.get(":error-message", ""))
    return object_of([("exception", object_of([(name, payload)]))])


class _Draft:
    """A block that grows."""

    __slots__ = ("blobs", "call", "citations", "is_text", "json", "result", "results", "signature", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.json: list[str] = []
        self.blobs: list[str] = []
        self.citations: list[Raw] = []
        self.signature: str | None = None
        self.call: ToolUse | None = None
        self.result = NULL
        self.results: list[Raw] = []
        self.is_text = False

    def items(self, dialect: Dialect) -> list[Item]:
        made_by = dialect.reasoning_format
        if self.call is not None and not self.call.is_ours:
            return [self._own_call(self.call)]
        if self.call is not None:
            return [ToolCall(self.call.name or "", "".join(self.json) or "{}", self.call.toolUseId)]
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
        """A call of a tool that Amazon runs itself, as it would have come whole."""
        named = {"toolUseId": call.toolUseId, "name": call.name, "type": call.type}
        known = [(name, encode(value)) for name, value in named.items()]
        text = "".join(self.json)
        use = object_of([*known, ("input", text.encode() if is_json(text) else b"{}")])
        return Unknown("toolUse", Raw(object_of([("toolUse", use)])))


class StreamDecoder(PayloadStreamDecoder):
    """Bytes of a Converse stream in, events out."""

    def __init__(self, dialect: Dialect = BEDROCK_CLAUDE, limit: int = MAX_MESSAGE_BYTES) -> None:
        super().__init__(_NamedPayloads(limit))
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._order = IndexOrder()
        self._is_started = False
        self._is_done = False

    def feed_event(self, name: str, payload: bytes) -> list[Event]:
        """The same for an event that somebody else has taken out of its frame."""
        events: list[Event] = []
        try:
            self._take(object_of([(name, payload)]), events)
        except msgspec.DecodeError as error:
            raise DecodeError(str(error).replace("`", ""), name).from_upstream() from None
        return events

    def _take(self, payload: bytes, events: list[Event]) -> None:
        event = _decode_event(payload)
        delta = event.contentBlockDelta
        if delta is not None:
            if delta.delta is not None:
                self._grow(delta.contentBlockIndex, delta.delta, events)
        elif event.contentBlockStart is not None:
            self._start_block(event.contentBlockStart, events)
        elif event.contentBlockStop is not None:
            self._stop(event.contentBlockStop.contentBlockIndex, events)
        elif event.messageStop is not None:
            self._end(decode_finish(event.messageStop.stopReason), events)
        elif event.metadata is not None and is_given(event.metadata.usage):
            events.append(UsageReported(decode_usage(event.metadata.usage)))
        elif is_given(event.messageStart):
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

    def _start_block(self, event: _BlockStart, events: list[Event]) -> None:
        draft = self._draft(event.contentBlockIndex)
        if event.start is not None and event.start.toolUse is not None:
            draft.call = event.start.toolUse
            call = draft.call
            if call.is_ours:
                events.append(CallDelta(0, event.contentBlockIndex, "", call.toolUseId, call.name))
        elif event.start is not None and is_given(event.start.toolResult):
            draft.result = event.start.toolResult.copy()

    def _grow(self, index: int, delta: _Delta, events: list[Event]) -> None:
        draft = self._draft(index)
        if delta.text is not None:
            draft.is_text = True
            draft.texts.append(delta.text)
            if delta.text:
                events.append(TextDelta(0, index, delta.text))
        elif delta.reasoningContent is not None:
            self._think(draft, index, delta.reasoningContent, events)
        elif delta.toolUse is not None and delta.toolUse.input is not None:
            draft.json.append(delta.toolUse.input)
            if draft.call is None or draft.call.is_ours:
                events.append(CallDelta(0, index, delta.toolUse.input))
        elif delta.toolResult is not None:
            draft.results += [raw.copy() for raw in delta.toolResult]
        elif is_given(delta.citation):
            draft.citations.append(delta.citation.copy())

    def _think(self, draft: _Draft, index: int, reasoning: ReasoningMember, events: list[Event]) -> None:
        if reasoning.text is not None:
            draft.thoughts.append(reasoning.text)
            events.append(ReasoningDelta(0, index, reasoning.text))
        if reasoning.signature is not None:
            draft.signature = reasoning.signature
        if reasoning.redactedContent is not None:
            draft.blobs.append(unwrap(reasoning.redactedContent))

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
                draft.signature = None  # a signature counts once its block is closed
            self._end(None, events)
