"""A Next.js-style application over the AI SDK, whose route asks the gateway: whole, whatever its messages lose."""

from __future__ import annotations

import json
import subprocess
from typing import Any, NamedTuple

import pytest

from tests.clients.apps import ANSWERS, OPENING, SECOND
from tests.clients.programs import INSTALLED, TIMEOUT_SECONDS
from tests.clients.upstreams import Upstream, reach, start

pytestmark = pytest.mark.programs

SCRIPT = INSTALLED.parent.parent / "tests/clients/next_app.mjs"
PROVIDERS = ("@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google", "@ai-sdk/openai-compatible")
THINKING = {"anthropic": {"thinking": {"type": "enabled", "budgetTokens": 2048}}}
STATELESS = {"openai": {"store": False, "include": ["reasoning.encrypted_content"], "reasoningSummary": "auto"}}
ADAPTIVE = {"anthropic": {"thinking": {"type": "adaptive"}}}


class Row(NamedTuple):
    """A provider of the SDK, whom it asks, and under which path."""

    provider: str
    simulator: str
    model: str
    path: str
    options: dict[str, Any]
    profile: str | None = None

    @property
    def id(self) -> str:
        return "-".join((self.provider, self.model))


ROWS = (
    Row("compatible", "deepseek", "deepseek-v4-pro", "/v1", {}),
    Row("compatible", "kimi", "kimi-k2.6", "/v1", {}),
    Row("openai", "openai", "gpt-5", "/v1", STATELESS),
    Row("anthropic", "anthropic", "claude-sonnet-4-5", "/v1", THINKING, "classic"),
    Row("anthropic", "anthropic", "claude-opus-4-8", "/v1", ADAPTIVE, "adaptive"),
    Row("google", "gemini", "gemini-3-pro-preview", "/v1beta", {}),
)
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])


def packages() -> dict[str, str]:
    """Where they are. Several programs bring an `ai` of their own: the one for these providers is version 7."""
    found = {name: INSTALLED / name for name in PROVIDERS}
    copies = [INSTALLED / "ai", *INSTALLED.glob("*/*/node_modules/ai")]
    fit = [copy for copy in copies if copy.is_dir() and _version(copy).startswith("7.")]
    assert fit, "the AI SDK is not installed: run `make test-clients`"
    return {name: str(path) for name, path in {**found, "ai": fit[0]}.items()}


def _version(package: Any) -> str:
    return str(json.loads((package / "package.json").read_text())["version"])


def talk(row: Row, base_url: str, habit: str) -> list[str]:
    """The answers; none if a question had none."""
    task = {"packages": packages(), "provider": row.provider, "baseURL": base_url + row.path, "model": row.model}
    asked = {**task, "habit": habit, "questions": [OPENING, SECOND], "options": row.options}
    command = ["node", str(SCRIPT)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return list(json.loads(done.stdout or "[]"))


def check_whole(upstream: Upstream, answers: list[str]) -> None:
    """Both questions were answered, nothing was refused, and all reasoning came back."""
    assert answers == ANSWERS
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * turns for turns in range(5)]


@every_row
@pytest.mark.parametrize("habit", ["keeps", "hides", "forgets"])
def test_through_the_gateway(row: Row, habit: str) -> None:
    """Two questions, five steps: the provider has every thought of every step."""
    upstream = start(row.simulator, row.profile)
    check_whole(upstream, talk(row, reach(upstream), habit))


@every_row
def test_without_the_gateway(row: Row) -> None:
    """The same application loses what the model thought about the first question, or is refused."""
    upstream = start(row.simulator, row.profile)
    assert talk(row, upstream.url, "forgets") == ANSWERS or upstream.refusals()
    assert "missing" in upstream.verdicts()[-1] or upstream.refusals()
