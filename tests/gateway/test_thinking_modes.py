"""A client that asks a Claude model for a thinking mode that it lacks: it is answered, and told about the change."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.clients.upstreams import start
from tests.gateway.gateways import Json, Running, running
from tests.gateway.upstreams import Got, Out, upstream

USER = [{"role": "user", "content": "Hi"}]
BUDGET: Json = {"type": "enabled", "budget_tokens": 10_000}
ADAPTIVE: Json = {"type": "adaptive"}


def ask(gateway: Running, model: str, thinking: Json) -> httpx.Response:
    body = {"model": model, "max_tokens": 32_000, "messages": USER, "thinking": thinking}
    return httpx.post(f"{gateway.url}/anthropic/v1/messages", json=body, headers={"x-api-key": "a-key"}, timeout=30)


@pytest.mark.parametrize("thinking", [BUDGET, {"type": "disabled"}])
def test_a_model_that_is_known(thinking: Json) -> None:
    """Our table of models is not trusted over the provider: the first request is refused and healed, the second is
    corrected before it is sent; a finding reports the change."""
    simulator = start("anthropic", "bound")
    with running({"anthropic": simulator.url}) as gateway:
        first = ask(gateway, "claude-opus-5-5", thinking)
        refused = len(simulator.refusals())
        second = ask(gateway, "claude-opus-5-5", thinking)
    assert [first.status_code, second.status_code] == [200, 200]
    assert (refused, len(simulator.refusals())) == (1, 1)
    assert "healed=1" in first.headers["x-thoughtline-replay"]
    assert second.headers["x-thoughtline-findings"] == "forbidden=1"


def refusing(mode: str, sentence: str) -> Any:
    """A server that refuses one thinking mode."""

    async def answer(got: Got, out: Out) -> None:
        if json.loads(got.body)["thinking"]["type"] == mode:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": sentence}}
            await out.whole(400, json.dumps(error).encode())
            return
        said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        await out.whole(200, json.dumps(said | {"content": [{"type": "text", "text": "Hi."}]}).encode())

    return answer


USE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'


@pytest.mark.parametrize(
    ("thinking", "sentence", "sent"),
    [
        (BUDGET, f'"thinking.type.enabled" is not supported for this model. {USE}', "adaptive"),
        ({"type": "disabled"}, f'"thinking.type.disabled" is not supported for this model. {USE}', "adaptive"),
        (ADAPTIVE, "adaptive thinking is not supported on this model", "enabled"),
    ],
)
def test_an_unknown_model(thinking: Json, sentence: str, sent: str) -> None:
    """Its refusal is healed before the client sees it, and known from then on."""
    with upstream(refusing(thinking["type"], sentence)) as up, running({"anthropic": up.url}) as gateway:
        first, second = ask(gateway, "mine", thinking), ask(gateway, "mine", thinking)
    assert [first.status_code, second.status_code] == [200, 200]
    assert "healed=1" in first.headers["x-thoughtline-replay"]
    assert [json.loads(got.body)["thinking"]["type"] for got in up.got] == [thinking["type"], sent, sent]
    if thinking is BUDGET:
        assert json.loads(up.got[-1].body)["output_config"] == {"effort": "high"}
