"""Local servers: which reasoning a template reads, its switches, and what it raises."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline_sim.simulation import HttpResponse, Simulation
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

Json = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OLD, NEW = "an old thought", "a new thought"
HISTORY: list[Json] = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "Hello.", "reasoning_content": OLD},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "", "reasoning_content": NEW, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]


def respond(simulator: str, path: str, body: Json | None, profile: str = "") -> tuple[int, Any]:
    row = SIMULATORS[simulator]
    simulation = Simulation(row, profile or row.profiles[0], 7, lambda: 0.0)
    method, data = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
    response: HttpResponse = simulation.respond(HttpRequest(method, path, {}, {}, data))
    return response.status, json.loads(response.frames[0])


def rendered(profile: str, **members: Any) -> tuple[bool, bool]:
    """Whether llama.cpp's prompt has the old thought, and the new one."""
    _, body = respond("llamacpp", "/apply-template", {"messages": HISTORY, **members}, profile)
    return OLD in body["prompt"], NEW in body["prompt"]


@pytest.mark.parametrize(
    ("profile", "kwargs", "shown"),
    [
        ("qwen3", {}, (False, True)),
        ("qwen3", {"preserve_thinking": True}, (False, True)),
        ("qwen3.7", {}, (False, True)),
        ("qwen3.7", {"preserve_thinking": True}, (True, True)),
        ("qwen3.8", {}, (True, True)),
        ("qwen3.8", {"preserve_thinking": False}, (False, True)),
        ("glm-4.7", {}, (False, True)),
        ("glm-4.7", {"clear_thinking": False}, (True, True)),
        ("nemotron-3", {"truncate_history_thinking": False}, (True, True)),
        ("deepseek-v4", {}, (True, True)),
        ("gemma-4", {}, (False, True)),
        ("kimi-k3", {}, (True, True)),
        ("hy3", {"preserved_thinking": True}, (True, True)),
        ("gpt-oss", {}, (False, True)),
        *((name, {"preserve_reasoning": True}, (True, True)) for name in ("qwen3.7", "glm-4.7", "nemotron-3", "hy3")),
        ("gemma-4", {"preserve_reasoning": True}, (False, True)),
    ],
)
def test_what_a_template_reads(profile: str, kwargs: Json, shown: tuple[bool, bool]) -> None:
    """By template and switch."""
    assert rendered(profile, chat_template_kwargs=kwargs) == shown


def test_deepseeks_template_without_tools() -> None:
    """It drops old reasoning by default, unless there are tools or calls."""
    plain = [*HISTORY[:3]]
    assert rendered("deepseek-v4", messages=plain) == (False, False)
    assert rendered("deepseek-v4", messages=plain, tools=[{"type": "function"}]) == (True, False)
    assert rendered("deepseek-v4", messages=plain, chat_template_kwargs={"drop_thinking": False}) == (True, False)


@pytest.mark.parametrize(
    ("profile", "switch", "can_preserve"),
    [
        ("qwen3.7", "preserve_thinking", True),
        ("glm-4.7", "clear_thinking", True),
        ("nemotron-3", "truncate_history_thinking", True),
        ("deepseek-v4", "drop_thinking", True),
        ("gemma-4", "last_query_index", False),
    ],
)
def test_props(profile: str, switch: str, can_preserve: bool) -> None:
    """llama.cpp shows the template, and says whether it can keep reasoning."""
    status, props = respond("llamacpp", "/props", None, profile)
    assert status == 200
    assert switch in props["chat_template"]
    assert props["chat_template_caps"]["supports_preserve_reasoning"] is can_preserve


EFFORT = "Unexpected reasoning effort {0}. Supported types are xhigh (default), medium, and low."
BOTH = (
    "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in one or "
    "the other, but not both."
)
TALKING = [HISTORY[0], {**HISTORY[3], "content": "I look."}, HISTORY[4]]


@pytest.mark.parametrize(
    ("model", "profile", "members", "sentence"),
    [
        ("Qwen/Qwen3.8-35B", "qwen3.8", {"reasoning_effort": "high"}, EFFORT.format("high")),
        ("Qwen/Qwen3.8-35B", "qwen3.8", {"chat_template_kwargs": {"reasoning_effort": "max"}}, EFFORT.format("max")),
        (
            "tencent/Hy3",
            "hy3",
            {"reasoning_effort": "medium"},
            "reasoning_effort error : medium, should be no_think/low/high",
        ),
        ("openai/gpt-oss-120b", "gpt-oss", {"messages": TALKING}, BOTH),
    ],
)
def test_templates_raise_as_a_500(model: str, profile: str, members: Json, sentence: str) -> None:
    """The template's sentence, in each server's envelope."""
    body = {"model": model, "messages": HISTORY, **members}
    assert respond("vllm", "/v1/chat/completions", body) == (
        500,
        {"error": {"message": sentence, "type": "InternalServerError", "param": None, "code": 500}},
    )
    for path in ("/v1/chat/completions", "/apply-template"):
        assert respond("llamacpp", path, body, profile) == (
            500,
            {"error": {"code": 500, "message": f"Jinja Exception: {sentence}", "type": "server_error"}},
        )


def test_thinking_that_cant_be_switched_off() -> None:
    """The template of the largest Qwen3.8."""
    body = {
        "model": "Qwen/Qwen3.8-2.4T",
        "messages": HISTORY,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    status, answer = respond("vllm", "/v1/chat/completions", body)
    assert (status, answer["error"]["message"]) == (500, "Disabling thinking is not supported.")
    assert respond("vllm", "/v1/chat/completions", {**body, "model": "Qwen/Qwen3.8-35B"})[0] == 200


@pytest.mark.parametrize(("simulator", "path"), [("vllm", "/v1/chat/completions"), ("vllm", "/tokenize")])
def test_what_is_not_read_is_not_counted(simulator: str, path: str) -> None:
    """With the switch, the same request has more tokens."""
    body = {
        "model": "Qwen/Qwen3.7-35B",
        "messages": [HISTORY[0], {**HISTORY[1], "reasoning_content": OLD * 20}, HISTORY[2]],
    }
    counts = []
    for preserves in (False, True):
        _, answer = respond(simulator, path, {**body, "chat_template_kwargs": {"preserve_thinking": preserves}})
        counts.append(answer["count"] if path == "/tokenize" else answer["usage"]["prompt_tokens"])
    assert counts[1] > counts[0] + 50


def test_ollama_shows_what_a_model_can_do() -> None:
    """Its capabilities, and a template of its own kind."""
    _, thinks = respond("ollama", "/api/show", {"model": "qwen3:14b"})
    _, plain = respond("ollama", "/api/show", {"model": "llama3.2"})
    assert "thinking" in thinks["capabilities"]
    assert ".Thinking" in thinks["template"]
    assert "thinking" not in plain["capabilities"]


def test_levels_on_an_older_ollama() -> None:
    """Before 0.17.7 a level was gpt-oss's alone."""
    body = {"model": "qwen3:14b", "messages": HISTORY[:1], "think": "high", "stream": False}
    assert respond("ollama", "/api/chat", body, "0.17") == (
        400,
        {"error": 'think value "high" is not supported for this model'},
    )
    assert respond("ollama", "/api/chat", body)[0] == 200
