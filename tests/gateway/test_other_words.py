"""A request that turns thinking off with another provider's member: it thinks anyway, and gets its reasoning back."""

from __future__ import annotations

import httpx
import pytest

from tests.clients.upstreams import start
from tests.gateway.gateways import Json, running

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
WORDS: list[Json] = [
    {"enable_thinking": False},
    {"reasoning": {"enabled": False, "effort": "high"}},
    {"reasoning": {"effort": "none"}},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"think": False},
]


@pytest.mark.parametrize(("provider", "model"), [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2.6")])
@pytest.mark.parametrize("words", WORDS, ids=lambda words: next(iter(words)))
def test_the_conversation_goes_on(words: Json, provider: str, model: str) -> None:
    """The client keeps no reasoning; nothing is refused, because only the provider's own switch is read."""
    simulator = start(provider)
    messages: list[Json] = [{"role": "user", "content": "Look around."}]
    body: Json = {"model": model, "tools": TOOLS, "messages": messages, **words}
    with running({provider: simulator.url}) as gateway:
        for _ in range(4):
            response = httpx.post(
                f"{gateway.url}/{provider}/v1/chat/completions",
                json=body,
                headers={"authorization": "Bearer a-key"},
                timeout=30,
            )
            assert response.status_code == 200
            said = response.json()["choices"][0]["message"]
            calls = said.get("tool_calls") or ()
            messages.append(
                {"role": "assistant", "content": said["content"], **({"tool_calls": calls} if calls else {})}
            )
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": "a b"} for call in calls]
            if not calls:
                messages.append({"role": "user", "content": "And now?"})
    assert simulator.refusals() == []
