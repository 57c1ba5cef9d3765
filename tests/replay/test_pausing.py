"""How a request switches thinking off: by the model's row, and by translation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.providers.thinking import settle
from thoughtline.replay.detection import resolve
from thoughtline.replay.thinking import paused
from thoughtline.values.destination import Destination
from thoughtline.values.options import Thinking
from thoughtline.values.turns import FormatName, Transcript

CHAT: FormatName = "openai_chat"
MESSAGES: FormatName = "anthropic_messages"
RESPONSES: FormatName = "openai_responses"
DISABLED = {"thinking": {"type": "disabled"}}

TARGETS: list[tuple[str, str, FormatName, dict[str, Any]]] = [
    ("deepseek", "deepseek-v4-pro", CHAT, DISABLED),
    ("deepseek", "deepseek-v4-pro", MESSAGES, DISABLED),
    ("deepseek", "deepseek-v4-pro", RESPONSES, {"reasoning": {"effort": "none"}}),
    ("kimi", "kimi-k2.6", CHAT, DISABLED),
    ("kimi", "kimi-k3", CHAT, {}),
    ("mimo", "mimo-v2.5-pro", CHAT, DISABLED),
    ("glm", "glm-5", CHAT, DISABLED),
    ("minimax", "MiniMax-M2", CHAT, {}),
    ("qwen", "qwen3.7-max", CHAT, {"enable_thinking": False}),
    ("anthropic", "claude-sonnet-4-5", MESSAGES, DISABLED),
    ("anthropic", "claude-opus-5-5", MESSAGES, {}),
    ("openai", "gpt-5.1", RESPONSES, {"reasoning": {"effort": "none"}}),
    ("openai", "gpt-5", RESPONSES, {}),
    ("gemini", "gemini-2.5-flash", "gemini_generate", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
    ("gemini", "gemini-3-pro-preview", "gemini_generate", {}),
    ("openrouter", "deepseek/deepseek-v4-pro", CHAT, {"reasoning": {"enabled": False}}),
    ("groq", "qwen/qwen3-32b", CHAT, {"reasoning_effort": "none"}),
    ("groq", "openai/gpt-oss-120b", CHAT, {}),
    ("together", "any/model", CHAT, {"reasoning_effort": "none"}),
    ("mistral", "mistral-small-latest", CHAT, {"reasoning_effort": "none"}),
    ("mistral", "magistral-medium-latest", CHAT, {}),
    ("ollama", "qwen3:14b", "ollama_chat", {"think": False}),
]


def switched(provider: str, model: str, format: FormatName, **given: object) -> dict[str, Any]:
    transcript = Transcript(format, (), json.dumps({"model": model, **given}).encode())
    members = paused(transcript, resolve(Destination(provider, "", model, format)), model)
    return {name: json.loads(value or b"null") for name, value in members}


@pytest.mark.parametrize(("provider", "model", "format", "expected"), TARGETS)
def test_the_switch_of_each_model(provider: str, model: str, format: FormatName, expected: dict[str, Any]) -> None:
    """Each has its own; a model that always thinks has none."""
    assert switched(provider, model, format) == expected


@pytest.mark.parametrize(("provider", "model", "format", "expected"), TARGETS)
def test_translation_says_the_same(provider: str, model: str, format: FormatName, expected: dict[str, Any]) -> None:
    """There is one way to switch thinking off. It may differ if nothing has to be sent, or nothing can be."""
    settled = settle(Thinking("off"), resolve(Destination(provider, "", model, format)), model, None)
    if expected and settled.members:
        nested: dict[str, Any] = {}
        for path, value in settled.members:
            inner = nested
            for step in path[:-1]:
                inner = inner.setdefault(step, {})
            inner[path[-1]] = value
        assert nested == expected
    assert bool(settled.problems) is (expected == {})


def test_members_besides_the_switch_stay() -> None:
    """Other settings of the same member stay; the amount of thinking is removed."""
    reasoning = {"effort": "high", "summary": "auto"}
    assert switched("openai", "gpt-5.1", RESPONSES, reasoning=reasoning) == {
        "reasoning": {"effort": "none", "summary": "auto"}
    }
    config = {"temperature": 1, "thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True}}
    assert switched("gemini", "gemini-2.5-flash", "gemini_generate", generationConfig=config) == {
        "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingBudget": 0}}
    }
    snake = {"temperature": 1, "thinking_config": {"thinking_budget": 5}}
    assert switched("gemini", "gemini-2.5-flash", "gemini_generate", generation_config=snake) == {
        "generation_config": {"temperature": 1, "thinkingConfig": {"thinkingBudget": 0}}
    }
    asked = {"type": "enabled", "budget_tokens": 2_048}
    assert switched("anthropic", "claude-sonnet-4-5", MESSAGES, thinking=asked) == DISABLED


def test_converse_is_no_longer_asked() -> None:
    """Bedrock has no switch: the request for thinking among the model's own fields is removed."""
    fields = {"thinking": {"type": "enabled", "budget_tokens": 2_048}, "top_k": 3}
    model = "anthropic.claude-sonnet-4-5-v1:0"
    found = switched("bedrock", model, "bedrock_converse", additionalModelRequestFields=fields)
    assert found == {"additionalModelRequestFields": {"top_k": 3}}
