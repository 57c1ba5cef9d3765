"""Vertex: Claude and Gemini under its addresses, each in its maker's format."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, moved, running
from tests.sim.faces import HTTP, TOOLS, WIRES
from thoughtline.settings import Settings

PLACE = "/v1/projects/a-project/locations/us-east5"
CLAUDE, GEMINI = "claude-sonnet-4-5@20250929", "gemini-3-pro-preview"
KEY = {"authorization": "Bearer ya29.a-token"}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8000}
Body = dict[str, Any]


def gateway_for(upstream: Upstream, place: str = "") -> Any:
    provider = replace(moved("vertex", upstream.url), base_url=upstream.url + place)
    return running({}, Settings(providers={"vertex": provider}))


def post(gateway: Running, path: str, body: Body) -> Any:
    return HTTP.post(gateway.url + path, json=body, headers=KEY)


def claude_body(*history: Body, **more: Any) -> Body:
    said = {"role": "user", "content": "weather?"}
    tools = WIRES["anthropic_messages"].tools(TOOLS)
    return {"messages": [said, *history], "tools": tools, **THINKS, **more}


def stripped(answer: Body) -> list[Body]:
    """The history of a client that keeps only visible parts."""
    wire = WIRES["anthropic_messages"]
    shown = [block for block in answer["content"] if block["type"] != "thinking"]
    return [{"role": "assistant", "content": shown}, *wire.results(wire.calls(answer))]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_claude_gets_its_thinking_back(version: str) -> None:
    """The address is sent unchanged, with its project and location; so is the body, except for restored reasoning."""
    upstream = start("vertex")
    base = f"/vertex/{version}/projects/a-project/locations/us-east5/publishers/anthropic/models/{CLAUDE}"
    with gateway_for(upstream) as gateway:
        own = {"anthropic_version": "vertex-2023-10-16"}
        first = post(gateway, f"{base}:rawPredict", claude_body(**own))
        assert first.status_code == 200, first.text
        history = stripped(first.json())
        again = post(gateway, f"{base}:streamRawPredict", claude_body(*history, **own, stream=True))
        assert again.status_code == 200, again.text
        assert again.headers["x-thoughtline-replay"].startswith("restored=1")
        counted = post(
            gateway,
            base.replace(CLAUDE, "count-tokens") + ":rawPredict",
            claude_body(*history, **own, model=CLAUDE),
        )
        assert counted.json().keys() == {"input_tokens"}
    assert upstream.verdicts() == [[], ["whole"], ["whole"]]
    paths = [seen.path for seen in upstream.watched.seen]
    assert paths[0] == f"{base}:rawPredict".removeprefix("/vertex")
    assert paths[1] == f"{base}:streamRawPredict".removeprefix("/vertex")


def test_gemini_gets_its_signatures_back() -> None:
    upstream, wire = start("vertex"), WIRES["gemini_generate"]
    path = f"/vertex{PLACE}/publishers/google/models/{GEMINI}"
    with gateway_for(upstream) as gateway:
        body: Body = {"contents": [wire.say("weather?")], "tools": wire.tools(TOOLS)}
        first = post(gateway, f"{path}:generateContent", body)
        assert first.status_code == 200, first.text
        content = first.json()["candidates"][0]["content"]
        parts = [{"functionCall": part["functionCall"]} for part in content["parts"] if "functionCall" in part]
        body["contents"] += [{**content, "parts": parts}, *wire.results(wire.calls(first.json()))]
        again = post(gateway, f"{path}:streamGenerateContent?alt=sse", body)
        assert again.status_code == 200, again.text
        assert again.headers["x-thoughtline-replay"].startswith("restored=1")
        assert post(gateway, f"{path}:countTokens", body).json().keys() == {"totalTokens"}


@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_client_of_another_api_asks_a_model_in_its_makers_format(model: str, path: str) -> None:
    """In the project that settings name: Claude's body then has a version and no model."""
    upstream = start("vertex")
    with gateway_for(upstream, PLACE) as gateway:
        body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
        answer = post(gateway, f"/vertex{path}", body)
        assert answer.status_code == 200, answer.text
        if path == "/v1/messages":
            streamed = post(gateway, f"/vertex{path}", {**body, "stream": True})
            assert streamed.status_code == 200, streamed.text
    publisher, method = ("anthropic", "rawPredict") if model == CLAUDE else ("google", "generateContent")
    assert upstream.watched.seen[0].path == f"{PLACE}/publishers/{publisher}/models/{model}:{method}"


def test_what_one_surface_sealed_is_not_sent_to_the_other() -> None:
    """Whether Vertex accepts a signature of the Gemini API is documented nowhere."""
    home, vertex, wire = start("gemini"), start("vertex"), WIRES["gemini_generate"]
    providers = {"gemini": moved("gemini", home.url), "vertex": moved("vertex", vertex.url)}
    with running({}, Settings(providers=providers)) as gateway:
        body: Body = {"contents": [wire.say("weather?")], "tools": wire.tools(TOOLS)}
        first = post(gateway, f"/gemini/v1beta/models/{GEMINI}:generateContent", body).json()
        content = first["candidates"][0]["content"]
        parts = [{"functionCall": part["functionCall"]} for part in content["parts"] if "functionCall" in part]
        body["contents"] += [{**content, "parts": parts}, *wire.results(wire.calls(first))]
        path = f"/publishers/google/models/{GEMINI}:generateContent"
        answer = post(gateway, f"/vertex{PLACE}{path}", body)
        assert answer.headers["x-thoughtline-replay"].startswith("restored=0")


def test_what_other_publishers_serve_passes_unread() -> None:
    """Their formats, and Vertex's OpenAI endpoint, are sent unchanged."""
    upstream = start("vertex")
    paths = (f"{PLACE}/publishers/mistralai/models/m:rawPredict", f"{PLACE}/endpoints/openapi/chat/completions")
    with gateway_for(upstream) as gateway:
        for path in paths:
            answer = post(gateway, f"/vertex{path}", {"model": "m", "messages": []})
            assert "unread=1" in answer.headers["x-thoughtline-replay"]
    assert [seen.path for seen in upstream.watched.seen] == list(paths)


def test_a_path_does_not_choose_the_host() -> None:
    with running({}) as gateway:
        for location in ("evil.example", "us@evil", "%2e%2e", "a%2Fb"):
            path = f"/vertex/v1/projects/p/locations/{location}/publishers/anthropic/models/{CLAUDE}:rawPredict"
            answer = post(gateway, path, claude_body())
            assert answer.status_code == 400, (location, answer.text)
