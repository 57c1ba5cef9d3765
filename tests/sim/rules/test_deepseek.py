"""DeepSeek's settings: words for the effort, the effort without thinking, the names of its models."""

from __future__ import annotations

import pytest

from tests.sim.faces import Dialogue
from tests.sim.rules.test_switches import CHAT, MESSAGES, OFF, RESPONSES, Json, asked
from tests.sim.violations import called, case_of


def test_effort_words() -> None:
    """Another word is a 422 that names the seven, and where it stands."""
    status, body = asked("deepseek", "deepseek-v4-pro", reasoning_effort="ultra")
    message = body["error"]["message"]
    assert status == 422
    assert message.startswith(
        "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `ultra`, expected "
        "one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` at line 1 column "
    )
    assert asked("deepseek", "deepseek-v4-pro", reasoning_effort="xhigh")[0] == 200


@pytest.mark.parametrize(
    ("path", "effort"), [(CHAT, {"reasoning_effort": "high"}), (MESSAGES, {"output_config": {"effort": "high"}})]
)
def test_an_effort_without_thinking(path: str, effort: Json) -> None:
    """The pair that Claude Code sends for its sub-agents."""
    status, body = asked("deepseek", "deepseek-v4-pro", path, **OFF, **effort)
    sentence = "thinking options type cannot be disabled when reasoning_effort is set"
    assert (status, body["error"]["message"]) == (400, sentence)
    assert asked("deepseek", "deepseek-v4-pro", path, **OFF)[0] == 200


@pytest.mark.parametrize(
    ("path", "model", "is_taken"),
    [
        (CHAT, "deepseek-v5", False),
        (CHAT, "", False),
        (RESPONSES, "gpt-5", False),
        (CHAT, "deepseek-v4-flash", True),
        (CHAT, "deepseek-flash", True),
        (MESSAGES, "claude-sonnet-4-5", True),
    ],
)
def test_names(path: str, model: str, is_taken: bool) -> None:
    """Chat and Responses know their models; the Anthropic API takes any name for one of its own."""
    status, body = asked("deepseek", model, path)
    assert (status == 200) is is_taken
    if not is_taken:
        assert body["error"]["message"] == (
            f"The supported API model names are deepseek-v4-pro or deepseek-v4-flash, but you passed {model}."
        )


def test_a_reseller_has_names_of_its_own() -> None:
    """The rules of DeepSeek behind another host."""
    assert asked("deepseek", "novel-9", profile="reseller")[0] == 200


def test_ciphertext_is_no_reasoning_here() -> None:
    """Responses: only text in the clear counts, and only the effort switches thinking off."""
    dialogue: Dialogue = called(case_of("deepseek", "openai_responses"), "ciphertext")
    dialogue.history[1] = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABmine"}
    sentence = "The `reasoning_text` in the thinking mode must be passed back to the API."
    assert dialogue.post().json()["error"]["message"] == sentence
    dialogue.body.update(OFF)
    assert dialogue.post().json()["error"]["message"] == sentence
    dialogue.body["reasoning"] = {"effort": "none"}
    assert dialogue.post().status_code == 200
