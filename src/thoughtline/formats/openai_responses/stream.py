"""Decodes Responses streams: elements that are added, grow and are done, then the response as a whole.

The element in `output_item.done` counts: the copy in `output_item.added` may lack most of its ciphertext.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import MAX_EVENT_BYTES, ServerSentEvents
from thoughtline.formats.json_text import NULL, decode, decode_kind, is_given
from thoughtline.formats.openai_responses.bodies import USAGE, decode_finish, response_decoder
from thoughtline.formats.openai_responses.elements import Element, decode_answer_element, element_decoder
from thoughtline.formats.streaming import IndexOrder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, NOTHING, Json, Reading, Steps, Texts, TextSpot, contents, inner, objects
from thoughtline.providers import OPENAI_RESPONSES, Dialect
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
from thoughtline.values.items import Item, ReasoningSummary, ReasoningText, Text, ToolCall

MAX_ELEMENTS = 10_000
"""No answer has this many elements; a stream that opens more is rejected."""


class _Event(Struct, gc=False):
    type: str = ""
    output_index: int = 0
    delta: str | None = None
    summary_index: int = 0
    content_index: int = 0
    item: Raw = NULL
    response: Raw = NULL
    error: Raw = NULL


_decode_event = msgspec.json.Decoder(_Event).decode

_GROWS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "thought",
    "response.function_call_arguments.delta": "call",
    "response.custom_tool_call_input.delta": "call",
}
_KINDS = {ReasoningSummary: "summary", ReasoningText: "thought", Text: "text", ToolCall: "call"}
_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_SAYS_NOTHING_NEW = frozenset(
    {
        "response.in_progress",
        "response.queued",
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.done",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.done",
        "response.reasoning_text.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.done",
    }
)


class _Named(Struct, gc=False):
    type: str = ""


_name_decoder = msgspec.json.Decoder(_Named)


def _is_ours(payload: bytes) -> bool:
    """Whether we decode this event at all: others may have objects in the members that we expect to be text."""
    name = _name_decoder.decode(payload).type
    return name in _GROWS or name in _ENDS or name.startswith(("response.output_item.", "response.created"))


class _Draft(Struct):
    """An element under construction: its announced part, and the content of its deltas, by part."""

    added: Raw
    id: str | None = None
    parts: dict[tuple[str, int], list[str]] = {}


class StreamDecoder(PayloadStreamDecoder):
    """Decodes the bytes of a Responses stream to events."""

    def __init__(self, dialect: Dialect = OPENAI_RESPONSES, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(ServerSentEvents(limit))
        self._dialect = dialect
        self._drafts: dict[int, _Draft] = {}
        self._positions: dict[tuple[int, str, int], int] = {}
        self._done: set[int] = set()
        self._order = IndexOrder()
        self._items: list[Item] = []
        self._is_started = False
        self._is_ended = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        try:
            event = _decode_event(payload)
        except msgspec.DecodeError as error:
            if isinstance(error, msgspec.ValidationError) and not _is_ours(payload):
                events.append(Other(Raw(payload)))
                return
            raise
        grows = _GROWS.get(event.type)
        if grows is not None and event.delta is not None:
            self._grow(grows, event, event.delta, events)
        else:
            self._consume_frame(event, payload, events)

    def _grow(self, kind: str, event: _Event, delta: str, events: list[Event]) -> None:
        part = event.summary_index if kind == "summary" else event.content_index if kind == "thought" else 0
        position = self._positions.setdefault((event.output_index, kind, part), len(self._positions))
        draft = self._drafts.get(event.output_index) or self._open(event.output_index, NULL)
        draft.parts.setdefault((kind, part), []).append(delta)
        if kind == "text":
            events.append(TextDelta(0, position, delta, draft.id))
        elif kind == "call":
            is_custom = event.type == "response.custom_tool_call_input.delta"
            events.append(CallDelta(0, position, delta, is_custom=is_custom))
        else:
            events.append(ReasoningDelta(0, position, delta, kind == "summary", item_id=draft.id))

    def _open(self, index: int, added: Raw) -> _Draft:
        if len(self._drafts) >= MAX_ELEMENTS:
            raise LimitExceeded(f"more than {MAX_ELEMENTS} elements in one answer")
        draft = self._drafts[index] = _Draft(added)
        return draft

    def _consume_frame(self, event: _Event, payload: bytes, events: list[Event]) -> None:
        match event.type:
            case "response.created":
                self._start(event.response, events)
            case "response.output_item.added":
                self._add(event, events)
            case "response.output_item.done":
                self._element_done(event.output_index, event.item.copy(), events)
            case "error":
                events.append(Failed(Raw(payload)))
            case "" if is_given(event.error):
                events.append(Failed(event.error.copy()))
            case ended if ended in _ENDS:
                self._end(event.response, events)
            case known if known in _SAYS_NOTHING_NEW:
                pass
            case _:
                events.append(Other(Raw(payload)))

    def _start(self, response: Raw, events: list[Event]) -> None:
        if not self._is_started:
            self._is_started = True
            named = decode(response_decoder, response, "/response") if is_given(response) else None
            events.append(Started(named.id if named else None, named.model if named else None))

    def _add(self, event: _Event, events: list[Event]) -> None:
        self._start(event.response, events)
        draft = self._open(event.output_index, event.item.copy())
        element = decode_kind(element_decoder, event.item, _CALLS, "/item")
        draft.id = element.id if not isinstance(element, str) else None
        if not isinstance(element, str) and element.type in _CALLS:
            position = self._positions.setdefault((event.output_index, "call", 0), len(self._positions))
            is_custom = element.type == "custom_tool_call"
            events.append(
                CallDelta(
                    0,
                    position,
                    "",
                    id=element.call_id,
                    name=element.name,
                    is_custom=is_custom,
                    namespace=element.namespace,
                    item_id=draft.id,
                )
            )

    def _element_done(self, index: int, raw: Raw, events: list[Event]) -> None:
        if index in self._done:
            return
        self._done.add(index)
        try:
            items = decode_answer_element(raw, self._dialect, index)
        except DecodeError as error:
            raise error.within("/item") from None
        self._order.done(index, self._items_done(index, items), events)

    def _items_done(self, index: int, items: tuple[Item, ...]) -> list[ItemDone]:
        self._items += items
        seen: dict[str, int] = {}
        done = []
        for item in items:
            kind = _KINDS.get(type(item), "other")
            part = seen.get(kind, 0)
            seen[kind] = part + 1
            position = self._positions.setdefault((index, kind, part), len(self._positions))
            done.append(ItemDone(0, position, item))
        return done

    def _end(self, response: Raw, events: list[Event]) -> None:
        if self._is_ended or not is_given(response):
            return
        self._start(response, events)
        whole = decode(response_decoder, response, "/response")
        for index, raw in enumerate(whole.output or ()):
            self._element_done(index, raw.copy(), events)  # elements that no event of their own announced
        if self._order.waiting or self._drafts.keys() - self._done:
            self._end_the_open(events)
        if is_given(whole.usage):
            events.append(UsageReported(USAGE.decode(whole.usage)))
        if is_given(whole.error):
            events.append(Failed(whole.error.copy()))
        self._is_ended = True
        why = whole.incomplete_details.reason if whole.incomplete_details else None
        events.append(TurnDone(0, decode_finish(whole.status, why, self._items)))

    def _close(self, events: list[Event]) -> None:
        if self._is_ended or not self._is_started:
            return
        self._end_the_open(events)
        events.append(TurnDone(0, None))

    def _end_the_open(self, events: list[Event]) -> None:
        for index in sorted(self._drafts.keys() - self._done):
            items = _cut_short(self._drafts[index], self._dialect, index)
            self._order.done(index, self._items_done(index, items), events)
        self._order.flush(events)


def _cut_short(draft: _Draft, dialect: Dialect, index: int) -> tuple[Item, ...]:
    """What arrived of an element that was never done: its text, and no seal."""
    element: Element | str = ""
    if is_given(draft.added):
        element = decode_kind(element_decoder, draft.added, _CALLS)
    items: list[Item] = []
    for (kind, _), pieces in sorted(draft.parts.items()):
        text = "".join(pieces)
        if kind == "summary":
            items.append(ReasoningSummary(text, dialect.reasoning_format, None, index))
        elif kind == "thought":
            items.append(ReasoningText(text, None, dialect.reasoning_format, None, index))
        elif kind == "text":
            items.append(Text(text))
        elif not isinstance(element, str):
            is_custom = element.type == "custom_tool_call"
            call = ToolCall(element.name or "", text, element.call_id, None, is_custom, namespace=element.namespace)
            items.append(call)
    return tuple(items)


# --- positions of visible text ----------------------------------------------------------------------------------------
# In deltas, and again in every event that repeats them.


def _event(value: Json) -> Reading:
    key = (value.get("output_index", 0), value.get("content_index", 0))
    match value.get("type"):
        case "response.output_text.delta" if isinstance(value.get("delta"), str):
            return Reading((TextSpot(key, ("delta",), value["delta"]),))
        case "response.output_text.done" if isinstance(value.get("text"), str):
            return Reading((TextSpot((*key, "done"), ("text",), value["text"], is_whole=True),), (key,))
        case "response.content_part.done":
            part = inner(value, "part")
            is_text = part.get("type") == "output_text" and isinstance(part.get("text"), str)
            done = (TextSpot((*key, "part"), ("part", "text"), part["text"], is_whole=True),) if is_text else ()
            return Reading(done, (key,))
        case "response.output_item.done":
            return Reading(tuple(_element(inner(value, "item"), ("item",))), (EVERY,))
        case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
            return Reading(tuple(_output(inner(value, "response"), ("response",))), (EVERY,))
        case "error":
            return Reading((), (EVERY,))
        case _:
            return NOTHING


def _output(response: Json, path: Steps = ()) -> Iterator[TextSpot]:
    for at, element in objects(response.get("output")):
        yield from _element(element, (*path, "output", at))


def _element(element: Json, path: Steps) -> Iterator[TextSpot]:
    if element.get("type") == "message":
        yield from contents(element.get("content"), (*path, "final"), (*path, "content"), is_whole=True)


TEXTS = Texts(_output, _event, ServerSentEvents)
