"""Reading chat streams: chunks with `choices[].delta`, and Cohere's named events.

A choice's items end when its `finish_reason` comes (or the stream does), in the order a whole message would have them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats import think_tags
from thoughtline.formats.framing import MAX_EVENT_BYTES, ServerSentEvents
from thoughtline.formats.json_text import NULL, is_given
from thoughtline.formats.openai_chat.bodies import COHERE_USAGE, FINISH, USAGE
from thoughtline.formats.openai_chat.draft import Delta, FunctionDelta, MessageDraft, ToolCallDelta
from thoughtline.formats.openai_chat.notes import OWN_CITATIONS
from thoughtline.formats.streaming import PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, Json, Reading, Steps, Texts, TextSpot, contents, inner, objects
from thoughtline.providers import REASONING_CONTENT, Dialect
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.events import Event, Failed, Other, Started, UsageReported

MAX_CHOICES = 128
"""OpenAI allows `n` up to 128; an index beyond that is no choice."""


class _Choice(Struct, gc=False):
    delta: Delta | None = None
    index: int = 0
    finish_reason: str | None = None


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    id: str | None = None
    model: str | None = None
    usage: Raw = NULL
    error: Raw = NULL
    type: str | None = None
    citations: Raw = NULL


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class StreamDecoder(PayloadStreamDecoder):
    """Bytes of a chat stream in, events out."""

    def __init__(self, dialect: Dialect = REASONING_CONTENT, limit: int = MAX_EVENT_BYTES) -> None:
        super().__init__(ServerSentEvents(limit))
        self._dialect = dialect
        self._drafts: dict[int, MessageDraft] = {}

    def _take(self, payload: bytes, events: list[Event]) -> None:
        chunk = _decode_chunk(payload)
        for choice in chunk.choices or self._take_rare(chunk, payload, events):
            draft = self._drafts.get(choice.index)
            if draft is None:
                draft = self._open(choice.index, chunk, events)
            if choice.delta is not None and not draft.is_done:
                draft.add(choice.delta, events)
            if chunk.citations is not NULL:
                draft.addresses = chunk.citations  # xAI and Perplexity repeat them beside every chunk
            if choice.finish_reason and not draft.is_done:
                draft.end(FINISH.decode(choice.finish_reason), events)
        if chunk.error is not NULL and chunk.choices and is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
        if chunk.usage is not NULL and is_given(chunk.usage):
            events.append(UsageReported(USAGE.decode(chunk.usage)))

    def _take_rare(self, chunk: _Chunk, payload: bytes, events: list[Event]) -> tuple[()]:
        """A payload without choices: an error, usage alone, an event of Cohere's, or something we don't know."""
        if is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
        elif is_cohere_event(chunk.type):
            take_cohere_event(payload, self._drafts.get(0) or self._open(0, chunk, events), events)
        elif not is_given(chunk.usage):
            events.append(Other(Raw(payload)))
        return ()

    def _open(self, index: int, chunk: _Chunk, events: list[Event]) -> MessageDraft:
        if not 0 <= index < MAX_CHOICES:
            raise LimitExceeded(f"choice index {index} is not between 0 and {MAX_CHOICES - 1}", "/choices")
        if not self._drafts:
            events.append(Started(chunk.id, chunk.model))
        splitter = think_tags.Splitter() if self._dialect.carrier == "think_tags" else None
        draft = self._drafts[index] = MessageDraft(index, self._dialect, splitter)
        return draft

    def _close(self, events: list[Event]) -> None:
        for draft in self._drafts.values():
            if not draft.is_done:
                draft.end(None, events)


# --- where visible text stands ----------------------------------------------------------------------------------------


def _event(value: Json) -> Reading:
    spots: list[TextSpot] = []
    ended: list[Steps] = []
    for at, choice in objects(value.get("choices")):
        key = (choice.get("index", at),)
        spots += contents(inner(choice, "delta").get("content"), key, ("choices", at, "delta", "content"))
        ended += [key] if choice.get("finish_reason") is not None else []
    return Reading(tuple(spots), (*ended, EVERY) if value.get("error") else tuple(ended))


def _body(value: Json) -> Iterator[TextSpot]:
    for at, choice in objects(value.get("choices")):
        content = inner(choice, "message").get("content")
        yield from contents(content, (at,), ("choices", at, "message", "content"), is_whole=True)


TEXTS = Texts(_body, _event, ServerSentEvents, member="reasoning_content")


# --- Cohere's v2 stream: named events instead of chunks, the same message underneath ----------------------------------


class _Content(Struct, gc=False):
    text: str | None = None
    thinking: str | None = None


class _Call(Struct, gc=False):
    id: str | None = None
    function: FunctionDelta | None = None


class _Message(Struct, gc=False):
    content: _Content | list[Raw] | None = None
    tool_calls: _Call | list[Raw] | None = None


class _Delta(Struct, gc=False):
    message: _Message | None = None
    finish_reason: str | None = None
    usage: Raw = NULL


class _Event(Struct, gc=False):
    type: str
    index: int = 0
    delta: _Delta | None = None


_event_decoder = msgspec.json.Decoder(_Event)

_NAMES = frozenset(
    {
        *("message-start", "message-end", "content-start", "content-delta", "content-end", "tool-plan-delta"),
        *("tool-call-start", "tool-call-delta", "tool-call-end", "citation-start", "citation-end"),
    }
)


def is_cohere_event(name: str | None) -> bool:
    return name in _NAMES


def take_cohere_event(payload: bytes, draft: MessageDraft, events: list[Event]) -> None:
    """Read one event into the draft."""
    event = _event_decoder.decode(payload)
    delta = event.delta or _Delta()
    message = delta.message or _Message()
    if isinstance(message.content, _Content):
        draft.add_thinking(message.content.thinking or "", events)
        draft.add_content(message.content.text or "", events)
    if isinstance(message.tool_calls, _Call):
        call = message.tool_calls
        draft.add_call(ToolCallDelta(event.index, call.id, call.function), events)
    if event.type == "citation-start":
        draft.notes.append(OWN_CITATIONS)
    if event.type == "message-end" and not draft.is_done:
        draft.end(FINISH.decode(delta.finish_reason or "other"), events)
        if is_given(delta.usage):
            events.append(UsageReported(COHERE_USAGE.decode(delta.usage)))
