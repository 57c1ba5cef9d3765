"""Decodes chat streams: chunks and other payloads, such as Cohere's named events."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.json_text import NULL, is_given
from thoughtline.formats.openai_chat.bodies import COHERE_USAGE, FINISH
from thoughtline.formats.openai_chat.chunks import Chunk, ChunkDecoder, FunctionDelta, MessageDraft, ToolCallDelta
from thoughtline.formats.openai_chat.notes import OWN_CITATIONS
from thoughtline.formats.texts import EVERY, Json, Reading, Steps, Texts, TextSpot, contents, inner, objects
from thoughtline.values.events import Event, Failed, Other, UsageReported


class StreamDecoder(ChunkDecoder):
    """Decodes the bytes of a chat stream to events."""

    def _consume_rare(self, chunk: Chunk, payload: bytes, events: list[Event]) -> tuple[()]:
        """A payload without choices: an error, only usage, an event of Cohere, or an unknown one."""
        if is_given(chunk.error):
            events.append(Failed(chunk.error.copy()))
        elif is_cohere_event(chunk.type):
            consume_cohere_event(payload, self.drafts.get(0) or self.draft_for(0, chunk, events), events)
        elif not is_given(chunk.usage):
            events.append(Other(Raw(payload)))
        return ()


# --- positions of visible text ----------------------------------------------------------------------------------------


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


# --- Cohere's v2 stream: named events instead of chunks, with the same message inside ---------------------------------


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


def consume_cohere_event(payload: bytes, draft: MessageDraft, events: list[Event]) -> None:
    """Add one event to the draft."""
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
