"""Gemini's Interactions API: restored if the request has the conversation, reported if it stays at Google."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from tests.sim.served_simulators import served

PATH = "/gemini/v1beta/interactions"
MODEL = "gemini-3-pro-preview"
TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
OPENING = "script:\nthink: Look.\ncall: look {}\n---\nthink: Done.\nsay: Seen.\n"
KEY = {"x-goog-api-key": "key-1"}


def user(words: str) -> dict[str, Any]:
    return {"type": "user_input", "content": [{"type": "text", "text": words}]}


def result(call: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_result", "call_id": call["id"], "name": call["name"], "result": "a cat"}


@pytest.mark.parametrize("is_streaming", [False, True])
def test_a_lost_thought_goes_back_before_its_call(is_streaming: bool) -> None:
    """The simulator refuses the client's request, and accepts it through the gateway."""
    simulator = served("gemini")
    with running({"gemini": simulator.url}) as gateway:
        opening = [user(f"{is_streaming} {OPENING}")]
        asked = {"model": MODEL, "store": False, "tools": TOOLS, "input": opening}
        first = HTTP.post(gateway.url + PATH, json={**asked, "stream": is_streaming}, headers=KEY)
        call = call_in(first.content, is_streaming)
        lost = {**asked, "input": [*opening, call, result(call)]}
        direct = HTTP.post(simulator.url + PATH.removeprefix("/gemini"), json=lost, headers=KEY)
        second = HTTP.post(gateway.url + PATH, json=lost, headers=KEY)
    assert (direct.status_code, second.status_code) == (400, 200), second.text
    assert second.headers["x-thoughtline-replay"].startswith("restored=1")
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]


def call_in(answer: bytes, is_streaming: bool) -> dict[str, Any]:
    """The call of an answer, as a client keeps it."""
    if not is_streaming:
        return next(step for step in json.loads(answer)["steps"] if step["type"] == "function_call")
    payloads = [line.removeprefix("data: ") for line in answer.decode().splitlines() if line.startswith("data: {")]
    starts = [json.loads(payload) for payload in payloads]
    return next(one["step"] for one in starts if one.get("step", {}).get("type") == "function_call")


def test_a_conversation_at_google_is_left_there_and_reported() -> None:
    """`previous_interaction_id`: sent unchanged; the finding says why nothing is restored, and the turn is stored."""
    simulator = served("gemini")
    with running({"gemini": simulator.url}) as gateway, gateway.listening() as next_line:
        asked = {"model": MODEL, "tools": TOOLS, "input": [user(OPENING)]}
        first = HTTP.post(gateway.url + PATH, json=asked, headers=KEY).json()
        next_line()
        call = next(step for step in first["steps"] if step["type"] == "function_call")
        named = {**asked, "previous_interaction_id": first["id"], "input": [result(call)]}
        second = HTTP.post(gateway.url + PATH, json=named, headers=KEY)
        line = next_line()
    assert second.status_code == 200
    assert second.headers["x-thoughtline-findings"] == "held-state=1"
    assert line.findings == (("held-state", "/previous_interaction_id"),)
    assert line.captured == 1


def test_what_a_client_keeps_goes_up_as_it_came() -> None:
    """Byte for byte, with unknown members and steps."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"id":"v1_a","status":"completed","steps":[]}')

    body = b'{ "input" :[ {"type":"dream","x":1.50} , {"type":"thought","signature":"RQ=="}],"model":"gemini-3-pro" }\n'
    with upstream(answer) as up, running({"gemini": up.url}) as gateway:
        HTTP.post(gateway.url + PATH, content=body)
    assert up.got[0].body == body
    assert up.got[0].target == "/v1beta/interactions"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1_a"), ("DELETE", "/v1_a"), ("POST", "/v1_a/cancel"), ("GET", "/v1_a?stream=true")]
)
def test_other_calls_pass_through(method: str, path: str) -> None:
    """State at Google is requested there."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"id":"v1_a"}')

    with upstream(answer) as up, running({"gemini": up.url}) as gateway:
        response = HTTP.request(method, f"{gateway.url}{PATH}{path}")
    assert response.json() == {"id": "v1_a"}
    assert (up.got[0].method, up.got[0].target) == (method, f"/v1beta/interactions{path}")


def test_no_other_provider_is_asked() -> None:
    """Interactions are not translated: the error says so, in Google's format, before any provider is asked."""
    with running({"deepseek": served("deepseek").url}) as gateway:
        asked = {"model": "deepseek-v4-pro", "input": "Hello."}
        response = HTTP.post(f"{gateway.url}/deepseek/v1beta/interactions", json=asked, headers=KEY)
    assert response.status_code == 400
    assert "gemini_interactions is not translated to" in response.json()["error"]["message"]
    assert response.json()["error"]["status"] == "INVALID_ARGUMENT"
