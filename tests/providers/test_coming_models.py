"""Models that don't exist yet have the contract, the knob and the door of their maker's newest generation."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from thoughtline import providers
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.detection import host_of, resolve
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName


class Line(NamedTuple):
    """A maker's models at one host: the newest that is known, and some that may come."""

    provider: str
    format: FormatName
    newest: str
    coming: tuple[str, ...]


CLAUDES = ("claude-fable-5-3", "claude-opus-6", "claude-sonnet-6-1", "claude-haiku-7", "claude-saga-1")
GPTS = ("gpt-6.4", "gpt-7-nova", "gpt-12", "gpt-10.2-sol")
LINES = (
    Line("anthropic", "anthropic_messages", "claude-fable-5-2", (*CLAUDES, "claude-mythos-6[1m]")),
    Line("azure-foundry", "anthropic_messages", "claude-fable-5-2", CLAUDES),
    Line("bedrock-mantle", "anthropic_messages", "anthropic.claude-fable-5-2", ("anthropic.claude-opus-6",)),
    Line("openrouter", "anthropic_messages", "anthropic/claude-fable-5.2", ("anthropic/claude-opus-6.1",)),
    Line("vertex", "anthropic_messages", "claude-fable-5-2", ("claude-opus-6@20270101", *CLAUDES)),
    Line(
        "bedrock",
        "bedrock_converse",
        "us.anthropic.claude-fable-5-2-v1:0",
        (
            "anthropic.claude-opus-6-v1:0",
            "global.anthropic.claude-sonnet-6-20270101-v1:0",
            "eu.anthropic.claude-haiku-6-5",
        ),
    ),
    Line("bedrock", "bedrock_invoke", "us.anthropic.claude-fable-5-2-v1:0", ("anthropic.claude-opus-6-v1:0",)),
    Line("openai", "openai_responses", "gpt-6.1-sol", GPTS),
    Line("openai", "openai_chat", "gpt-6.1-sol", GPTS),
    Line("azure", "openai_responses", "gpt-6.1-sol", GPTS),
    Line("azure", "openai_chat", "gpt-6.1-sol", GPTS),
    Line("xai", "openai_responses", "grok-4.7", ("grok-5", "grok-5.2-fast", "grok-10")),
    Line("xai", "openai_chat", "grok-4.7", ("grok-5", "grok-5.2-fast", "grok-10")),
    Line("gemini", "gemini_generate", "gemini-3.1-pro", ("gemini-4-pro", "gemini-5.5-pro-preview", "gemini-10-pro")),
    Line("gemini", "gemini_generate", "gemini-3.8-flash", ("gemini-4-flash", "gemini-5.5-flash", "gemini-10-flash")),
    Line("vertex", "gemini_generate", "gemini-3.8-flash", ("gemini-4-flash", "gemini-5.5-flash", "gemini-10-flash")),
    Line("gemini", "openai_chat", "gemini-3.1-pro", ("gemini-4-pro", "gemini-5.5-flash", "gemini-10-pro")),
    Line("deepseek", "openai_chat", "deepseek-v4-pro", ("deepseek-v5", "deepseek-v4.5-flash", "deepseek-v10-pro")),
    Line("deepseek", "anthropic_messages", "deepseek-v4-pro", ("deepseek-v5", "deepseek-v4.5", "deepseek-v10")),
    Line("kimi", "openai_chat", "kimi-k3", ("kimi-k3.5", "kimi-k4", "kimi-k10-preview")),
    Line("kimi", "anthropic_messages", "kimi-k3", ("kimi-k3.5", "kimi-k4", "kimi-k10-preview")),
    Line("glm", "openai_chat", "glm-5.3", ("glm-5.4", "glm-6", "glm-6.2-flash", "glm-10")),
    Line("minimax", "openai_chat", "MiniMax-M3.1", ("MiniMax-M3.2", "MiniMax-M4", "MiniMax-M10")),
    Line("minimax", "anthropic_messages", "MiniMax-M3.1", ("MiniMax-M3.2", "MiniMax-M4", "MiniMax-M10")),
    Line("qwen", "openai_chat", "qwen3.8-max", ("qwen3.9-plus", "qwen4-max", "qwen5.1-flash", "qwen3.10-max")),
    Line("mistral", "openai_chat", "mistral-medium-latest", ("mistral-medium-4", "mistral-large-4", "magistral-3")),
    Line("mimo", "openai_chat", "mimo-v2.5-pro", ("mimo-v3", "mimo-v3.5-flash", "mimo-v10")),
    Line("meta", "openai_responses", "muse-spark", ("muse-spark-2", "muse-blaze", "muse-3")),
    Line("cohere", "openai_chat", "command-a-reasoning-08-2025", ("command-b", "command-a-2-2027", "command-c")),
    Line(
        "bedrock", "bedrock_converse", "amazon.nova-2-lite-v1:0", ("amazon.nova-3-pro-v1:0", "amazon.nova-4-ultra-v1:0")
    ),
)


def behaviour(line: Line, model: str) -> dict[str, Any]:
    """All that rows say of a model."""
    target = Destination(line.provider, "", model, line.format)
    contract, lowered = resolve(target), model.lower()
    sampling = contract.sampling
    return {
        "contract": contract,
        "knob": replace(knob_for(contract, model), models=""),
        "takes no sampling": re.search(sampling.never, lowered) is not None,
        "can be made to call some tool": re.search(contract.forces_any, lowered) is not None,
        "doors": [
            door.goes_up for door in host_of(target).doors if door.comes_in == line.format and door.is_for(model)
        ],
        "is wanted back": providers.is_wanted_back(model),
    }


@pytest.mark.parametrize(("line", "model"), [(line, model) for line in LINES for model in line.coming])
def test_a_coming_model_is_as_the_newest(line: Line, model: str) -> None:
    """Rows name what is over, or the floor of a generation; no name of today is needed."""
    assert behaviour(line, model) == behaviour(line, line.newest)


OVER = (
    Line(
        "anthropic", "anthropic_messages", "claude-fable-5-2", ("claude-opus-4-8", "claude-3-7-sonnet", "claude-opus-5")
    ),
    Line("openai", "openai_responses", "gpt-6.1-sol", ("gpt-5.1", "gpt-4o", "o3", "gpt-35-turbo")),
    Line("gemini", "gemini_generate", "gemini-3.8-flash", ("gemini-2.5-flash", "gemini-1.5-pro", "gemini-3-flash")),
    Line("kimi", "openai_chat", "kimi-k3", ("kimi-k2.5", "kimi-k2-thinking")),
    Line("glm", "openai_chat", "glm-5.3", ("glm-5.2", "glm-4.7")),
    Line("minimax", "openai_chat", "MiniMax-M3.1", ("MiniMax-M3", "MiniMax-M2.7")),
    Line("qwen", "openai_chat", "qwen3.8-max", ("qwen3-235b-a22b", "qwen-plus", "qwen2.5-72b-instruct", "qwen3.5-27b")),
)


@pytest.mark.parametrize(("line", "model"), [(line, model) for line in OVER for model in line.coming])
def test_an_older_model_is_not(line: Line, model: str) -> None:
    """It keeps what was true of it."""
    assert behaviour(line, model) != behaviour(line, line.newest)


def test_every_maker_has_a_line() -> None:
    """Whoever makes models of several generations."""
    makers = {row.name for row in providers.PROVIDERS if row.makes_models and row.makes}
    assert makers <= {line.provider for line in LINES}
