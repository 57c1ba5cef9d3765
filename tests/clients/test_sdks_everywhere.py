"""Each official SDK against every simulator through the gateway: what it can't speak natively is translated."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tests.clients.apps import ANSWERS, APPS, Setup, Way, converse
from tests.clients.upstreams import start
from tests.gateway.gateways import running
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")

EXTRA: dict[str, dict[str, Any]] = {
    "openai-chat": {"reasoning_effort": "high"},
    "openai-responses": {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high"}},
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8000},
    "google-genai": {"thinking_config": {"include_thoughts": True, "thinking_budget": 2048}},
}


class Row(NamedTuple):
    """A simulator, its provider, and a model of it."""

    simulator: str
    model: str
    provider: str = ""
    profile: str | None = None

    @property
    def name(self) -> str:
        return self.provider or self.simulator


ROWS = (
    Row("deepseek", "deepseek-v4-pro"),
    Row("kimi", "kimi-k2.6"),
    Row("mimo", "mimo-v2.5-pro"),
    Row("glm", "glm-5"),
    Row("minimax", "MiniMax-M3"),
    Row("qwen", "qwen3.7-max"),
    Row("anthropic", "claude-sonnet-4-5", profile="classic"),
    Row("anthropic", "claude-opus-5-5", profile="bound"),
    Row("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", profile="classic"),
    Row("gemini", "gemini-3-pro-preview"),
    Row("gemini-2.5", "gemini-2.5-pro", "gemini"),
    Row("openai", "gpt-5"),
    Row("azure", "gpt-5-mini"),
    Row("xai", "grok-4.7"),
    Row("openrouter", "anthropic/claude-sonnet-4.5"),
    Row("mistral", "magistral-medium-latest"),
    Row("groq", "openai/gpt-oss-120b"),
    Row("cerebras", "gpt-oss-120b"),
    Row("ollama", "qwen3:14b"),
    Row("vllm", "Qwen/Qwen3-32B"),
    Row("copilot", "gpt-5.3-codex"),
)


def model_of(row: Row, app: str) -> str:
    """The model that the application names. Copilot's Messages API has Claudes, its Responses API has GPTs."""
    return "claude-sonnet-4.5" if (row.simulator, app) == ("copilot", "anthropic") else row.model


def extra_of(row: Row, app: str) -> dict[str, Any]:
    """What the application asks for. Models that think by themselves know no budget."""
    known = EXTRA[app]
    return {**known, "thinking": {"type": "adaptive"}} if app == "anthropic" and row.profile == "bound" else known


def _without_tags(answer: str) -> str:
    """MiniMax writes what it thought into its answer, in its own format: that is for its clients to know."""
    return answer.rpartition("</think>")[2].strip()


def formats_of(row: Row) -> tuple[Any, ...]:
    """What the provider speaks and the simulator has an API for."""
    spoken = {api.wire.format for api in start(row.simulator, row.profile).watched.app.simulation.simulator.apis}
    return tuple(one for one in PROVIDERS[row.name].formats if one in spoken)


CASES = [
    (row, app)
    for row in ROWS
    for app in APPS
    # Mistral's own answers hold a list where OpenAI's SDK expects text.
    if (row.simulator, app) != ("mistral", "openai-chat")
]


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize(
    ("row", "app"), CASES, ids=[f"{row.simulator}-{row.profile or 'only'}-{app}" for row, app in CASES]
)
def test_an_application_that_strips_completes_its_task(row: Row, app: str, way: Way) -> None:
    """Two questions and five steps with parallel calls: the SDK reads every answer, and no request is refused."""
    upstream = start(row.simulator, row.profile)
    provider = replace(PROVIDERS[row.name], base_url=upstream.url, bases={}, formats=formats_of(row))
    settings = Settings(providers={**PROVIDERS, row.name: provider})
    with running({}, settings) as gateway:
        setup = Setup(f"{gateway.url}/{row.name}", model_of(row, app), "strips", way, extra_of(row, app))
        answers = converse(APPS[app](setup))
    assert [_without_tags(answer) for answer in answers] == ANSWERS
    assert upstream.refusals() == []
    assert not {"altered", "foreign", "missing"} & set(upstream.verdicts()[-1]) or _may_miss(row)


def _may_miss(row: Row) -> bool:
    """If no reasoning is required back, or a field would be rejected."""
    return row.simulator in ("gemini-2.5", "mistral", "groq", "cerebras", "openai", "azure", "xai", "copilot", "gemini")
