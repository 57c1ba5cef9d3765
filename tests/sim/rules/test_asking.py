"""The options of a request: tools and sampling that a provider rejects, results sent twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline_sim.simulation import Simulation
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def answer_to(
    simulator: str, path: str, body: Json, profile: str = "", *, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    row = SIMULATORS[simulator]
    simulation = Simulation(row, profile or row.profiles[0], 7, lambda: 0.0)
    all_headers = {"authorization": "Bearer k", **(headers or {})}
    response = simulation.respond(HttpRequest("POST", path, {}, all_headers, json.dumps(body).encode()))
    return response.status, b"".join(response.frames).decode()


@pytest.mark.parametrize(
    ("model", "members", "sentence"),
    [
        (
            "claude-sonnet-4-5",
            {"temperature": 1, "top_p": 0.9},
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        ),
        ("claude-opus-4-8", {"temperature": 0.5}, "`temperature` is deprecated for this model."),
        ("claude-opus-4-8", {"temperature": 1}, ""),
        ("claude-3-7-sonnet-20250219", {"temperature": 1, "top_p": 0.9}, ""),
        (
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 3},
            "`top_k` must be unset when thinking is enabled or in adaptive mode.",
        ),
        (
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5},
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        ),
        (
            "claude-sonnet-4-5",
            {"tools": [{"type": "namespace", "name": "n"}]},
            "Input tag 'namespace' found using 'type'",
        ),
        ("claude-sonnet-4-5", {"tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}]}, ""),
    ],
)
def test_anthropic(model: str, members: Json, sentence: str) -> None:
    """Anthropic's own sentences."""
    body = {"model": model, "max_tokens": 2000, "messages": HI, **members}
    status, answer = answer_to("anthropic", "/v1/messages", body)
    assert (status, sentence in json.loads(answer).get("error", {}).get("message", "")) == (
        400 if sentence else 200,
        True,
    )


def test_gemini_rejects_a_search_together_with_functions() -> None:
    """Each generation says it in its own words."""
    tools = [{"functionDeclarations": [{"name": "look"}]}, {"googleSearch": {}}]
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools}
    status, answer = answer_to("gemini-2.5", "/v1beta/models/gemini-2.5-pro:generateContent", body)
    assert (status, "Tool use with function calling is unsupported" in answer) == (400, True)
    status, answer = answer_to("gemini", "/v1beta/models/gemini-3-pro-preview:generateContent", body)
    assert (status, "include_server_side_tool_invocations" in answer) == (400, True)


@pytest.mark.parametrize(
    ("simulator", "model"), [("openai", "gpt-5.1"), ("deepseek", "deepseek-v4-pro"), ("qwen", "q")]
)
def test_a_chat_result_answers_one_call_once(simulator: str, model: str) -> None:
    """A second one, or one without a call, is a 400."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    history = [*HI, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    body = {"model": model, "thinking": {"type": "disabled"}} if simulator == "deepseek" else {"model": model}
    assert answer_to(simulator, "/v1/chat/completions", {**body, "messages": history})[0] == 200
    status, answer = answer_to(simulator, "/v1/chat/completions", {**body, "messages": [*history, result]})
    assert (status, "must be a response to a preceding message" in answer) == (400, True)


def test_converse_requires_tools_with_calls() -> None:
    """And no more results than calls."""
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}
    messages: list[Json] = [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    path = "/model/us.anthropic.claude-sonnet-4-5/converse"
    assert "toolConfig field must be defined" in answer_to("bedrock", path, {"messages": messages})[1]
    config = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
    assert answer_to("bedrock", path, {"messages": messages, "toolConfig": config})[0] == 200
    messages[2]["content"].append(result)
    assert (
        "exceeds the number of toolUse" in answer_to("bedrock", path, {"messages": messages, "toolConfig": config})[1]
    )


def test_xai_knows_no_namespace() -> None:
    """It reads with a closed list of kinds."""
    body = {"model": "grok-4.7", "input": "hi", "tools": [{"type": "namespace", "name": "n", "tools": []}]}
    status, answer = answer_to("xai", "/v1/responses", body)
    assert (status, "unknown variant `namespace`" in answer) == (400, True)
