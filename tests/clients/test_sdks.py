"""The official SDKs in applications that keep reasoning, and in applications that lose it."""

from __future__ import annotations

from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from google.genai import errors

from tests.clients.apps import ANSWERS, APPS, Habit, Setup, Way, converse
from tests.clients.upstreams import Upstream, reach, start

NOTHING: dict[str, Any] = {}
NO_STORE = {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}
ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8000}
ADAPTIVE = {"thinking": {"type": "adaptive"}, "max_tokens": 8000}
REFUSALS = (openai.BadRequestError, anthropic.BadRequestError, errors.ClientError)
pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")


class Row(NamedTuple):
    """An SDK, the provider it talks to, and how that refuses a turn without its reasoning, if it does."""

    app: str
    simulator: str
    model: str
    refusal: str | None = None
    extra: dict[str, Any] = NOTHING
    profile: str | None = None

    @property
    def id(self) -> str:
        return "-".join(part for part in (self.app, self.simulator, self.profile) if part)


ROWS = (
    Row("openai-chat", "deepseek", "deepseek-v4-pro", "must be passed back"),
    Row("openai-chat", "kimi", "kimi-k2.6", "reasoning_content is missing"),
    Row("openai-chat", "mimo", "mimo-v2.5-pro", "400"),
    Row("openai-chat", "glm", "glm-5"),
    Row("openai-chat", "qwen", "qwen3.7-max"),
    Row("openai-responses", "openai", "gpt-5", None, NO_STORE),
    Row("openai-responses", "xai", "grok-4.7", None, NO_STORE),
    Row("openai-responses", "deepseek", "deepseek-v4-pro", "must be passed back"),
    Row("anthropic", "anthropic", "claude-sonnet-4-5", "Expected `thinking`", ENABLED, "classic"),
    Row("anthropic", "anthropic", "claude-opus-4-8", None, ADAPTIVE, "adaptive"),
    Row("anthropic", "deepseek", "deepseek-v4-pro", "must be passed back", {"max_tokens": 8000}),
    Row("anthropic", "kimi", "kimi-k2.6", "reasoning_content is missing", {"max_tokens": 8000}),
    Row("google-genai", "gemini", "gemini-3-pro-preview", "thought_signature"),
)
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
both_ways = pytest.mark.parametrize("way", ["whole", "streamed"])


def talk(row: Row, base_url: str, habit: Habit, way: Way) -> list[str]:
    return converse(APPS[row.app](Setup(base_url, row.model, habit, way, row.extra)))


def check_whole(upstream: Upstream, answers: list[str]) -> None:
    """Both questions were answered, nothing was refused, and all reasoning came back."""
    assert answers == ANSWERS
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * turns for turns in range(5)]


@every_row
@both_ways
def test_an_app_that_keeps_reasoning(row: Row, way: Way) -> None:
    """What the SDK gives is what the provider wants back, over two questions and five steps."""
    upstream = start(row.simulator, row.profile)
    check_whole(upstream, talk(row, reach(upstream), "keeps", way))


@every_row
@both_ways
def test_an_app_that_strips_reasoning_and_talks_to_the_provider_itself(row: Row, way: Way) -> None:
    """It is refused where the provider is strict; where it is not, the model goes on without its thoughts."""
    upstream = start(row.simulator, row.profile)
    if row.refusal is None:
        assert talk(row, upstream.url, "strips", way) == ANSWERS
        assert upstream.verdicts()[-1] == ["missing"] * 4
        return
    with pytest.raises(REFUSALS, match=row.refusal):
        talk(row, upstream.url, "strips", way)


@every_row
@both_ways
def test_an_application_that_strips_is_mended_by_the_gateway(row: Row, way: Way) -> None:
    """Whatever an application drops, the provider sees every thought byte for byte where it demands them."""
    upstream = start(row.simulator, row.profile)
    check_whole(upstream, talk(row, reach(upstream), "strips", way))
