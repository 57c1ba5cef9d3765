"""Ways to think that a Claude has or lacks: a request in another one is told in the model's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats import FORMATS
from thoughtline.providers import ANTHROPIC
from thoughtline.replay.detection import resolve
from thoughtline.replay.thinking import in_own_mode
from thoughtline.values.destination import Destination

Json = dict[str, Any]
ENABLED: Json = {"type": "enabled", "budget_tokens": 10_000}
BODIES = FORMATS["anthropic_messages"].bodies


def told(model: str, thinking: Json, **beside: Any) -> tuple[Json, int]:
    """What a model is told, and how much is found."""
    body = {"model": model, "max_tokens": 32_000, "messages": [{"role": "user", "content": "x"}], "thinking": thinking}
    contract = resolve(Destination("anthropic", "https://api.anthropic.com", model, "anthropic_messages"))
    asked = BODIES.decode_request(json.dumps(body | beside).encode(), ANTHROPIC)
    changed, findings = in_own_mode(asked, contract, model)
    sent = json.loads(BODIES.encode_request(changed, ANTHROPIC))
    return {name: sent[name] for name in ("thinking", "output_config") if name in sent}, len(findings)


@pytest.mark.parametrize(
    ("model", "thinking", "beside", "expected"),
    [
        ("claude-opus-5-5", ENABLED, {}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (
            "claude-opus-4-8",
            ENABLED | {"budget_tokens": 2000},
            {},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "claude-opus-4-7",
            ENABLED | {"display": "summarized"},
            {"output_config": {"effort": "max", "format": {"type": "json_schema"}}},
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"format": {"type": "json_schema"}, "effort": "max"},
            },
        ),
        (
            "claude-opus-5-5",
            {"type": "disabled"},
            {},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "claude-sonnet-4-5",
            {"type": "adaptive"},
            {"output_config": {"effort": "high"}},
            {"thinking": {"type": "enabled", "budget_tokens": 24_576}},
        ),
        (
            "claude-sonnet-4-20250514",
            {"type": "adaptive"},
            {},
            {"thinking": {"type": "enabled", "budget_tokens": 8_192}},
        ),
        ("claude-sonnet-4-5", {"type": "adaptive"}, {"max_tokens": 1000}, {}),
    ],
)
def test_another_way_is_found(model: str, thinking: Json, beside: Json, expected: Json) -> None:
    """A budget becomes the effort that covers it, an effort its budget; what stands beside them stays."""
    assert told(model, thinking, **beside) == (expected, 1)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-5-5", {"type": "adaptive"}),
        ("claude-opus-4-6", ENABLED),
        ("claude-opus-4-6", {"type": "adaptive"}),
        ("claude-opus-4-8", {"type": "disabled"}),
        ("claude-sonnet-4-5", ENABLED),
        ("claude-3-5-sonnet-20241022", ENABLED),
        ("my-own-name", ENABLED),
        ("my-own-name", {"type": "adaptive"}),
    ],
)
def test_what_a_model_has_or_nobody_knows_stays(model: str, thinking: Json) -> None:
    """A name that tells nothing is left to the provider."""
    assert told(model, thinking) == ({"thinking": thinking}, 0)
