"""Preserved reasoning: what OpenAI's newer models drop without a word shows in the numbers alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.faces import Body, Dialogue
from tests.sim.violations import case_of

OPENAI = case_of("openai", "openai_responses")
LONG = "Remember this. " * 400


def usage(model: str, *, is_edited: bool, profile: str | None = None, **extra: Any) -> Body:
    """What the third turn of a conversation costs, if its first words were edited or not."""
    case = OPENAI._replace(model=model, profile=profile)
    script = "\nscript:\nthink: one\ncall: weather {}\n---\nthink: two\nsay: Warm.\n---\nthink: three\nsay: Done."
    opening = f"{model} {is_edited} {extra} {LONG}{script}"
    dialogue = Dialogue(case, opening, **extra)
    for _ in range(2):
        dialogue.go_on(dialogue.ask())
    if is_edited:
        dialogue.history[0]["content"] = opening.replace("Remember", "Remembre", 1)
    response = dialogue.post()
    assert response.status_code == 200, response.text
    body: Body = response.json()["usage"]
    return body


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-6-astra", "gpt-6.1-sol", "gpt-9"])
def test_reasoning_after_an_edit_is_dropped(model: str) -> None:
    """A 200: fewer tokens come in, none are cached, and more are thought."""
    whole, edited = usage(model, is_edited=False), usage(model, is_edited=True)
    assert edited["input_tokens"] < whole["input_tokens"] - 50
    assert edited["output_tokens_details"]["reasoning_tokens"] > whole["output_tokens_details"]["reasoning_tokens"]
    assert whole["input_tokens_details"]["cached_tokens"] > 1024
    assert edited["input_tokens_details"]["cached_tokens"] == 0


def test_older_models_don_t_look() -> None:
    """Before 5.6, and under the profile of the probe that was still read."""
    for model, profile in (("gpt-5.1", None), ("gpt-6-astra", "unchecked")):
        whole = usage(model, is_edited=False, profile=profile)
        edited = usage(model, is_edited=True, profile=profile)
        assert abs(edited["input_tokens"] - whole["input_tokens"]) < 10


def test_reasoning_of_earlier_turns() -> None:
    """`reasoning.context` says whether the model sees it."""
    everything = usage("gpt-5.6", is_edited=False, reasoning={"context": "all_turns"})
    current = usage("gpt-5.6", is_edited=False, reasoning={"context": "current_turn"})
    assert current["input_tokens"] < everything["input_tokens"] - 50
