"""Gemini's thinking levels and budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.rules.test_asking import answer_to


def sentence_of(model: str, **config: Any) -> str:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"thinkingConfig": config},
    }
    simulator = "gemini-2.5" if "2.5" in model else "gemini"
    status, answer = answer_to(simulator, f"/v1beta/models/{model}:generateContent", body)
    return "" if status == 200 else str(json.loads(answer)["error"]["message"])


@pytest.mark.parametrize(
    ("model", "config", "sentence"),
    [
        ("gemini-2.5-flash", {"thinkingLevel": "low"}, "Thinking level is not supported for this model."),
        ("gemma-4-31b", {"thinkingLevel": "LOW"}, "Thinking level is not supported for this model."),
        *(
            (model, {"thinkingLevel": "minimal"}, "Thinking level MINIMAL is not supported for this model.")
            for model in ("gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-3.8-flash", "gemini-4-pro")
        ),
        ("gemini-3.5-flash-lite", {"thinkingLevel": "MINIMAL"}, ""),
        ("gemini-3-flash-preview", {"thinkingLevel": "minimal"}, ""),
        ("gemini-2.5-pro", {"thinkingBudget": 0}, "Budget 0 is invalid. This model only works in thinking mode."),
        ("gemini-3.1-pro", {"thinkingBudget": 0}, "Budget 0 is invalid. This model only works in thinking mode."),
        ("gemini-2.5-flash", {"thinkingBudget": 0}, ""),
        (
            "gemini-2.5-pro",
            {"thinkingBudget": 64},
            "The thinking budget 64 is invalid. Please choose a value between 128 and 32768.",
        ),
        (
            "gemini-3.7-flash",
            {"thinkingBudget": 500, "thinkingLevel": "low"},
            "You can only set only one of thinking budget and thinking level.",
        ),
    ],
)
def test_levels_and_budgets(model: str, config: dict[str, Any], sentence: str) -> None:
    """By model, in Google's own sentences."""
    assert sentence_of(model, **config) == sentence
