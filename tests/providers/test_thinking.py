"""How much to think: words, tokens and switches of every kind, in every other's terms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.providers import CONTRACTS
from thoughtline.providers.thinking import BUDGETS, Settled, effort_of, knob_for, settle
from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination
from thoughtline.values.options import EFFORTS, Effort, Thinking
from thoughtline.values.turns import FormatName

HIGH = Thinking("on", "high")
OFF = Thinking("off", "none")
BUDGET = Thinking("on", None, 4_000)


def settled(provider: str, model: str, format: FormatName, thinking: Thinking, limit: int | None = None) -> Settled:
    return settle(thinking, resolve(Destination(provider, "https://h", model, format)), model, limit)


def members_of(found: Settled) -> dict[str, Any]:
    return {".".join(path): value for path, value in found.members}


CHAT: FormatName = "openai_chat"
CLAUDE: FormatName = "anthropic_messages"
ROWS: list[tuple[str, str, FormatName, Thinking, dict[str, Any]]] = [
    ("openai", "gpt-5.1", CHAT, HIGH, {"reasoning_effort": "high"}),
    ("openai", "gpt-5.1", "openai_responses", BUDGET, {"reasoning.effort": "medium"}),
    ("openai", "gpt-5.1", "openai_responses", OFF, {"reasoning.effort": "none"}),
    ("openai", "gpt-5", "openai_responses", OFF, {"reasoning.effort": "minimal"}),
    ("openai", "o4-mini", "openai_responses", Thinking("on", "xhigh"), {"reasoning.effort": "high"}),
    (
        "openai",
        "gpt-5.1",
        "openai_responses",
        Thinking("on", "low", None, True),
        {"reasoning.effort": "low", "reasoning.summary": "auto"},
    ),
    (
        "deepseek",
        "deepseek-v4-pro",
        CHAT,
        Thinking("on", "medium"),
        {"thinking.type": "enabled", "reasoning_effort": "medium"},
    ),
    ("deepseek", "deepseek-v4-pro", CHAT, OFF, {"thinking.type": "disabled"}),
    ("deepseek", "deepseek-v4-pro", CLAUDE, HIGH, {"thinking.type": "enabled", "output_config.effort": "high"}),
    ("kimi", "kimi-k2.6", CHAT, HIGH, {"thinking.type": "enabled", "thinking.keep": "all"}),
    ("kimi", "kimi-k2.6", CHAT, Thinking(), {"thinking.type": "enabled", "thinking.keep": "all"}),
    ("kimi", "kimi-k3", CHAT, HIGH, {"reasoning_effort": "high"}),
    ("glm", "glm-5", CHAT, Thinking(), {"thinking.type": "enabled", "thinking.clear_thinking": False}),
    (
        "qwen",
        "qwen3.7-max",
        CHAT,
        BUDGET,
        {"enable_thinking": True, "thinking_budget": 4_000, "preserve_thinking": True},
    ),
    ("qwen", "qwen3.7-max", CHAT, OFF, {"enable_thinking": False}),
    ("mimo", "mimo-v2.5-pro", CHAT, HIGH, {"thinking.type": "enabled"}),
    ("minimax", "MiniMax-M3", CHAT, OFF, {"thinking.type": "disabled"}),
    ("minimax", "MiniMax-M2", CHAT, HIGH, {}),
    ("openrouter", "anthropic/claude-sonnet-4.5", CHAT, BUDGET, {"reasoning.max_tokens": 4_000}),
    ("openrouter", "deepseek/deepseek-v4-pro", CHAT, HIGH, {"reasoning.effort": "high"}),
    ("mistral", "magistral-medium-latest", CHAT, HIGH, {"reasoning_effort": "high"}),
    ("mistral", "mistral-small-latest", CHAT, OFF, {"reasoning_effort": "none"}),
    ("anthropic", "claude-sonnet-4-5", CLAUDE, BUDGET, {"thinking.type": "enabled", "thinking.budget_tokens": 4_000}),
    (
        "anthropic",
        "claude-sonnet-4-5",
        CLAUDE,
        Thinking("on", "minimal"),
        {"thinking.type": "enabled", "thinking.budget_tokens": 1_024},
    ),
    ("anthropic", "claude-opus-4-8", CLAUDE, HIGH, {"thinking.type": "adaptive", "output_config.effort": "high"}),
    (
        "anthropic",
        "claude-opus-4-6",
        CLAUDE,
        Thinking("on", "xhigh"),
        {"thinking.type": "adaptive", "output_config.effort": "high"},
    ),
    ("anthropic", "claude-opus-5-5", CLAUDE, OFF, {"thinking.type": "adaptive", "output_config.effort": "low"}),
    (
        "gemini",
        "gemini-2.5-flash",
        "gemini_generate",
        BUDGET,
        {
            "generationConfig.thinkingConfig.includeThoughts": True,
            "generationConfig.thinkingConfig.thinkingBudget": 4_000,
        },
    ),
    ("gemini", "gemini-2.5-flash", "gemini_generate", OFF, {"generationConfig.thinkingConfig.thinkingBudget": 0}),
    (
        "gemini",
        "gemini-2.5-pro",
        "gemini_generate",
        OFF,
        {
            "generationConfig.thinkingConfig.includeThoughts": True,
            "generationConfig.thinkingConfig.thinkingBudget": 128,
        },
    ),
    (
        "gemini",
        "gemini-3-pro-preview",
        "gemini_generate",
        Thinking("on", "medium"),
        {
            "generationConfig.thinkingConfig.includeThoughts": True,
            "generationConfig.thinkingConfig.thinkingLevel": "low",
        },
    ),
    ("ollama", "qwen3:14b", "ollama_chat", HIGH, {"think": True}),
    ("ollama", "gpt-oss:20b", "ollama_chat", Thinking("on", "max"), {"think": "high"}),
    ("ollama", "llama3.2", "ollama_chat", HIGH, {}),
    (
        "bedrock",
        "us.anthropic.claude-sonnet-4-5",
        "bedrock_converse",
        BUDGET,
        {
            "additionalModelRequestFields.thinking.type": "enabled",
            "additionalModelRequestFields.thinking.budget_tokens": 4_000,
        },
    ),
    (
        "bedrock",
        "us.amazon.nova-2-lite",
        "bedrock_converse",
        HIGH,
        {
            "additionalModelRequestFields.reasoningConfig.type": "enabled",
            "additionalModelRequestFields.reasoningConfig.maxReasoningEffort": "high",
        },
    ),
]


@pytest.mark.parametrize(("provider", "model", "format", "thinking", "expected"), ROWS)
def test_the_table(provider: str, model: str, format: FormatName, thinking: Thinking, expected: dict[str, Any]) -> None:
    """What a client said, as each model's own knob says it."""
    assert members_of(settled(provider, model, format, thinking)) == expected


@pytest.mark.parametrize("provider", ["deepseek", "anthropic", "openai", "qwen", "mimo"])
def test_what_was_not_said_stays_unsaid(provider: str) -> None:
    """No switch is turned that the client did not turn."""
    model = {"anthropic": "claude-opus-4-8", "openai": "gpt-5.1"}.get(provider, f"{provider}-v4")
    format_name = CLAUDE if provider == "anthropic" else CHAT
    assert settled(provider, model, format_name, Thinking()).members == ()


@given(limit=st.integers(1_025, 200_000), effort=st.sampled_from(EFFORTS[1:]), budget=st.none() | st.integers(1, 10**6))
def test_a_budget_is_below_max_tokens(limit: int, effort: Effort, budget: int | None) -> None:
    """Never above it, never below what the model takes, and `max_tokens` itself is left alone."""
    found = members_of(settled("anthropic", "claude-sonnet-4-5", CLAUDE, Thinking("on", effort, budget), limit))
    assert 1_024 <= found["thinking.budget_tokens"] < limit


def test_no_room_for_thinking() -> None:
    """A limit below the least budget: no thinking, and a finding."""
    found = settled("anthropic", "claude-sonnet-4-5", CLAUDE, HIGH, 1_000)
    assert (found.members, found.is_thinking, len(found.problems)) == ((), False, 1)


@pytest.mark.parametrize("display", ["omitted", "summarized"])
def test_display_is_passed_on_as_it_came(display: str) -> None:
    """A client that says how thinking is shown is taken at its word; nobody else has it set."""
    found = members_of(
        settled("bedrock", "us.anthropic.claude-opus-4-8", "bedrock_converse", Thinking("adaptive", display=display))
    )
    assert found["additionalModelRequestFields.thinking.display"] == display
    assert not any("display" in path for path in members_of(settled("anthropic", "claude-opus-4-8", CLAUDE, HIGH)))


@pytest.mark.parametrize("effort", EFFORTS[1:])
def test_words_and_tokens_agree(effort: Effort) -> None:
    """The tokens of a word are that word again."""
    assert effort_of(Thinking("on", None, BUDGETS[effort]), EFFORTS[1:]) == effort


def test_no_knob_is_out_of_reach() -> None:
    """A knob for all models is the last of its contract, and no pattern stands twice."""
    for contract in CONTRACTS.values():
        patterns = [knob.models for knob in contract.knobs]
        assert "" not in patterns[:-1]
        assert len(set(patterns)) == len(patterns)
    assert knob_for(resolve(Destination("nobody", "", "no-model", CHAT)), "no-model").style == "reasoning_effort"
