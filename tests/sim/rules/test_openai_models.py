"""OpenAI's models by name."""

from __future__ import annotations

import pytest

from thoughtline_sim.rules.openai_models import OpenAIModel, model_named

NEWEST = OpenAIModel()


@pytest.mark.parametrize("name", ["gpt-6.2", "gpt-6.2-sol", "gpt-7", "gpt-10.1-nova", "openai/gpt-8", "gpt-6.1-sol"])
def test_unlisted_names(name: str) -> None:
    """A name that no table has behaves as the newest model."""
    assert model_named(name) == NEWEST


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("gpt-5.6-terra", "gpt-5.6"),
        ("gpt-5.4-mini-2026-03-05", "gpt-5.4"),
        ("gpt-6-luna", "gpt-6-sol"),
        ("openai/gpt-5", "gpt-5-nano"),
        ("o3", "o4-mini"),
    ],
)
def test_variants(name: str, like: str) -> None:
    """Sizes, dates and makers' prefixes don't change what a version does."""
    assert model_named(name) == model_named(like)


def test_names_that_are_not_openais() -> None:
    """A deployment's name says nothing, and nothing is refused for it."""
    assert model_named("my-deployment").chat_tools == "free"
    assert not model_named("gpt-4o").reasons
    assert not model_named("gpt-5.3-codex").has_chat
    assert not model_named("gpt-6.1-pro").has_chat
