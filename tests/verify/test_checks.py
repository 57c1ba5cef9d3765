"""Verification agrees with the strict simulators, and names the rule where one of them is changed."""

from __future__ import annotations

import pytest

from tests.verify.asked_simulators import verified
from tests.verify.mutants import MUTANTS, Mutant
from thoughtline.values.turns import FormatName
from thoughtline_sim.simulators import SIMULATORS

AGREES: tuple[tuple[str, str, FormatName], ...] = (
    ("deepseek", "deepseek-v4-pro", "openai_chat"),
    ("deepseek", "deepseek-v4-pro", "openai_responses"),
    ("deepseek", "deepseek-v4-pro", "anthropic_messages"),
    ("kimi", "kimi-k2.6", "openai_chat"),
    ("kimi", "kimi-k3", "openai_chat"),
    ("kimi", "kimi-k3", "anthropic_messages"),
    ("mimo", "mimo-v2.5-pro", "openai_chat"),
    ("mimo", "mimo-v2.5-pro", "anthropic_messages"),
    ("glm", "glm-5", "openai_chat"),
    ("minimax", "MiniMax-M3", "openai_chat"),
    ("anthropic", "claude-sonnet-4-5", "anthropic_messages"),
    ("anthropic", "claude-opus-5-5", "anthropic_messages"),
    ("gemini", "gemini-3-pro-preview", "gemini_generate"),
    ("gemini", "gemini-3-pro-preview", "openai_chat"),
    ("openai", "gpt-6-astra", "openai_responses"),
    ("openai", "gpt-6-astra", "openai_chat"),
    ("xai", "grok-4.7", "openai_responses"),
    ("xai", "grok-4.7", "openai_chat"),
    ("groq", "openai/gpt-oss-120b", "openai_chat"),
    ("cerebras", "gpt-oss-120b", "openai_chat"),
    ("ollama", "qwen3:14b", "ollama_chat"),
)


@pytest.mark.parametrize(("name", "model", "api"), AGREES)
async def test_it_agrees_with_the_strict_simulators(name: str, model: str, api: FormatName) -> None:
    """Every fact that is seen is believed, and every refusal is known."""
    found, asker = await verified(SIMULATORS[name], name, model, api)
    assert not found.differences
    assert not [one.fact for one in found.results if one.refused is not None and not one.refused.is_known]
    assert asker.requests <= 25


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
async def test_it_names_the_rule_that_was_changed(mutant: Mutant) -> None:
    """A simulator that breaks one belief: the fact differs, or the refusal is one that is not known."""
    found, _ = await verified(mutant.simulator, mutant.provider, mutant.model, mutant.format)
    differing = {one.fact for one in found.differences}
    unknown = {one.fact for one in found.results if one.refused is not None and not one.refused.is_known}
    if mutant.is_unknown_refusal:
        assert unknown
    else:
        assert differing & set(mutant.finds), found.results
