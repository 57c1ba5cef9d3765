"""Codex's own tool search at providers without it: the model searches, finds and calls."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.upstreams import start
from tests.gateway.gateways import Json, running

SCRIPT = """Greet me.
script:
think: I need a tool for that.
call: tool_search {"query": "greet"}
---
think: There is one.
call: mcp__hi__greet {"who": "you"}
---
think: Done.
say: Hello to you."""
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": SCHEMA}
GREET = {"type": "function", "name": "greet", "parameters": {"type": "object", "properties": {}}}
FOUND = {"type": "namespace", "name": "mcp__hi", "description": "Greets.", "tools": [GREET]}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("provider", "profile", "model"),
    [
        ("deepseek", None, "deepseek-v4-pro"),
        ("kimi", None, "kimi-k2.6"),
        ("anthropic", "adaptive", "claude-opus-4-8"),
        ("gemini", None, "gemini-3-pro-preview"),
    ],
)
def test_a_search_and_a_call_of_what_it_found(provider: str, profile: str | None, model: str, streams: bool) -> None:
    """The client gets a `tool_search_call`, then a call in its namespace; reasoning before both comes back whole. For a
    model whose thinking is bound to its tools a new tool ends that: no such model here."""
    simulator = start(provider, profile)
    items: list[Any] = [{"type": "message", "role": "user", "content": SCRIPT}]
    with running({provider: simulator.url}) as gateway:
        sdk = openai.OpenAI(base_url=f"{gateway.url}/{provider}/v1", api_key="a-key", max_retries=0)

        def ask() -> list[Json]:
            body: Json = {"model": model, "input": items, "tools": [SEARCH], "store": False}
            body |= {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high"}}
            if not streams:
                return [one.to_dict() for one in sdk.responses.create(**body).output]
            events = list(sdk.responses.create(**body, stream=True))
            assert not any("function_call_arguments" in event.type for event in events if not _is_greeting(events))
            return [event.item.to_dict() for event in events if event.type == "response.output_item.done"]

        first = ask()
        search = next(one for one in first if one["type"] == "tool_search_call")
        assert (search["execution"], search["arguments"]) == ("client", {"query": "greet"})
        output = {"type": "tool_search_output", "call_id": search["call_id"], "execution": "client"}
        items += [*first, output | {"status": "completed", "tools": [FOUND]}]
        second = ask()
        call = next(one for one in second if one["type"] == "function_call")
        assert (call["name"], call["namespace"]) == ("greet", "mcp__hi")
        items += [*second, {"type": "function_call_output", "call_id": call["call_id"], "output": "Hello!"}]
        last = ask()
    assert last[-1]["content"][0]["text"] == "Hello to you."
    assert simulator.refusals() == []
    assert simulator.verdicts()[-1] == ["whole", "whole"]


def _is_greeting(events: list[Any]) -> bool:
    return any(getattr(getattr(event, "item", None), "name", "") == "greet" for event in events)
