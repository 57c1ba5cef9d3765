"""A request that says "don't think" in another provider's terms: its model thinks, so its reasoning is restored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.test_healing import acme, told
from tests.sim.served_simulators import served

Body = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
SWITCHES: dict[str, Body] = {
    "claude-code-router": {"reasoning": {"effort": "high", "enabled": False}},
    "qwen": {"enable_thinking": False},
    "vllm": {"chat_template_kwargs": {"enable_thinking": False}},
    "ollama": {"think": False},
    "openrouter": {"reasoning": {"effort": "none"}},
}
MODELS = {"deepseek": "deepseek-v4-pro", "kimi": "kimi-k2.6", "mimo": "mimo-v2.5-pro", "glm": "glm-5.2"}


def asked(model: str, mark: str, switch: Body) -> Body:
    return {
        "model": model,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": f"List the files. {mark}"}],
        **switch,
    }


def gone_on(body: Body, answer: httpx.Response) -> Body:
    """The next request of a client that keeps no reasoning."""
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    calls = message["tool_calls"]
    kept = {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls]
    return {**body, "messages": [*body["messages"], kept, *results]}


def thoughts_of(answer: httpx.Response) -> int:
    """1 if the model has thought."""
    return int(bool(answer.json()["choices"][0]["message"].get("reasoning_content")))


def post(gateway: Running, provider: str, body: Body) -> httpx.Response:
    return httpx.post(f"{gateway.url}/{provider}/v1/chat/completions", json=body)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("provider", MODELS)
def test_a_switch_of_another_provider_is_not_believed(provider: str, switch: str) -> None:
    """Only the provider's own switch is read: reasoning is restored, and nothing is refused."""
    with running({provider: served(provider).url}) as gateway:
        body = asked(MODELS[provider], f"{provider} {switch}", SWITCHES[switch])
        first = post(gateway, provider, body)
        answer = post(gateway, provider, gone_on(body, first))
    assert answer.status_code == 200, answer.text
    assert (told(answer, "restored"), told(answer, "healed")) == (thoughts_of(first), 0)


def test_a_switch_of_its_own_is_believed() -> None:
    """If its provider's switch is off, nothing is restored."""
    with running({"deepseek": served("deepseek").url}) as gateway:
        body = asked("deepseek-v4-pro", "own switch", {})
        on = gone_on(body, post(gateway, "deepseek", body))
        answer = post(gateway, "deepseek", {**on, "thinking": {"type": "disabled"}})
    assert answer.status_code == 200, answer.text
    assert told(answer, "restored") == 0


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_refusal_starts_the_ladder_whatever_was_believed(switch: str) -> None:
    """At an unlisted host a switch is believed, until the provider asks for reasoning: healed and learned."""
    with acme(served("deepseek", "reseller").url, "openai_chat") as gateway:
        for number, healed in enumerate((1, 0)):
            body = asked("novel-9", f"ladder {switch} {number}", SWITCHES[switch])
            first = post(gateway, "acme", body)
            answer = post(gateway, "acme", gone_on(body, first))
            assert answer.status_code == 200, answer.text
            thoughts = thoughts_of(first)
            assert (told(answer, "restored"), told(answer, "healed")) == (thoughts, healed * thoughts)


def test_one_refusal_teaches_one_thing() -> None:
    """If it is already known which turns must have reasoning, only the switch was wrong."""
    with acme(served("deepseek", "reseller").url, "openai_chat") as gateway:
        body = asked("deepseek-v4-pro", "one lesson", SWITCHES["qwen"])
        first = post(gateway, "acme", body)
        answer = post(gateway, "acme", gone_on(body, first))
        assert told(answer, "healed") == 1
        assert {one.change for one in gateway.state.lessons.corrections} == {"ignores"}
