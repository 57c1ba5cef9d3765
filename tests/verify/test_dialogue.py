"""The conversation that a verification holds, and what a client does to it."""

from __future__ import annotations

import json

import pytest

from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination
from thoughtline.values.items import ReasoningEncrypted, ReasoningText, Seal, Text, ToolCall
from thoughtline.values.options import Thinking
from thoughtline.values.turns import FormatName
from thoughtline.verify.dialogue import (
    AGAIN,
    QUESTION,
    RESULT,
    Ask,
    Step,
    altered,
    body_of,
    has_reasoning,
    text_of,
    with_reasoning,
    with_settings,
    without_reasoning,
)

CALL = ToolCall("get_weather", '{"city":"Paris"}', id="call_1", seal=Seal("abcdefgh"))
TURN = (ReasoningText("I should look it up in the tool, then answer."), CALL)
DEEPSEEK = Destination("deepseek", "", "deepseek-v4-pro", "openai_chat")


@pytest.mark.parametrize(
    ("provider", "model", "api"),
    [
        ("deepseek", "deepseek-v4-pro", "openai_chat"),
        ("anthropic", "claude-opus-5-5", "anthropic_messages"),
        ("gemini", "gemini-3-pro-preview", "gemini_generate"),
        ("openai", "gpt-6-astra", "openai_responses"),
        ("ollama", "qwen3:14b", "ollama_chat"),
    ],
)
def test_every_format_has_the_same_conversation(provider: str, model: str, api: FormatName) -> None:
    """The question, the call with what the model thought, the result, the answer, the next question; no more words."""
    target = Destination(provider, "", model, api)
    answer = (Text("It is sunny."),)
    steps = (Step((ReasoningText("Hm."), *TURN[1:]), without_reasoning), Step(answer))
    body = body_of(target, resolve(target), steps, Ask()).decode()
    assert all(json.dumps(words)[1:-1] in body for words in (QUESTION, RESULT, "It is sunny.", AGAIN))
    assert "abcdefgh" not in body
    assert "Hm." not in body


def test_what_a_client_does_to_a_turn() -> None:
    """It drops reasoning and seals, puts a text in their place, or alters them."""
    assert without_reasoning(TURN) == (ToolCall("get_weather", '{"city":"Paris"}', id="call_1"),)
    blank = with_reasoning(" ")(TURN)
    assert blank[0] == ReasoningText(" ")
    text, call = altered(TURN)
    assert isinstance(text, ReasoningText)
    assert isinstance(call, ToolCall)
    assert text.text.startswith(text_of(TURN))
    assert (call.seal, len(call.seal.data) if call.seal else 0) == (Seal("abcdAfgh"), 8)
    [sealed] = altered((ReasoningEncrypted("AAAA"),))
    assert sealed == ReasoningEncrypted("AABA")
    assert has_reasoning((CALL,))
    assert not has_reasoning(without_reasoning(TURN))
    assert text_of((ReasoningText("short"),)) == ""


def test_settings_are_written_at_their_paths() -> None:
    """Whatever stood there before."""
    body = with_settings(b'{"thinking": null, "a": 1}', ((("thinking", "type"), "enabled"), (("b",), 2)))
    assert json.loads(body) == {"thinking": {"type": "enabled"}, "a": 1, "b": 2}
    off = body_of(DEEPSEEK, resolve(DEEPSEEK), (), Ask(Thinking("off"), has_tools=False))
    assert json.loads(off)["thinking"] == {"type": "disabled"}
    assert "tools" not in json.loads(off)
