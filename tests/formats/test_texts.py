"""Positions of visible text: in whole answers of each format, and in the events of a stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import span_at
from thoughtline.formats.texts import EVERY, NOTHING, Reading, Texts
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
PART: Json = {"type": "output_text", "text": "words"}
MESSAGE: Json = {"type": "message", "content": [PART]}

BODIES: dict[FormatName, Json] = {
    "openai_chat": {"choices": [{"message": {"reasoning_content": "no", "content": "words"}}]},
    "openai_responses": {"output": [{"type": "reasoning", "summary": []}, MESSAGE]},
    "anthropic_messages": {"content": [{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "words"}]},
    "gemini_generate": {
        "candidates": [
            {
                "content": {
                    "parts": [{"text": "no", "thought": True}, {"text": "words"}, {"text": "", "thoughtSignature": "s"}]
                }
            }
        ]
    },
    "ollama_chat": {"message": {"thinking": "no", "content": "words"}},
    "bedrock_converse": {"output": {"message": {"content": [{"reasoningContent": {}}, {"text": "words"}]}}},
}
BODIES["command_code_generate"] = {"type": "text-delta", "id": "0", "text": "words"}  # the one line of a stream
BODIES["bedrock_invoke"] = BODIES["anthropic_messages"]
BODIES["gemini_code_assist"] = {"response": BODIES["gemini_generate"]}
BODIES["gemini_interactions"] = {
    "steps": [
        {"type": "thought", "summary": [{"type": "text", "text": "no"}]},
        {"type": "model_output", "content": [{"type": "image"}, {"type": "text", "text": "words"}]},
    ]
}
EVENTS: dict[str, tuple[FormatName, Json]] = {
    "chat": ("openai_chat", {"choices": [{"index": 1, "delta": {"reasoning_content": "no", "content": "words"}}]}),
    "chat, parts": ("openai_chat", {"choices": [{"delta": {"content": [{"type": "text", "text": "words"}]}}]}),
    "responses, delta": ("openai_responses", {"type": "response.output_text.delta", "delta": "words"}),
    "responses, text": ("openai_responses", {"type": "response.output_text.done", "text": "words"}),
    "responses, part": ("openai_responses", {"type": "response.content_part.done", "part": PART}),
    "responses, item": ("openai_responses", {"type": "response.output_item.done", "item": MESSAGE}),
    "responses, all": ("openai_responses", {"type": "response.completed", "response": {"output": [MESSAGE]}}),
    "messages": (
        "anthropic_messages",
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "words"}},
    ),
    "gemini": ("gemini_generate", {"candidates": [{"content": {"parts": [{"text": "words"}]}}]}),
    "code assist": ("gemini_code_assist", {"response": {"candidates": [{"content": {"parts": [{"text": "words"}]}}]}}),
    "interactions": (
        "gemini_interactions",
        {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "words"}},
    ),
    "ollama": ("ollama_chat", {"message": {"content": "words"}, "done": False}),
    "command code": ("command_code_generate", {"type": "text-delta", "id": "0", "text": "words"}),
    "command code, older": ("command_code_generate", {"type": "text-delta", "delta": "words"}),
    "ollama, generate": ("ollama_chat", {"response": "words", "done": False}),
}
ENDS: dict[str, tuple[FormatName, Json]] = {
    "responses": ("openai_responses", {"type": "error"}),
    "messages": ("anthropic_messages", {"type": "message_stop"}),
    "gemini": ("gemini_generate", {"error": {"code": 1}}),
    "code assist": ("gemini_code_assist", {"error": {"code": 1}}),
    "interactions": ("gemini_interactions", {"event_type": "interaction.completed"}),
    "interactions, error": ("gemini_interactions", {"event_type": "error"}),
    "ollama": ("ollama_chat", {"done": True}),
    "command code": ("command_code_generate", {"type": "finish"}),
    "chat": ("openai_chat", {"error": {"message": "no"}}),
}


def _texts(format: FormatName) -> Texts:
    texts = FORMATS[format].texts
    assert texts is not None
    return texts


def _check(reading: Reading, payload: bytes) -> None:
    [spot] = reading.spots
    start, end = span_at(payload, spot.path) or (0, 0)
    assert (spot.text, payload[start:end]) == ("words", b'"words"')
    assert span_at(payload, spot.owner) is not None


@pytest.mark.parametrize("format", FORMATS)
def test_the_visible_text_of_a_whole_answer(format: FormatName) -> None:
    """Found with its position; reasoning and signed text are not visible text."""
    body = msgspec.json.encode(BODIES[format])
    reading = _texts(format).read_whole(body)
    _check(reading, body)
    assert reading.spots[0].is_whole


@pytest.mark.parametrize("name", EVENTS)
def test_the_visible_text_of_an_event(name: str) -> None:
    """Wherever a stream says it, and says it again."""
    wire, event = EVENTS[name]
    payload = msgspec.json.encode(event)
    _check(_texts(wire).read_event(payload), payload)


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_every_text(name: str) -> None:
    """An error, or the end of the answer."""
    wire, event = ENDS[name]
    assert EVERY in _texts(wire).read_event(msgspec.json.encode(event)).ended
    assert _texts(wire).read_event(b"[DONE]").ended == (EVERY,)


def test_a_step_of_an_interaction_ends_its_text() -> None:
    """No other; and what a step thinks is no text."""
    texts = _texts("gemini_interactions")
    assert texts.read_event(b'{"event_type":"step.stop","index":1}') == Reading((), ((1,),))
    thought = b'{"event_type":"step.delta","index":1,"delta":{"type":"thought_summary","text":"no"}}'
    assert texts.read_event(thought) == texts.read_event(b'{"event_type":"step.start"}') == NOTHING


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b'"text"', b"\xff", b'{"choices":7,"content":7,"candidates":[3]}']
)
@pytest.mark.parametrize("format", BODIES)
def test_what_can_not_be_read_has_no_text(format: FormatName, payload: bytes) -> None:
    """It passes as it is."""
    assert _texts(format).read_whole(payload) == NOTHING
    assert _texts(format).read_event(payload) == NOTHING
