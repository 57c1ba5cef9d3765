"""Claude's models by name: generations, and who reads whose thinking."""

from __future__ import annotations

import pytest

from thoughtline_sim.rules.claude_models import ClaudeModel, Platform, model_named, reads

NEWEST = ClaudeModel()


@pytest.mark.parametrize(
    ("name", "modes", "checks"),
    [
        ("claude-3-7-sonnet-20250219", ("enabled", "disabled"), "never"),
        ("claude-opus-4-20250514", ("enabled", "disabled"), "never"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", ("enabled", "disabled"), "never"),
        ("claude-haiku-4-5@20251001", ("enabled", "disabled"), "never"),
        ("anthropic/claude-sonnet-4.5", ("enabled", "disabled"), "never"),
        ("claude-opus-4-6", ("adaptive", "enabled", "disabled"), "never"),
        ("claude-opus-4-8", ("adaptive", "disabled"), "never"),
        ("claude-sonnet-5[1m]", ("adaptive", "disabled"), "never"),
        ("claude-fable-5", ("adaptive",), "never"),
        ("claude-mythos-preview", ("adaptive", "enabled"), "never"),
        ("claude-opus-5-5", ("adaptive",), "by account"),
        ("claude-sonnet-5-5-20260928", ("adaptive", "between_tools"), "by account"),
        ("global.anthropic.claude-haiku-5-5", ("adaptive", "disabled"), "by account"),
        ("claude-fable-5-1", ("adaptive",), "by account"),
        ("claude-fable-5-2", ("adaptive",), "always"),
    ],
)
def test_generations(name: str, modes: tuple[str, ...], checks: str) -> None:
    """The modes of thinking that a model takes, and whether it checks the conversation."""
    assert model_named(name)[2] == modes
    assert model_named(name).checks == checks


@pytest.mark.parametrize(
    "name",
    [
        *("claude-fable-5-3", "claude-opus-6", "claude-opus-6[1m]", "claude-sonnet-6-1-20270101", "claude-haiku-6"),
        *("us.anthropic.claude-opus-6-v1:0", "claude-opus-7@20280101", "claude-saga-1", "claude-opus-latest"),
    ],
)
def test_unlisted_names(name: str) -> None:
    """A name that no table has behaves as the newest generation."""
    assert model_named(name)[2:] == NEWEST[2:]


@pytest.mark.parametrize(
    ("reader", "maker", "platform", "is_read"),
    [
        ("claude-fable-5-1", "claude-opus-5-5", "api", True),
        ("claude-fable-5-1", "claude-opus-5-5", "google", False),
        ("claude-fable-5-1", "claude-mythos-5-1", "bedrock", True),
        ("claude-fable-5-1", "claude-fable-5-2", "api", False),
        ("claude-fable-5-2", "claude-mythos-5-2", "api", True),
        ("claude-fable-5-2", "claude-fable-5-1", "api", False),
        ("claude-opus-5-5", "claude-sonnet-5-5", "google", True),
        ("claude-opus-5-5", "claude-sonnet-5-5", "bedrock", False),
        ("claude-opus-5-5", "claude-opus-5", "bedrock", True),
        ("claude-opus-5-5", "claude-fable-5", "api", False),
        ("claude-sonnet-5-5", "claude-opus-5", "api", False),
        ("claude-sonnet-5-5", "claude-opus-4-8", "api", True),
        ("claude-sonnet-5-5", "claude-haiku-5-5", "api", True),
        ("claude-haiku-5-5", "claude-sonnet-5-5", "api", False),
        ("claude-sonnet-5", "claude-opus-5-5", "api", False),
        ("claude-sonnet-5", "claude-sonnet-4-6", "api", True),
        ("claude-opus-5-5", "us.anthropic.claude-opus-5-5-v1:0", "bedrock", True),
    ],
)
def test_readers(reader: str, maker: str, platform: Platform, is_read: bool) -> None:
    """Who reads whose blocks, and where."""
    assert reads(model_named(reader), model_named(maker), platform) is is_read


def test_pinned_profiles() -> None:
    """Two profiles make every name behave as one model of old."""
    assert model_named("claude-opus-5-5", "classic") == model_named("claude-sonnet-4-5")
    assert model_named("claude-opus-5-5", "adaptive") == model_named("claude-opus-4-8")
