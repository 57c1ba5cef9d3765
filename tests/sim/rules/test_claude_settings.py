"""The settings that Claude's models accept, with the provider's own messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.rules.test_asking import HI, TOOL, answer_to

Json = dict[str, Any]
ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
FORCED = {"tools": [TOOL], "tool_choice": {"type": "any"}}
FORCED_REFUSED = "Thinking may not be enabled when tool_choice forces tool use."
BETWEEN = {"thinking": {"type": "between_tools"}}
DISABLED = {"thinking": {"type": "disabled"}}
ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def effort(word: str, **members: Any) -> Json:
    return {"output_config": {"effort": word}, **members}


def sentence_of(model: str, members: Json, beta: str = "") -> str:
    """The sentence of a refusal; empty for an answer."""
    body = {"model": model, "max_tokens": 2000, "messages": HI, **members}
    status, answer = answer_to("anthropic", "/v1/messages", body, headers={"anthropic-beta": beta})
    return "" if status == 200 else str(json.loads(answer)["error"]["message"])


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        ("claude-opus-4-7", ENABLED, f'"thinking.type.enabled" is not supported for this model. {ADAPTIVE}'),
        ("claude-fable-5-2", DISABLED, f'"thinking.type.disabled" is not supported for this model. {ADAPTIVE}'),
        ("claude-opus-6", DISABLED, f'"thinking.type.disabled" is not supported for this model. {ADAPTIVE}'),
        (
            "claude-mythos-preview",
            DISABLED,
            '"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not '
            'specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.',
        ),
        (
            "claude-sonnet-5-5",
            DISABLED,
            '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" for the '
            'lowest thinking setting, or "thinking.type.adaptive" and "output_config.effort" to control thinking '
            "behavior.",
        ),
        ("claude-haiku-4-5", {"thinking": {"type": "adaptive"}}, "adaptive thinking is not supported on this model"),
        ("claude-haiku-5-5", DISABLED, ""),
        ("claude-sonnet-5-5", BETWEEN, ""),
        ("claude-opus-4-6", ENABLED, ""),
        ("claude-fable-5-1", {"thinking": {"display": "omitted"}}, ""),
        (
            "claude-sonnet-5-5",
            {"thinking": {"type": "between_tools", "display": "omitted"}},
            "thinking.between_tools.display: Extra inputs are not permitted",
        ),
    ],
)
def test_modes(model: str, members: Json, sentence: str) -> None:
    """Each model has its modes of thinking."""
    assert sentence_of(model, members) == sentence


def test_display_of_updates() -> None:
    """Its own beta."""
    members = {"thinking": {"type": "adaptive", "display": "updates"}}
    assert sentence_of("claude-opus-5-5", members).startswith("thinking.adaptive.display: Input should be")
    assert sentence_of("claude-opus-5-5", members, "thinking-display-updates-2026-08-18") == ""


@pytest.mark.parametrize("kind", ["adaptive", "disabled"])
def test_binding_without_its_beta(kind: str) -> None:
    """(d9) The field goes with its beta, and never with `disabled`."""
    members = {"thinking": {"type": kind, "block_binding": {"prefix_mismatch_behavior": "error"}}}
    sentence = f"thinking.{kind}.block_binding: Extra inputs are not permitted"
    assert sentence_of("claude-haiku-5-5", members) == sentence
    beta = "interleaved-thinking-2025-05-14,thinking-binding-controls-2026-08-01"
    assert sentence_of("claude-haiku-5-5", members, beta) == ("" if kind == "adaptive" else sentence)


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        ("claude-haiku-4-5", effort("low"), "This model does not support the effort parameter."),
        ("claude-opus-4-5", effort("high"), ""),
        (
            "claude-opus-4-6",
            effort("xhigh"),
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
        ),
        (
            "claude-opus-5",
            effort("xhigh", **DISABLED),
            "output_config.effort 'xhigh' is not supported when thinking is disabled on this model. Use effort 'high' "
            "or below, or enable thinking.",
        ),
        ("claude-opus-5", effort("xhigh"), ""),
        ("claude-haiku-5-5", effort("high", **DISABLED), ""),
        (
            "claude-sonnet-5-5",
            effort("max", **BETWEEN),
            "output_config.effort 'max' is not supported when thinking is between_tools on this model. Use effort "
            "'high' or below.",
        ),
    ],
)
def test_efforts(model: str, members: Json, sentence: str) -> None:
    """Efforts by model and mode."""
    assert sentence_of(model, members) == sentence


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        ("claude-sonnet-4-5", {**FORCED, **ENABLED}, FORCED_REFUSED),
        ("claude-sonnet-4-5", FORCED, ""),
        ("claude-opus-5-5", FORCED, FORCED_REFUSED),
        ("claude-sonnet-5-5", {**FORCED, **BETWEEN}, FORCED_REFUSED),
        ("claude-fable-5-3", FORCED, FORCED_REFUSED),
        ("claude-haiku-5-5", FORCED, ""),
        ("claude-opus-5", FORCED, ""),
    ],
)
def test_forced_tools(model: str, members: Json, sentence: str) -> None:
    """(d11)"""
    assert sentence_of(model, members) == sentence


def test_a_forced_tool_is_called_without_thinking() -> None:
    """Haiku 5.5 takes the choice, and its answer has no thinking."""
    body = {"model": "claude-haiku-5-5", "max_tokens": 2000, "messages": HI, **FORCED}
    _, answer = answer_to("anthropic", "/v1/messages", body)
    assert [block["type"] for block in json.loads(answer)["content"]] == ["tool_use"]


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        ("claude-haiku-5-5", {"temperature": 1}, ""),
        ("claude-haiku-5-5", {"top_p": 0.99}, ""),
        ("claude-haiku-5-5", {"top_p": 0.9}, "`top_p` is deprecated for this model."),
        ("claude-haiku-5-5", {"top_k": 5}, "`top_k` is deprecated for this model."),
        (
            "claude-haiku-5-5",
            {"temperature": 1, "top_p": 0.99},
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        ),
        ("claude-opus-7", {"temperature": 0}, "`temperature` is deprecated for this model."),
        (
            "claude-opus-4-6",
            {"thinking": {"type": "adaptive"}, "temperature": 0.5},
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our "
            "documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-"
            "considerations-when-using-extended-thinking",
        ),
        (
            "claude-sonnet-4-5",
            {**ENABLED, "top_p": 0.9},
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.",
        ),
    ],
)
def test_sampling(model: str, members: Json, sentence: str) -> None:
    """Sampling by model and mode."""
    assert sentence_of(model, members) == sentence


@pytest.mark.parametrize(
    ("model", "sentence"), [("claude-sonnet-4-5", ""), ("claude-opus-4-6", PREFILL), ("claude-haiku-5-5", PREFILL)]
)
def test_prefill(model: str, sentence: str) -> None:
    """From 4.6 on, the conversation ends with the user."""
    assert sentence_of(model, {"messages": [*HI, {"role": "assistant", "content": "Well,"}]}) == sentence


CLEAR = {"type": "clear_thinking_20251015"}
TOOL_USES = {"type": "clear_tool_uses_20250919"}


@pytest.mark.parametrize(
    ("members", "beta", "sentence"),
    [
        ({"context_management": {"edits": [CLEAR]}}, "", "context_management: Extra inputs are not permitted"),
        ({"context_management": {"edits": [CLEAR, TOOL_USES]}}, "context-management-2025-06-27", ""),
        (
            {"context_management": {"edits": [CLEAR]}, **DISABLED},
            "context-management-2025-06-27",
            "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
        ),
        (
            {"context_management": {"edits": [TOOL_USES, CLEAR]}},
            "context-management-2025-06-27",
            "context_management: `clear_thinking_20251015` must be the first strategy in `context_management.edits` "
            "when provided",
        ),
    ],
)
def test_edits(members: Json, beta: str, sentence: str) -> None:
    """Context editing: field and beta travel together, and clearing thinking comes first."""
    assert sentence_of("claude-haiku-5-5", members, beta) == sentence


def test_bedrock_knows_no_effort_on_old_models() -> None:
    """Amazon's sentence for a member that it does not pass on."""
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 2000, "messages": HI, **effort("low")}
    _, answer = answer_to("bedrock", "/model/us.anthropic.claude-sonnet-4-5/invoke", body)
    assert json.loads(answer) == {"message": "output_config: Extra inputs are not permitted"}


@pytest.mark.parametrize(
    ("budget", "beta", "sentence"),
    [
        (1024, "", ""),
        (1023, "", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        (2000, "", "`max_tokens` must be greater than `thinking.budget_tokens`."),
        (9000, "interleaved-thinking-2025-05-14", ""),
    ],
)
def test_a_budget_is_below_the_limit_of_the_answer(budget: int, beta: str, sentence: str) -> None:
    """Interleaved thinking has a separate budget."""
    members = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    assert sentence_of("claude-opus-4-6", members, beta) == sentence
