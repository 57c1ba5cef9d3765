"""Recordings through the engine: made-up ones in detail, and every real one without a fault."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import recordings
from tests.recordings import Recording
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.recording.form import RecordingFile
from thoughtline.recording.replaying import ReplayedExchange, ReplayTarget, replayed
from thoughtline.settings import Settings

SETTINGS = Settings(providers=PROVIDERS)
TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
USER: dict[str, Any] = {"role": "user", "content": "List the files."}
CALL: dict[str, Any] = {"id": "call_Ab12Cd34Ef56", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
ANSWER: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "reasoning_content": "First, I look.",
    "tool_calls": [CALL],
}
LATER: list[dict[str, Any]] = [{name: value for name, value in ANSWER.items() if name != "reasoning_content"}]
LATER += [{"role": "tool", "tool_call_id": CALL["id"], "content": "a b c"}]
REFUSAL = {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}


def exchange(messages: list[Any], **members: Any) -> dict[str, Any]:
    return {
        "method": "POST",
        "path": "/v1/chat/completions",
        "family": "openai-chat",
        "provider": "deepseek",
        "request": {"model": "deepseek-v4-pro", "tools": TOOLS, "messages": messages},
        "status": 200,
        "content_type": "application/json",
        **members,
    }


FIRST = exchange([USER], response={"choices": [{"message": ANSWER, "finish_reason": "tool_calls"}]})


def replay(*exchanges: dict[str, Any], **target: str) -> list[ReplayedExchange]:
    file = RecordingFile({"exchanges": list(exchanges)})
    return asyncio.run(replayed(file, SETTINGS, ReplayTarget(**target)))


def test_what_would_be_sent() -> None:
    """The first request goes up as it came, its answer is captured; the second lacks its reasoning and gets it back."""
    first, second = replay(FIRST, exchange([USER, *LATER], status=400, response=REFUSAL))
    assert (first.result, first.captured, first.sent) == ("untouched", 1, None)
    assert (second.result, second.counts, second.captured) == ("changed", {"restored": 1}, 0)
    assert second.sent["messages"][1]["reasoning_content"] == "First, I look."
    assert [(turn.place, turn.treatment, turn.why) for turn in second.turns] == [("/messages/1", "restored", "lineage")]
    assert second.refusal.startswith("a turn lacks the reasoning that it must carry")
    assert not second.healed


def test_streams_are_captured() -> None:
    delta = '{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"So.","content":"Yes."}}]}'
    end = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    stream = f"data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n"
    [first] = replay(exchange([USER], stream=stream, content_type="text/event-stream"))
    assert first.captured == 1


def test_a_turn_belongs_to_whom_its_key_is() -> None:
    """Another caller does not get it."""
    _, second = replay({**FIRST, "credential": "KEY_REDACTED_1"}, exchange([USER, *LATER], credential="KEY_REDACTED_2"))
    assert "restored" not in second.counts


def test_another_provider_or_model() -> None:
    """As if it had been asked."""
    [first] = replay(FIRST, provider="moonshot", model="kimi-k2.6")
    assert (first.provider, first.model) == ("kimi", "kimi-k2.6")


def test_a_format_that_the_provider_does_not_speak() -> None:
    """A replay does not translate, and says that a gateway would."""
    messages = {"path": "/v1/messages", "family": "anthropic", "provider": "mistral"}
    assert replay({**FIRST, **messages})[0].remark == (
        "mistral is not known to speak anthropic_messages: a gateway would translate"
    )
    assert replay(FIRST)[0].remark == ""


@pytest.mark.parametrize(
    ("members", "result", "why"),
    [
        ({"request": None}, "skipped", "its request was not recorded"),
        ({"path": "/x", "family": "xai-grpc", "provider": "xai"}, "skipped", "this wire is not known here"),
        ({"path": "/v1/responses/compact"}, "skipped", "it asks for no answer, but to compact"),
        ({"request": {"messages": 1}}, "unread", ""),
    ],
)
def test_what_is_not_replayed(members: dict[str, Any], result: str, why: str) -> None:
    """It is said why, and the others go on."""
    first, second = replay({**FIRST, **members}, FIRST)
    assert first.result == result
    assert first.why.startswith(why)
    assert first.why
    assert second.result == "untouched"


@recordings.needs_recordings
@pytest.mark.parametrize("recording", recordings.ALL, ids=recordings.name_of)
def test_every_real_recording_replays(recording: Recording) -> None:
    """Each request of a wire that is known is read."""
    file = RecordingFile(recording.file)
    for one in asyncio.run(replayed(file, SETTINGS, ReplayTarget())):
        assert one.result != "unread"
        assert (one.result == "skipped") == bool(one.why)
