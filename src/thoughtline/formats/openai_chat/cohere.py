"""Cohere's v2 stream: named events instead of chunks, the same message underneath."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, is_given
from thoughtline.formats.openai_chat.bodies import COHERE_USAGE, FINISH
from thoughtline.formats.openai_chat.draft import FunctionDelta, MessageDraft, ToolCallDelta
from thoughtline.formats.openai_chat.notes import OWN_CITATIONS
from thoughtline.values.events import Event, TurnDone, UsageReported


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
        draft.end(events)
        events.append(TurnDone(draft.choice, FINISH.decode(delta.finish_reason or "other")))
        if is_given(delta.usage):
            events.append(UsageReported(COHERE_USAGE.decode(delta.usage)))
