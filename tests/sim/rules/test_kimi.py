"""Kimi: sampling that the mode fixes, forced tools, and models that can't be switched off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.rules.test_asking import TOOL
from tests.sim.rules.test_switches import MESSAGES, OFF, asked, thoughts_in

NAMED = {"type": "function", "function": {"name": "look"}}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


def sentence_of(model: str, **members: Any) -> str:
    status, body = asked("kimi", model, **members)
    return "" if status == 200 else str(body["error"]["message"])


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        ("kimi-k2.6", {"temperature": 0.7}, "invalid temperature: only 1 is allowed for this model"),
        ("kimi-k2.6", {"temperature": 1}, ""),
        ("kimi-k2.6", {"temperature": 1, **OFF}, "invalid temperature: only 0.6 is allowed for this model"),
        ("kimi-k2.6", {"temperature": 0.6, **OFF}, ""),
        ("kimi-k3", {"temperature": 0.6, **OFF}, "invalid temperature: only 1 is allowed for this model"),
        ("kimi-k3", {"top_p": 1}, "invalid top_p: only 0.95 is allowed for this model"),
        ("kimi-k4", {"n": 2}, "invalid n: only 1 is allowed for this model"),
        ("kimi-k3", {"presence_penalty": 0}, ""),
        ("kimi-latest", {"temperature": 0.3}, ""),
    ],
)
def test_sampling(model: str, members: dict[str, Any], sentence: str) -> None:
    """The value that the mode has, or none."""
    assert sentence_of(model, **members) == sentence


@pytest.mark.parametrize(
    ("model", "choice", "sentence"),
    [
        ("kimi-k2.6", NAMED, "tool_choice 'specified' is incompatible with thinking enabled"),
        ("kimi-k3", NAMED, "tool_choice 'specified' is incompatible with thinking enabled"),
        ("kimi-k2.6", "required", "tool_choice 'required' is incompatible with thinking enabled"),
        ("kimi-k3", "required", ""),
        ("kimi-k4", "required", ""),
        ("kimi-k3", "auto", ""),
    ],
)
def test_forced_tools(model: str, choice: Any, sentence: str) -> None:
    """While it thinks, and never while it does not."""
    assert sentence_of(model, tools=TOOLS, tool_choice=choice) == sentence
    assert sentence_of(model, tools=TOOLS, tool_choice=choice, **OFF) == ""


def test_forced_tools_on_messages() -> None:
    """The same words for the other API's choices."""
    status, body = asked("kimi", "kimi-k2.6", MESSAGES, tools=[TOOL], tool_choice={"type": "tool", "name": "look"})
    sentence = "tool_choice 'specified' is incompatible with thinking enabled"
    assert (status, body["error"]["message"]) == (400, sentence)


def test_switching_off() -> None:
    """K2.6 and K3 can be, K2.7-code says no."""
    for model in ("kimi-k2.6", "kimi-k3"):
        assert not thoughts_in(asked("kimi", model, **OFF)[1])
    assert sentence_of("kimi-k2.7-code", **OFF) == "invalid thinking: only type=enabled is allowed for this model"
