"""Self-hosted servers are asked what their chat template reads: the switch is sent, and unread reasoning is
reported."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.settings import DebugSettings, Settings

Body = dict[str, Any]
KEEPS_BODIES = Settings(debug=DebugSettings(keep_bodies=True))
SCRIPT = "Look. {mark}\nscript:\nthink: A first thought.\nsay: One.\n---\nthink: A second thought.\nsay: Two.\n"
KEPT = {
    ("llamacpp", "qwen3.7", "qwen3.7"): "preserve_reasoning",
    ("llamacpp", "glm-4.7", "glm-4.7"): "preserve_reasoning",
    ("llamacpp", "nemotron-3", "nemotron"): "preserve_reasoning",
    ("llamacpp", "deepseek-v4", "local"): "preserve_reasoning",
    ("vllm", "default", "Qwen/Qwen3.7-35B"): "preserve_thinking",
    ("vllm", "default", "zai-org/GLM-4.7-Flash"): "clear_thinking",
    ("vllm", "default", "nvidia/Nemotron-3-Nano"): "truncate_history_thinking",
    ("vllm", "default", "tencent/Hy3"): "preserved_thinking",
}
"""Templates with a switch, and the switch that is sent."""
UNREAD = [("llamacpp", "qwen3", "local"), ("llamacpp", "gemma-4", "local"), ("vllm", "default", "Qwen/Qwen3-32B")]
READ = [("llamacpp", "qwen3.8", "local"), ("llamacpp", "kimi-k3", "local"), ("vllm", "default", "Qwen/Qwen3.8-35B")]


def second_turn(gateway: Running, provider: str, model: str, mark: str, **members: Any) -> httpx.Response:
    """The second request of a client that keeps no reasoning."""
    url = f"{gateway.url}/{provider}/v1/chat/completions"
    messages = [{"role": "user", "content": SCRIPT.format(mark=mark)}]
    first = httpx.post(url, json={"model": model, "messages": messages}, timeout=30)
    assert first.status_code == 200, first.text
    kept = {"role": "assistant", "content": first.json()["choices"][0]["message"]["content"]}
    messages += [kept, {"role": "user", "content": "And then?"}]
    response = httpx.post(url, json={"model": model, "messages": messages, **members}, timeout=30)
    assert response.status_code == 200, response.text
    assert "restored=1" in response.headers["x-thoughtline-replay"]
    return response


def unread(simulator: str, profile: str) -> list[str]:
    """The positions where the simulated template left reasoning out of the latest request."""
    return list(served(simulator, profile).app.simulation.log[-1]["unread"])


def kwargs_of(gateway: Running, response: httpx.Response) -> Body:
    """The arguments sent for the template."""
    assert gateway.lines  # the loop has come round: the request is over
    kept = gateway.state.recent.bodies_of(response.headers["x-thoughtline-request"])
    assert kept is not None
    return dict(json.loads(kept.upstream).get("chat_template_kwargs", {}))


@pytest.mark.parametrize("server", KEPT, ids=" ".join)
def test_the_switch_is_sent(server: tuple[str, str, str]) -> None:
    """A template that reads earlier reasoning only on request gets its switch, and the model sees the restored
    reasoning."""
    simulator, profile, model = server
    with running({simulator: served(simulator, profile).url}, KEEPS_BODIES) as gateway:
        response = second_turn(gateway, simulator, model, f"kept {model}")
        assert gateway.lines[-1]["dropped"] == 0
        assert list(kwargs_of(gateway, response)) == [KEPT[server]]
    assert response.headers["x-thoughtline-findings"] == "setting=1"
    assert unread(simulator, profile) == []


@pytest.mark.parametrize("server", UNREAD, ids=" ".join)
def test_unread_reasoning_is_reported(server: tuple[str, str, str]) -> None:
    """A template without a switch omits it: a finding in the header, and a count in the log and the metrics."""
    simulator, profile, model = server
    with running({simulator: served(simulator, profile).url}, KEEPS_BODIES) as gateway:
        response = second_turn(gateway, simulator, model, f"unread {model}")
        line = gateway.lines[-1]
    assert unread(simulator, profile) == ["messages[1]"]
    assert response.headers["x-thoughtline-findings"] == "dropped=1"
    assert line["dropped"] == 1
    assert ["dropped", "/messages/1"] in [list(one) for one in line["findings"]]


@pytest.mark.parametrize("server", READ, ids=" ".join)
def test_nothing_is_reported_where_all_is_read(server: tuple[str, str, str]) -> None:
    """No switch, no finding."""
    simulator, profile, model = server
    with running({simulator: served(simulator, profile).url}, KEEPS_BODIES) as gateway:
        response = second_turn(gateway, simulator, model, f"read {model}")
        assert kwargs_of(gateway, response) == {}
    assert unread(simulator, profile) == []
    assert "x-thoughtline-findings" not in response.headers


def test_a_clients_own_switch_stays() -> None:
    """The client's own value is sent unchanged."""
    with running({"vllm": served("vllm").url}, KEEPS_BODIES) as gateway:
        own = {"preserve_thinking": False}
        response = second_turn(gateway, "vllm", "Qwen/Qwen3.6-27B", "own switch", chat_template_kwargs=own)
        assert kwargs_of(gateway, response) == own


@pytest.mark.parametrize(("model", "dropped"), [("qwen3:8b", 1), ("llama3.2:1b", 0)])
def test_ollama_shows_its_template(model: str, dropped: int) -> None:
    """Its template reads the thinking of the turns since the last user message."""
    with running({"ollama": served("ollama").url}) as gateway:
        url = f"{gateway.url}/ollama/api/chat"
        messages = [{"role": "user", "content": SCRIPT.format(mark=model)}]
        first = httpx.post(url, json={"model": model, "stream": False, "messages": messages}, timeout=30).json()
        messages += [{"role": "assistant", "content": first["message"]["content"]}, {"role": "user", "content": "And?"}]
        httpx.post(url, json={"model": model, "stream": False, "messages": messages}, timeout=30)
        assert gateway.lines[-1]["dropped"] == dropped


ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("failure", ["error", "no JSON", "silence"])
def test_a_server_that_does_not_say(failure: str) -> None:
    """It is asked once, and no request fails or waits long for it."""
    asked: list[str] = []

    async def answer(got: Got, out: Out) -> None:
        asked.append(got.target)
        if got.target.endswith("/chat/completions"):
            await out.whole(200, json.dumps(ANSWER).encode())
        elif failure == "error":
            await out.whole(500, b'{"error":{"message":"no template"}}')
        elif failure == "no JSON":
            await out.whole(200, b"<html>")
        else:
            await out.gone()

    body: Body = {"model": "local", "messages": [{"role": "user", "content": "Hi"}]}
    later = [*body["messages"], {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "And?"}]
    with upstream(answer) as up, running({"llamacpp": up.url}) as gateway:
        for messages in (body["messages"], later, later):
            response = httpx.post(
                f"{gateway.url}/llamacpp/v1/chat/completions", json={**body, "messages": messages}, timeout=30
            )
            assert response.status_code == 200
    assert asked.count("/apply-template") <= 6
    assert asked.count("/v1/chat/completions") == 3


def test_only_servers_of_ones_own_are_asked() -> None:
    """A provider whose row does not say so gets what its clients send, and nothing else."""
    asked: list[str] = []

    async def answer(got: Got, out: Out) -> None:
        asked.append(got.target)
        await out.whole(200, json.dumps(ANSWER).encode())

    with upstream(answer) as up, running({"deepseek": up.url, "lmstudio": up.url}) as gateway:
        for provider in ("deepseek", "lmstudio"):
            body = {"model": "qwen3", "messages": [{"role": "user", "content": "Hi"}]}
            httpx.post(f"{gateway.url}/{provider}/v1/chat/completions", json=body, timeout=30)
    assert [path.rpartition("/")[2] for path in asked] == ["completions"] * 2
