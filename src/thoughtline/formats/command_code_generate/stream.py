"""The AI SDK's stream parts, one JSON object a line, decoded and encoded.

Parts of text and reasoning grow under their id between a start and an end. A call counts when it is complete, as
`tool-call`: the `tool-input-…` before it are only for display. `TextStreamPart` of `ai` 5 and 6 (vercel/ai,
`packages/ai/src/generate-text/stream-text-result.ts`), read 2026-11-18.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats.bodies import FinishWords, UsageMembers
from thoughtline.formats.command_code_generate.parts import encode_part, merged, metadata_of
from thoughtline.formats.framing import JsonLines, one_line
from thoughtline.formats.json_text import (
    NULL,
    arguments_object,
    arguments_text,
    decode_kind,
    encode,
    is_given,
    object_of,
    read_or_none,
)
from thoughtline.formats.streaming import BlockCursor, EventEncoder, IndexOrder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY as EVERY_TEXT
from thoughtline.formats.texts import NOTHING, Json, Reading, Texts, TextSpot
from thoughtline.providers import COMMAND_CODE, Dialect
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
from thoughtline.values.items import Item, ReasoningText, Seal, Text, ToolCall
from thoughtline.values.turns import Finish, Usage

MAX_PARTS = 10_000
"""No answer has this many parts; a stream that opens more is rejected."""

FINISH = FinishWords(
    known={
        "stop": "stop",
        "length": "length",
        "tool-calls": "tool_calls",
        "content-filter": "content_filter",
        "error": "error",
        "other": "other",
        "unknown": "other",
    },
    written={
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool-calls",
        "content_filter": "content-filter",
        "error": "error",
        "other": "other",
    },
    # The providers' own values, seen in `finish` (9router's `commandcode-to-openai.js`, 2026-11).
    foreign={
        "end_turn": "stop",
        "end": "stop",
        "max_tokens": "length",
        "max_output_tokens": "length",
        "tool_use": "tool_calls",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
    },
)
USAGE = UsageMembers(
    "/totalUsage",
    input="inputTokens",
    output="outputTokens",
    reasoning="outputTokenDetails.reasoningTokens|reasoningTokens",
    cached="inputTokenDetails.cacheReadTokens|cachedInputTokens",
    cache_written="inputTokenDetails.cacheWriteTokens",
)

_Kind = Literal["text", "reasoning"]


class _Event(Struct, gc=False, rename="camel"):
    type: str = ""
    id: str | None = None
    text: str | None = None
    delta: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: Raw = NULL
    args: Raw = NULL
    provider_executed: bool | None = None
    provider_metadata: Raw = NULL
    finish_reason: Raw = NULL
    usage: Raw = NULL
    total_usage: Raw = NULL
    error: Raw = NULL


class _Reason(Struct, gc=False):
    unified: str | None = None


_decoder = msgspec.json.Decoder(_Event)
_reason_decoder = msgspec.json.Decoder(str | _Reason)
_KNOWN = ("text-delta", "reasoning-delta", "tool-call", "finish", "error")


class _Draft(Struct):
    """A text or a thought under construction. One without a start event ends when anything else begins."""

    kind: _Kind
    position: int
    is_announced: bool
    pieces: list[str] = field(default_factory=list)
    metadata: list[Raw] = field(default_factory=list)

    def items(self, dialect: Dialect, *, is_whole: bool) -> list[Item]:
        """Its items; a seal is valid only when its part has ended."""
        text, token = "".join(self.pieces), merged(self.metadata) if is_whole else None
        if not text and token is None:
            return []
        if self.kind == "reasoning":
            return [ReasoningText(text, token, dialect.reasoning_format)]
        return [Text(text, Seal(token, dialect.reasoning_format) if token is not None else None)]


class StreamDecoder(PayloadStreamDecoder):
    def __init__(self, dialect: Dialect = COMMAND_CODE) -> None:
        super().__init__(JsonLines())
        self._dialect = dialect
        self._drafts: dict[tuple[_Kind, str], _Draft] = {}
        self._order = IndexOrder()
        self._positions = 0
        self._finish: Finish | None = None
        self._usage: Raw = NULL
        self._is_started = False
        self._is_done = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        event = decode_kind(_decoder, Raw(payload), _KNOWN)
        kind = event if isinstance(event, str) else event.type
        if isinstance(event, str) or (not kind and not is_given(event.error)):
            events.append(Other(Raw(payload)))
            return
        if kind in ("error", ""):
            events.append(Failed(event.error.copy() if is_given(event.error) else Raw(payload)))
            return
        if not self._is_started:
            self._is_started = True
            events.append(Started())
        match kind:
            case "reasoning-delta":
                self._grow("reasoning", event, events)
            case "text-delta":
                self._grow("text", event, events)
            case "reasoning-start" | "text-start":
                key = _key("reasoning" if kind == "reasoning-start" else "text", event)
                self._close_draft(key, events)
                self._open(key, event, events, is_announced=True)
            case "reasoning-end" | "text-end":
                key = _key("reasoning" if kind == "reasoning-end" else "text", event)
                if key in self._drafts:
                    self._learn(self._drafts[key], event)
                    self._close_draft(key, events)
            case "tool-call" if not event.provider_executed:
                self._call(event, events)
            case "finish-step":
                self._finish = _finish(event) or self._finish
                self._usage = event.usage.copy() if is_given(event.usage) else self._usage
            case "finish":
                self._finish = _finish(event) or self._finish
                self._usage = event.total_usage.copy() if is_given(event.total_usage) else self._usage
                self._end(events)
            case _:
                events.append(Other(Raw(payload)))

    def _open(self, key: tuple[_Kind, str], event: _Event, events: list[Event], *, is_announced: bool) -> _Draft:
        self._close_unannounced(events)
        draft = self._drafts[key] = _Draft(key[0], self._next_position(), is_announced)
        self._learn(draft, event)
        return draft

    def _next_position(self) -> int:
        if self._positions >= MAX_PARTS:
            raise LimitExceeded(f"more than {MAX_PARTS} parts in one answer")
        self._positions += 1
        return self._positions - 1

    def _learn(self, draft: _Draft, event: _Event) -> None:
        if is_given(event.provider_metadata):
            draft.metadata.append(event.provider_metadata.copy())

    def _grow(self, kind: _Kind, event: _Event, events: list[Event]) -> None:
        key = _key(kind, event)
        draft = self._drafts.get(key)
        if draft is None:
            draft = self._open(key, event, events, is_announced=False)
        else:
            self._learn(draft, event)
        text = event.text if event.text is not None else event.delta
        if text:
            draft.pieces.append(text)
            events.append((TextDelta if kind == "text" else ReasoningDelta)(0, draft.position, text))

    def _call(self, event: _Event, events: list[Event]) -> None:
        self._close_unannounced(events)
        arguments = arguments_text(event.input if is_given(event.input) else event.args)
        token = merged([event.provider_metadata])
        seal = Seal(token, self._dialect.reasoning_format) if token is not None else None
        call = ToolCall(event.tool_name or "", arguments, event.tool_call_id, seal=seal)
        position = self._next_position()
        events.append(CallDelta(0, position, arguments, call.id, call.name))
        self._order.done(position, [ItemDone(0, position, call)], events)

    def _close_unannounced(self, events: list[Event]) -> None:
        for key in [key for key, draft in self._drafts.items() if not draft.is_announced]:
            self._close_draft(key, events)

    def _close_draft(self, key: tuple[_Kind, str], events: list[Event], *, is_whole: bool = True) -> None:
        draft = self._drafts.pop(key, None)
        if draft is not None:
            items = draft.items(self._dialect, is_whole=is_whole)
            self._order.done(draft.position, [ItemDone(0, draft.position, item) for item in items], events)

    def _end(self, events: list[Event], *, is_whole: bool = True) -> None:
        if self._is_done:
            return
        self._is_done = True
        for key in list(self._drafts):
            self._close_draft(key, events, is_whole=is_whole)
        self._order.flush(events)
        if is_whole and is_given(self._usage):
            events.append(UsageReported(USAGE.decode(self._usage)))
        events.append(TurnDone(0, self._finish or Finish("other", "unknown") if is_whole else None))

    def _close(self, events: list[Event]) -> None:
        if self._is_started:
            self._end(events, is_whole=False)


def _key(kind: _Kind, event: _Event) -> tuple[_Kind, str]:
    return kind, event.id or ""


def _finish(event: _Event) -> Finish | None:
    """The finish reason: a word, or in version 6 of the SDK an object with one."""
    reason = read_or_none(_reason_decoder, event.finish_reason) if is_given(event.finish_reason) else None
    return FINISH.decode(reason.unified if isinstance(reason, _Reason) else reason)


class StreamEncoder(EventEncoder):
    """Encodes events to lines. A blank line keeps a connection alive."""

    keep_alive = b"\n"

    def __init__(self, dialect: Dialect = COMMAND_CODE) -> None:
        super().__init__(dialect)
        self._cursor = BlockCursor()
        self._kind: _Kind = "text"

    def _start(self, event: Started) -> bytes:
        return _line("start") + _line("start-step")

    def _text(self, event: TextDelta) -> bytes:
        return self._enter(event.choice, event.position, "text") + self._grow(event.text)

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._enter(event.choice, event.position, "reasoning") + self._grow(event.text)

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        encode_part(item, self._dialect)  # rejects another provider's seal, and items without a place
        if isinstance(item, ToolCall):
            return self._leave() + self._whole_call(event.choice, event.position, item)
        if not isinstance(item, (Text, ReasoningText)):
            raise EncodeError(f"an AI SDK stream can't hold a {type(item).__name__}")
        kind: _Kind = "text" if isinstance(item, Text) else "reasoning"
        output = b""
        if event.position not in self._cursor.entered:
            output = self._enter(event.choice, event.position, kind) + (self._grow(item.text) if item.text else b"")
        elif self._cursor.open != event.position:
            return b""
        token = item.signature if isinstance(item, ReasoningText) else item.seal.data if item.seal else None
        return output + self._leave(token)

    def _whole_call(self, choice: int, position: int, call: ToolCall) -> bytes:
        self._cursor.enter(choice, position)
        self._cursor.leave()
        known = [("toolCallId", encode(call.id or "")), ("toolName", encode(call.name))]
        known.append(("input", arguments_object(call.arguments)))
        return _line("tool-call", *known, *_metadata(call.seal.data if call.seal else None))

    def _turn_done(self, event: TurnDone) -> bytes:
        return self._leave()

    def _fail(self, error: Raw) -> bytes:
        return self._leave() + _line("error", ("error", error))

    def finish(self) -> bytes:
        """The last lines; nothing if the turn was cut off."""
        if self._finish is None:
            return b""
        reason = ("finishReason", FINISH.encode(self._finish))
        usage = _encode_usage(self._usage or Usage())
        return _line("finish-step", reason, ("usage", usage)) + _line("finish", reason, ("totalUsage", usage))

    def _enter(self, choice: int, position: int, kind: _Kind) -> bytes:
        if self._cursor.open == position:
            return b""
        left = self._leave()
        self._cursor.enter(choice, position)
        self._kind = kind
        return left + _line(f"{kind}-start", ("id", encode(str(self._cursor.index))))

    def _grow(self, text: str) -> bytes:
        return _line(f"{self._kind}-delta", ("id", encode(str(self._cursor.index))), ("text", encode(text)))

    def _leave(self, token: str | None = None) -> bytes:
        index = self._cursor.leave()
        if index is None:
            return b""
        return _line(f"{self._kind}-end", ("id", encode(str(index))), *_metadata(token))


def _metadata(token: str | None) -> list[tuple[str, bytes]]:
    return [] if token is None else [("providerMetadata", metadata_of(token))]


def _line(kind: str, *members: tuple[str, bytes | Raw]) -> bytes:
    return one_line(object_of([("type", encode(kind)), *members])) + b"\n"


def _encode_usage(usage: Usage) -> bytes:
    cached = {"cacheReadTokens": usage.cached, "cacheWriteTokens": usage.cache_written}
    return encode(
        {
            "inputTokens": usage.input,
            "inputTokenDetails": cached,
            "outputTokens": usage.output,
            "outputTokenDetails": {"reasoningTokens": usage.reasoning},
            "totalTokens": usage.input + usage.output,
        }
    )


# --- positions of visible text: in a stream, the only kind of answer --------------------------------------------------


def _event(value: Json) -> Reading:
    key = (str(value.get("id", "")),)
    match value.get("type"):
        case "text-delta":
            member = "text" if isinstance(value.get("text"), str) else "delta"
            text = value.get(member)
            return Reading((TextSpot(key, (member,), text),)) if isinstance(text, str) else NOTHING
        case "text-start" | "text-end":
            return Reading((), (key,))
        case "finish" | "error":
            return Reading((), (EVERY_TEXT,))
    return NOTHING


def _body(value: Json) -> Iterator[TextSpot]:
    return (spot._replace(is_whole=True) for spot in _event(value).spots)


TEXTS = Texts(_body, _event, JsonLines)
