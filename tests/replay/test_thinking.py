"""Thinking modes: a request is sent in its own, until its provider refuses that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.engine.heal import Sent, heal
from thoughtline.formats import FORMATS
from thoughtline.providers import ANTHROPIC
from thoughtline.replay.detection import resolve
from thoughtline.replay.learning import corrected
from thoughtline.replay.plans import Policy
from thoughtline.replay.refusals import Correction
from thoughtline.replay.thinking import in_own_mode
from thoughtline.values.destination import Destination

Json = dict[str, Any]
ENABLED: Json = {"type": "enabled", "budget_tokens": 10_000}
BODIES = FORMATS["anthropic_messages"].bodies


def told(model: str, thinking: Json, refused: str = "", **beside: Any) -> tuple[Json, int]:
    """The mode and amount that are sent. `refused` is the mode that its provider has refused."""
    body = {"model": model, "max_tokens": 32_000, "messages": [{"role": "user", "content": "x"}], "thinking": thinking}
    target = Destination("anthropic", "https://api.anthropic.com", model, "anthropic_messages")
    contract = corrected(resolve(target), lessons(target, refused) if refused else (), target, 1.0)
    asked = BODIES.decode_request(json.dumps(body | beside).encode(), ANTHROPIC)
    changed, findings = in_own_mode(asked, contract, model)
    sent = json.loads(BODIES.encode_request(changed, ANTHROPIC))
    return {name: sent[name] for name in ("thinking", "output_config") if name in sent}, len(findings)


REFUSALS = {
    "enabled": '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.',
    "disabled": '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.',
    "adaptive": "adaptive thinking is not supported on this model",
}


def lessons(target: Destination, mode: str) -> tuple[Correction, ...]:
    """The lessons from the refusal of a mode."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": REFUSALS[mode]}}
    body = json.dumps({"model": target.model, "messages": [], "thinking": {"type": mode}}).encode()
    sent = Sent(body, target, resolve(target), Policy(), filler=None)
    healed = heal(400, json.dumps(error).encode(), sent, 0.0)
    assert healed is not None
    return healed.corrections


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
    """If its mode was refused, a budget becomes the effort that covers it, an effort its budget; other settings
    stay."""
    assert told(model, thinking, str(thinking["type"]), **beside) == (expected, 1)


def test_a_mode_that_no_refusal_named_stays() -> None:
    """After `enabled` was refused, a request in a mode that the model supports is not rewritten."""
    assert told("claude-sonnet-5-5", {"type": "between_tools"}, "enabled") == (
        {"thinking": {"type": "between_tools"}},
        0,
    )
    assert told("claude-haiku-5-5", {"type": "disabled"}, "enabled") == ({"thinking": {"type": "disabled"}}, 0)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-5-5", {"type": "adaptive"}),
        ("claude-opus-5-5", ENABLED),
        ("claude-opus-5-5", {"type": "disabled"}),
        ("claude-haiku-5-5", {"type": "disabled"}),
        ("claude-sonnet-5-5", {"type": "between_tools"}),
        ("claude-sonnet-4-5", {"type": "adaptive"}),
        ("claude-opus-6", {"type": "a_mode_of_tomorrow"}),
        ("claude-opus-4-6", ENABLED),
        ("claude-opus-4-6", {"type": "adaptive"}),
        ("claude-opus-4-8", {"type": "disabled"}),
        ("claude-sonnet-4-5", ENABLED),
        ("claude-3-5-sonnet-20241022", ENABLED),
        ("my-own-name", ENABLED),
        ("my-own-name", {"type": "adaptive"}),
    ],
)
def test_a_mode_is_sent_unchanged(model: str, thinking: Json) -> None:
    """Whatever our table says about the model: its provider decides."""
    assert told(model, thinking) == ({"thinking": thinking}, 0)
