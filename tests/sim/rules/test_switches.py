"""Switches and efforts, provider by provider, in their own sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.rules.test_asking import HI, answer_to

Json = dict[str, Any]
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/anthropic/v1/messages", "/v1/responses"
OFF: Json = {"thinking": {"type": "disabled"}}


def asked(simulator: str, model: str, path: str = CHAT, profile: str = "", **members: Any) -> tuple[int, Json]:
    """The status and body of an answer."""
    conversation = {"input": "hi"} if path == RESPONSES else {"messages": HI, "max_tokens": 500}
    status, answer = answer_to(simulator, path, {"model": model, **conversation, **members}, profile)
    return status, json.loads(answer)


def thoughts_in(body: Json) -> bool:
    return any(word in json.dumps(body) for word in ('"thinking"', "<think>", "reasoning_content", '"reasoning"'))


@pytest.mark.parametrize(
    ("model", "is_taken"),
    [
        *((name, False) for name in ("grok-4", "grok-4-latest", "grok-4-fast", "grok-4-1-fast", "grok-code-fast-1")),
        *((name, False) for name in ("grok-4.20-0309-reasoning", "grok-build")),
        *(
            (name, True)
            for name in ("grok-3-mini", "grok-4.3", "grok-4.5", "grok-4.7", "grok-5", "grok-4.20-multi-agent")
        ),
    ],
)
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_grok_efforts(model: str, is_taken: bool, path: str) -> None:
    """By model, on either API."""
    members = {"reasoning_effort": "low"} if path == CHAT else {"reasoning": {"effort": "low"}}
    status, body = asked("xai", model, path, **members)
    assert (status == 200) is is_taken
    if not is_taken:
        sentence = f"Model {model} does not support parameter reasoningEffort."
        assert body == {"code": "Client specified an invalid argument", "error": sentence}


def test_grok_on_chat_has_no_field() -> None:
    """Grok 3 shows its reasoning there; later models don't, and take no penalties."""
    assert "reasoning_content" in asked("xai", "grok-3-mini")[1]["choices"][0]["message"]
    assert "reasoning_content" not in asked("xai", "grok-4.7")[1]["choices"][0]["message"]
    assert asked("xai", "grok-5", presence_penalty=0.5)[1]["error"] == (
        "Argument not supported on this model: presencePenalty"
    )


def test_grok_4_7_always_gives_ciphertext() -> None:
    """Asked for or not; earlier models give it if asked."""
    for model, is_given in (("grok-4.7", True), ("grok-5", True), ("grok-4.5", False)):
        item = asked("xai", model, RESPONSES, store=True)[1]["output"][0]
        assert ("encrypted_content" in item) is is_given


@pytest.mark.parametrize(
    ("model", "path", "members", "thinks"),
    [
        ("MiniMax-M2", MESSAGES, OFF, True),
        ("MiniMax-M3", CHAT, {}, True),
        ("MiniMax-M3", CHAT, OFF, False),
        ("MiniMax-M3", MESSAGES, {}, False),
        ("MiniMax-M3", MESSAGES, {"thinking": {"type": "adaptive"}}, True),
        ("MiniMax-M3", RESPONSES, {}, False),
        ("MiniMax-M3", RESPONSES, {"reasoning": {"effort": "low"}}, True),
        ("MiniMax-M3.1", MESSAGES, {}, True),
        ("MiniMax-M4", RESPONSES, {}, True),
    ],
)
def test_minimax_thinks(model: str, path: str, members: Json, thinks: bool) -> None:
    """M3 thinks unasked on chat alone; M2 and what comes after M3 always do."""
    status, body = asked("minimax", model, path, **members)
    assert (status, thoughts_in(body)) == (200, thinks)


@pytest.mark.parametrize(("simulator", "model"), [("minimax", "MiniMax-M3.1"), ("glm", "glm-5.3"), ("glm", "glm-6")])
def test_models_that_are_never_off(simulator: str, model: str) -> None:
    """Their sentence is not known."""
    status, body = asked(simulator, model, **OFF)
    assert (status, body["error"]["message"][:19]) == (400, "simulated wording: ")


def test_glm_efforts() -> None:
    """Three words from 5.3 on."""
    assert asked("glm", "glm-5.2", **OFF)[0] == 200
    assert asked("glm", "glm-5.3", reasoning_effort="max")[0] == 200
    assert asked("glm", "glm-5.3", reasoning_effort="medium")[0] == 400


THOUGHT = "I remember the number 4711 and much more. " * 10
EARLIER: list[Json] = [
    *HI,
    {"role": "assistant", "content": "Hello.", "reasoning_content": THOUGHT},
    {"role": "user", "content": "And?"},
]


def prompt_tokens(simulator: str, model: str, path: str = CHAT, profile: str = "", **members: Any) -> int:
    _, body = asked(simulator, model, path, profile, messages=EARLIER, **members)
    return int(body["usage"]["prompt_tokens"])


@pytest.mark.parametrize(
    ("simulator", "model", "path", "members", "is_read"),
    [
        ("glm", "glm-5", CHAT, {}, False),
        ("glm", "glm-5", "/api/coding/paas/v4/chat/completions", {}, True),
        ("glm", "glm-5", CHAT, {"thinking": {"type": "enabled", "clear_thinking": False}}, True),
        ("qwen", "qwen3.7-max", CHAT, {}, False),
        ("qwen", "qwen3.7-max", CHAT, {"preserve_thinking": True}, True),
        ("qwen", "qwen3.8-max", CHAT, {}, True),
        ("qwen", "qwen3.8-flash", CHAT, {}, False),
    ],
)
def test_reasoning_of_earlier_turns(simulator: str, model: str, path: str, members: Json, is_read: bool) -> None:
    """What is not read is not billed, which is all that tells."""
    lost = json.loads(json.dumps(EARLIER))
    del lost[1]["reasoning_content"]
    without = int(asked(simulator, model, path, **{**members, "messages": lost})[1]["usage"]["prompt_tokens"])
    assert (prompt_tokens(simulator, model, path, **members) > without + 50) is is_read


def test_qwen() -> None:
    """Open weights stream their thinking; an effort together with a budget is rejected."""
    status, body = asked("qwen", "qwen3-32b")
    assert (status, body["error"]["message"]) == (
        400,
        "parameter.enable_thinking must be set to false for non-streaming calls",
    )
    assert asked("qwen", "qwen3-32b", enable_thinking=False)[0] == 200
    assert asked("qwen", "qwen3.8-max", reasoning_effort="low", thinking_budget=100)[0] == 400


@pytest.mark.parametrize(
    ("model", "effort", "sentence"),
    [
        ("mistral-small-latest", "high", ""),
        ("mistral-large-latest", "high", "reasoning_effort is not enabled for this model"),
        ("mistral-medium-2508", "none", "reasoning_effort is not enabled for this model"),
        (
            "mistral-small-latest",
            "medium",
            "reasoning_effort='medium' is not supported for this model. Must be one of (<ReasoningEffort.none: "
            "'none'>, <ReasoningEffort.high: 'high'>)",
        ),
    ],
)
def test_mistral(model: str, effort: str, sentence: str) -> None:
    """Its own envelope, flat."""
    status, body = asked("mistral", model, reasoning_effort=effort)
    expected = {
        "object": "error",
        "message": sentence,
        "type": "invalid_request_invalid_args",
        "param": None,
        "code": "3051",
        "raw_status_code": 400,
    }
    assert status == 200 if not sentence else body == expected


@pytest.mark.parametrize(
    ("model", "effort", "sentence"),
    [
        ("llama-3.3-70b-versatile", "low", "`reasoning_effort` is not supported with this model"),
        ("qwen/qwen3-32b", "low", "`reasoning_effort` must be one of `none` or `default`"),
        ("qwen/qwen3-32b", "default", ""),
        ("openai/gpt-oss-120b", "none", "`reasoning_effort` must be one of `low`, `medium`, or `high`"),
    ],
)
def test_groq(model: str, effort: str, sentence: str) -> None:
    """By family."""
    assert asked("groq", model, reasoning_effort=effort)[1].get("error", {}).get("message", "") == sentence


def test_copilot() -> None:
    """Efforts per model, with the name that the API has for them."""
    assert asked("copilot", "gpt-4o-2024-11-20", reasoning_effort="medium")[1]["error"]["message"] == (
        'reasoning_effort "medium" was provided, but model gpt-4o-2024-11-20 does not support reasoning effort'
    )
    effort: Json = {"output_config": {"effort": "high"}}
    assert asked("copilot", "claude-haiku-4.5", "/v1/messages", **effort)[1]["error"]["message"] == (
        'output_config.effort "high" was provided, but model claude-haiku-4.5 does not support reasoning effort'
    )
    assert asked("copilot", "claude-opus-4.7", "/v1/messages", **effort)[1]["error"]["message"] == (
        'output_config.effort "high" is not supported by model claude-opus-4.7; supported values: [medium]'
    )


def test_copilots_models_without_reasoning_items() -> None:
    """A profile: the item is refused by its place."""
    items = [{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}]
    status, body = asked("copilot", "gpt-5.3-codex", RESPONSES, "no-items", input=items)
    assert (status, body["error"]["message"]) == (400, 'input[1].type "reasoning" is not a valid input item type')


def test_meta() -> None:
    """Muse Spark always reasons, forces no tool, and hides its reasoning where it has a place at all."""
    assert asked("meta", "muse-spark", reasoning_effort="none")[0] == 400
    assert asked("meta", "muse-spark", tool_choice="required")[0] == 400
    assert not thoughts_in(asked("meta", "muse-spark")[1]["choices"][0])
    assert asked("meta", "muse-spark", "/v1/messages")[1]["content"][0]["type"] == "redacted_thinking"
    item = asked("meta", "muse-spark", RESPONSES, store=False, include=["reasoning.encrypted_content"])[1]["output"][0]
    assert item["encrypted_content"]


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5.5", "openai/gpt-6-astra"])
def test_openrouters_mandatory_reasoning(model: str) -> None:
    """Models that can't be switched off."""
    for reasoning in ({"enabled": False}, {"effort": "none"}):
        status, body = asked("openrouter", model, reasoning=reasoning)
        assert status == 400
        assert body["error"]["message"] == "Reasoning is mandatory for this endpoint and cannot be disabled."
    assert asked("openrouter", "openai/gpt-5.1", reasoning={"enabled": False})[0] == 200


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ("claude-sonnet-4.5", {"/v1/chat/completions", "/v1/messages"}),
        ("gpt-4o-2024-11-20", {"/v1/chat/completions", RESPONSES}),
        ("gpt-5.3-codex", {RESPONSES}),
        ("gpt-5.6-luna", {RESPONSES}),
        ("gpt-7", {RESPONSES}),
        ("gemini-3-pro", {"/v1/chat/completions"}),
    ],
)
def test_copilots_endpoints(model: str, served: set[str]) -> None:
    """Messages is for Claude, Responses for OpenAI's; the newest have no other."""
    for path in ("/v1/chat/completions", "/v1/messages", RESPONSES):
        members: Json = {"input": [{"role": "user", "content": "x"}]} if path == RESPONSES else {}
        status, body = asked("copilot", model, path, **members)
        assert (status == 200) is (path in served), (path, body)
        if status != 200:
            assert body["error"]["code"] == "unsupported_api_for_model"
