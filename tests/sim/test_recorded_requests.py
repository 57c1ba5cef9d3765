"""Real clients' requests, as recorded, against the simulator of their provider.

Where the provider took a request, the simulator takes it; where the provider refused it for its reasoning, the
simulator refuses it in the same words.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from tests import recordings
from tests.recordings import Exchange, Recording
from tests.sim.reminted_requests import Reminter
from thoughtline_sim.simulation import HttpResponse, Simulation, account_of
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

SIMULATOR_OF: dict[tuple[str, str], str] = {
    ("anthropic", "anthropic"): "anthropic",
    ("bedrock", "bedrock"): "bedrock",
    ("gemini", "google"): "gemini",
    ("gemini", "vertex"): "gemini",
    ("groq", "groq"): "groq",
    ("mistral", "mistral"): "mistral",
    ("ollama", "ollama"): "ollama",
    ("openai-chat", "alibaba"): "qwen",
    ("openai-chat", "cerebras"): "cerebras",
    ("openai-chat", "deepseek"): "deepseek",
    ("openai-chat", "google"): "gemini",
    ("openai-chat", "ollama"): "ollama",
    ("openai-chat", "openai"): "openai",
    ("openai-chat", "zai"): "glm",
    ("openai-responses", "azure"): "azure",
    ("openai-responses", "copilot"): "copilot",
    ("openai-responses", "deepseek"): "deepseek",
    ("openai-responses", "openai"): "openai",
    ("openai-responses", "xai"): "xai",
    ("openrouter", "openrouter"): "openrouter",
    ("xai", "xai"): "xai",
}
CONTRADICTS = {"openai-chat--deepseek--rig--prompt-caching-streaming-probe-90a3d": "toolcalls"}
"""Recordings that contradict the default profile, and the profile they agree with: here a plain turn came back without
its reasoning together with `tools`, and was accepted (a known contradiction).
"""
HEADERS = {"authorization": "Bearer recorded"}


def simulator_for(exchange: Exchange, model: str) -> tuple[str, str | None] | None:
    name = SIMULATOR_OF.get((exchange.family, exchange.recorded["provider"]))
    is_other_api = exchange.recorded["path"].endswith("/compact")  # compaction is an API of its own
    if name is None or exchange.recorded.get("request") is None or is_other_api:
        return None
    if name == "gemini" and "2.5" in model:
        return "gemini-2.5", None
    if name in ("anthropic", "bedrock"):
        return name, None
    return name, None


def model_of(exchange: Exchange) -> str:
    model = (exchange.recorded.get("request") or {}).get("model")
    if isinstance(model, str):
        return model
    path = unquote(exchange.recorded["path"])
    return (
        path.partition("/models/" if "/models/" in path else "/model/")[2]
        .partition(":stream")[0]
        .split("/")[0]
        .split(":gen")[0]
    )


def request_of(exchange: Exchange, body: dict[str, Any]) -> HttpRequest:
    split = urlsplit(exchange.recorded["path"])
    headers = {
        **HEADERS,
        **{name.lower(): value for name, value in (exchange.recorded.get("request_headers") or {}).items()},
    }
    return HttpRequest("POST", unquote(split.path), dict(parse_qsl(split.query)), headers, json.dumps(body).encode())


def replay(recording: Recording) -> list[tuple[Exchange, HttpResponse]]:
    """Every request of a conversation, in its order, each conversation with simulators of its own."""
    simulations: dict[tuple[str, str | None], Reminter] = {}
    answers = []
    for exchange in recording.exchanges:
        model = model_of(exchange)
        row = simulator_for(exchange, model)
        if row is None:
            continue
        row = (row[0], CONTRADICTS.get(recording.id, row[1]))
        if row not in simulations:
            simulator = SIMULATORS[row[0]]
            simulation = Simulation(simulator, row[1] or simulator.profiles[0], 3, lambda: 0.0)
            simulations[row] = Reminter(simulation, account_of(HttpRequest("POST", "", {}, HEADERS, b"")))
        reminter = simulations[row]
        body = reminter.reminted(exchange.recorded["request"], exchange.family, model)
        answers.append((exchange, reminter.simulation.respond(request_of(exchange, body))))
        reminter.learn(exchange)
    return answers


REPLAYED = [
    recording
    for recording in recordings.SUPPORTED
    if any(simulator_for(exchange, model_of(exchange)) for exchange in recording.exchanges)
]


def is_about_reasoning(recording: Recording, number: int) -> bool:
    errors = recording.file.get("errors") or []
    return any(error["exchange"] == number and error["reasoning_related"] for error in errors)


def sentence_of(body: dict[str, Any]) -> str:
    """xAI's error is a string."""
    error = body["error"]
    return str(error["message"] if isinstance(error, dict) else error)


@recordings.needs_recordings
@pytest.mark.parametrize("recording", REPLAYED, ids=recordings.name_of)
def test_recorded_requests(recording: Recording) -> None:
    """Taken where it was taken, refused in the same words where it was refused for its reasoning."""
    numbers = {id(exchange.recorded): number for number, exchange in enumerate(recording.exchanges)}
    for exchange, response in replay(recording):
        text = response.frames[0].decode("utf-8", "replace")
        if exchange.recorded["status"] < 400:
            assert response.status == 200, text
        elif is_about_reasoning(recording, numbers[id(exchange.recorded)]):
            assert response.status == exchange.recorded["status"]
            assert sentence_of(json.loads(text)) == sentence_of(exchange.recorded["response"])
