"""OpenAI's SDK over a WebSocket: a conversation by ids alone, whether its responses are kept or not."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.upstreams import start
from tests.gateway.gateways import running

SCRIPT = """Weather?
script:
think: look
call: weather {"city": "Oslo"}
---
think: seen
say: It is cold.
---
think: x
say: Bye."""
TOOL: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ROWS = [
    ("openai", "gpt-5", None),
    ("kimi", "kimi-k2.6", None),
    ("anthropic", "claude-opus-5-5", "bound"),
    ("gemini", "gemini-3-pro-preview", None),
]


@pytest.mark.parametrize("store", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize(("simulator", "model", "profile"), ROWS, ids=[row[0] for row in ROWS])
def test_a_conversation_by_ids(simulator: str, model: str, profile: str | None, store: bool) -> None:
    """Each frame names the response before it and has only new items; the provider sees all of them, reasoning
    included.
    """
    upstream = start(simulator, profile)
    with running({simulator: upstream.url}) as gateway:
        sdk = openai.OpenAI(base_url=f"{gateway.url}/{simulator}/v1", api_key="a-key", max_retries=0)
        with sdk.responses.connect() as connection:

            def ask(**asked: Any) -> Any:
                connection.response.create(
                    model=model, tools=[TOOL], reasoning={"effort": "high"}, store=store, **asked
                )
                for event in connection:
                    assert event.type not in ("error", "response.failed"), event
                    if event.type == "response.completed":
                        return event.response
                return None

            warm = ask(input=[], generate=False)
            first = ask(input=SCRIPT, previous_response_id=warm.id)
            call = next(item for item in first.output if item.type == "function_call")
            result = {"type": "function_call_output", "call_id": call.call_id, "output": "-5"}
            second = ask(input=[result], previous_response_id=first.id)
            third = ask(input="Thanks.", previous_response_id=second.id)
    assert (second.output_text, third.output_text) == ("It is cold.", "Bye.")
    assert upstream.refusals() == []
    assert upstream.verdicts() == [[], ["whole"], ["whole", "whole"]]
