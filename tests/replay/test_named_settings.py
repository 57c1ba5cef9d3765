"""A name refers to a setting of the request, in any spelling."""

from __future__ import annotations

from typing import Any

import pytest

from thoughtline.formats.request_settings import FoundSetting
from thoughtline.replay.named_settings import SettingWeight, fold, is_called, says_off, weight


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("reasoning_effort", "reasoning.effort"),
        ("reasoningEffort", "reasoning_effort"),
        ("effort", "output_config.effort"),
        ("thinking.between_tools.display", "thinking.display"),
        ("generation_config.thinking_config.thinking_level", "generationConfig.thinkingConfig.thinkingLevel"),
        ("parameter.enable_thinking", "enable_thinking"),
    ],
)
def test_a_name_is_understood(name: str, path: str) -> None:
    """In snake and camel case, by its end, and with steps that only the server has."""
    assert is_called(FoundSetting(tuple(path.split(".")), 1), [fold(step) for step in name.split(".")])


def test_another_name_is_not() -> None:
    """A part of a word is not a name."""
    assert not is_called(FoundSetting(("top_p",), 1), ["p"])
    assert not is_called(FoundSetting(("thinking", "display"), 1), ["thinking"])


@pytest.mark.parametrize(
    ("path", "value", "is_off"),
    [
        ("reasoning.enabled", False, True),
        ("enable_thinking", False, True),
        ("thinking.type", "disabled", True),
        ("reasoning_effort", "none", True),
        ("generationConfig.thinkingConfig.thinkingBudget", 0, True),
        ("store", False, False),
        ("thinking.type", "enabled", False),
        ("service_tier", "none", False),
    ],
)
def test_what_says_off(path: str, value: Any, *, is_off: bool) -> None:
    """In every maker's words, and no other setting."""
    assert says_off(FoundSetting(tuple(path.split(".")), value)) is is_off


def test_what_gives_way_first() -> None:
    """Sampling, anything else, a forced tool, tokens, an effort, and thinking last."""
    names = ("temperature", "parallel_tool_calls", "tool_choice", "thinking_budget", "reasoning_effort", "thinking")
    assert [weight(FoundSetting((name,), 1)) for name in names] == list(SettingWeight)


def test_a_common_word_alone_is_no_name() -> None:
    """Errors have a `type` of their own."""
    assert not is_called(FoundSetting(("thinking", "type"), "enabled"), ["type"])
    assert is_called(FoundSetting(("thinking", "type"), "enabled"), ["thinking", "type"])
