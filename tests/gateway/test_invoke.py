"""InvokeModel through the gateway: healed, and translated from and to other formats."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.clients.upstreams import start
from tests.gateway.gateways import moved, running
from tests.sim.faces import HTTP, TOOLS, WIRES
from thoughtline.formats import FORMATS
from thoughtline.formats.aws_event_stream import CONTENT_TYPE
from thoughtline.settings import Settings
from thoughtline.values.events import fold
from thoughtline.values.items import ReasoningText, Text

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
KEY = {"authorization": "Bearer bedrock-api-key-1"}
BODY: dict[str, Any] = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 8000,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "messages": [{"role": "user", "content": "script:\nthink: Is that all?\nsay: Yes."}],
}


def test_a_refused_signature_is_healed() -> None:
    """Reasoning with another signature is removed, after Bedrock has refused it with Claude's error."""
    upstream, wire = start("bedrock"), WIRES["bedrock_invoke"]
    foreign = {"type": "thinking", "thinking": "Elsewhere.", "signature": "EqQBCkYIBRgCKkBmb3JlaWdu"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}
    history = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": [foreign, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "warm"}]},
    ]
    with running({"bedrock": upstream.url}) as gateway:
        body = {**BODY, "tools": wire.tools(TOOLS), "messages": history}
        answer = HTTP.post(f"{gateway.url}/bedrock/model/{MODEL}/invoke", json=body, headers=KEY)
        assert answer.status_code == 200, answer.text
        assert "healed=1" in answer.headers["x-thoughtline-replay"]
    assert len(upstream.refusals()) == 1


def test_a_chat_client_asks_by_invoke_model() -> None:
    """If settings name no other format: the body has a version, and neither model nor stream."""
    upstream = start("bedrock")
    provider = replace(moved("bedrock", upstream.url), formats=("bedrock_invoke",))
    with running({}, Settings(providers={"bedrock": provider})) as gateway:
        body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "script:\nsay: Yes."}]}
        url = f"{gateway.url}/bedrock/v1/chat/completions"
        whole = HTTP.post(url, json=body, headers=KEY)
        assert whole.json()["choices"][0]["message"]["content"] == "Yes.", whole.text
        streamed = HTTP.post(url, json={**body, "stream": True}, headers=KEY)
        assert b"Yes." in streamed.content
    assert upstream.refusals() == []
    assert [seen.path.rpartition("/")[2] for seen in upstream.watched.seen] == ["invoke", "invoke-with-response-stream"]


@pytest.mark.parametrize("simulator", ["anthropic", "deepseek"])
def test_a_client_of_invoke_model_asks_another_provider(simulator: str) -> None:
    """Claude Code's Bedrock mode gets the answer in Amazon's framing from every provider."""
    upstream = start(simulator)
    model = {"anthropic": "claude-sonnet-4-5", "deepseek": "deepseek-v4-pro"}[simulator]
    with running({simulator: upstream.url}) as gateway:
        url = f"{gateway.url}/{simulator}/model/{model}/invoke-with-response-stream"
        answer = HTTP.post(url, json=BODY, headers=KEY)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == CONTENT_TYPE
    wire = FORMATS["bedrock_invoke"]
    decoder = wire.stream_decoder(wire.dialect)
    reply = fold([*decoder.feed(answer.content), *decoder.finish()], "bedrock_invoke")
    items = reply.candidates[0].turn.items
    assert [item.text for item in items if isinstance(item, ReasoningText)] == ["Is that all?"]
    assert [item.text for item in items if isinstance(item, Text)] == ["Yes."]


def test_an_error_is_amazons() -> None:
    """Ours, and that of a provider with another format."""
    upstream = start("anthropic")
    with running({"anthropic": upstream.url}) as gateway:
        url = f"{gateway.url}/anthropic/model/claude-sonnet-4-5/invoke"
        answer = HTTP.post(url, json={**BODY, "messages": [{"role": "user", "content": 7}]}, headers=KEY)
    assert answer.status_code == 400
    assert answer.json()["__type"] == "ValidationException"
