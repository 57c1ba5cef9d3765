"""Request and answer in one format: what a forgetful client gets, and what the provider sees."""

from __future__ import annotations

import httpx

from tests.gateway.gateways import running
from tests.sim.served_simulators import served

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]


def test_reasoning_that_a_client_strips_is_put_back() -> None:
    """DeepSeek refuses a tool turn without its reasoning: through the gateway the same history is accepted."""
    simulator = served("deepseek")
    history = [{"role": "user", "content": "list the files"}]
    body = {"model": "deepseek-v4-pro", "messages": history, "tools": TOOLS}
    key = {"authorization": "Bearer someone"}
    with running({"deepseek": simulator.url}) as gateway:
        url = f"{gateway.url}/deepseek/v1/chat/completions"
        message = httpx.post(url, json=body, headers=key).json()["choices"][0]["message"]
        del message["reasoning_content"]
        calls = message["tool_calls"]
        history += [message, *({"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls)]
        direct = httpx.post(f"{simulator.url}/v1/chat/completions", json=body, headers=key)
        through = httpx.post(url, json=body, headers=key)
    assert direct.status_code == 400
    assert through.status_code == 200
    assert through.headers["x-thoughtline-replay"].startswith("restored=1,")
