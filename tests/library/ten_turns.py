"""Ten turns with tools, and what a strict provider says of them."""

from __future__ import annotations

from typing import Any

from tests.clients.upstreams import Upstream, start

MODEL = "deepseek-v4-pro"
KEY = "key-of-an-app"
TURNS = 10
CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Turin")
OPENING = "\n".join(
    (
        "Weather, please.",
        "script:",
        *(f'think: Now {city}.\ncall: weather {{"city": "{city}"}}\n---' for city in CITIES),
        "think: That was all.\nsay: It is warm.",
    )
)
ANSWER = "It is warm."
RESULT = "21 degrees"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
}


def deepseek() -> Upstream:
    """A strict DeepSeek of its own."""
    return start("deepseek")


def check_whole(upstream: Upstream, answer: str) -> None:
    """Nothing was refused, all reasoning came back, and no request was made but the ten."""
    assert answer == ANSWER
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * turns for turns in range(TURNS)]
    assert _statuses(upstream) == [200] * TURNS


def check_refused(upstream: Upstream, words: str = "must be passed back") -> None:
    """The second request came without what was thought, and was refused for it."""
    assert words in upstream.refusals()[0]
    assert _statuses(upstream)[:2] == [200, 400]


def _statuses(upstream: Upstream) -> list[int]:
    """Of what a model was asked for; LiteLLM's proxy asks for lists of models, too."""
    return [seen.status for seen in upstream.watched.seen if seen.method == "POST"]
