"""The settings that OpenAI and Azure reject, with their own messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.rules.test_asking import HI, answer_to

Json = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
NO_MINIMAL = (
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'none', "
    "'low', 'medium', 'high', and 'xhigh'."
)


def error_of(path: str, body: Json, simulator: str = "openai", profile: str = "") -> Json:
    """The error of a refusal; empty for an answer."""
    status, answer = answer_to(simulator, path, body, profile)
    error: Json = {} if status == 200 else json.loads(answer)["error"]
    return error


def chat(model: str, **members: Any) -> Json:
    return error_of(CHAT, {"model": model, "messages": HI, **members})


def responses(model: str, **members: Any) -> Json:
    return error_of(RESPONSES, {"model": model, "input": "hi", **members})


def to_responses(model: str, instead: str) -> str:
    return f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. {instead}"


@pytest.mark.parametrize(
    ("model", "effort", "is_taken", "instead"),
    [
        ("gpt-5.1", "low", True, ""),
        ("gpt-5.4", None, True, ""),
        ("gpt-5.4", "none", True, ""),
        ("gpt-5.4", "low", False, "Please use /v1/responses instead."),
        ("gpt-5.5", "high", False, "Please use /v1/responses instead."),
        *(
            (model, effort, False, "To use function tools, use /v1/responses or set reasoning_effort to 'none'.")
            for model in ("gpt-5.6", "gpt-5.6-sol", "gpt-6-sol", "gpt-6-luna")
            for effort in (None, "low")
        ),
        ("gpt-6-sol", "none", True, ""),
        ("gpt-6-astra", None, False, "Please use /v1/responses instead."),
        ("gpt-6.1-sol", "low", False, "Please use /v1/responses instead."),
        ("gpt-6.2", None, False, "Please use /v1/responses instead."),
        ("gpt-7-nova", None, False, "Please use /v1/responses instead."),
    ],
)
@pytest.mark.parametrize("simulator", ["openai", "azure"])
def test_tools_on_chat(simulator: str, model: str, effort: str | None, is_taken: bool, instead: str) -> None:
    """From 5.4 on not together with an effort, from 5.6 on only with `none`, on the newest not at all."""
    body = {"model": model, "messages": HI, "tools": TOOLS}
    error = error_of(CHAT, body if effort is None else {**body, "reasoning_effort": effort}, simulator)
    assert error.get("message", "") == ("" if is_taken else to_responses(model, instead))


@pytest.mark.parametrize(
    ("model", "effort", "sentence"),
    [
        ("gpt-5.6", "minimal", NO_MINIMAL),
        (
            "gpt-6-luna",
            "max",
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: "
            "'none', 'low', 'medium', 'high', and 'xhigh'.",
        ),
        (
            "gpt-6-astra",
            "max",
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: "
            "'low', 'medium', 'high', and 'xhigh'.",
        ),
        (
            "gpt-5.1",
            None,
            "Unsupported value: 'reasoning_effort' does not support null with this model. Supported values are: "
            "'none', 'low', 'medium', and 'high'.",
        ),
        ("gpt-4o", "low", "Unrecognized request argument supplied: reasoning_effort"),
        ("gpt-5", "minimal", ""),
    ],
)
def test_efforts_on_chat(model: str, effort: str | None, sentence: str) -> None:
    """Each model's own list; null is no effort."""
    assert chat(model, reasoning_effort=effort).get("message", "") == sentence


@pytest.mark.parametrize(
    ("model", "effort", "is_taken"),
    [
        ("gpt-5", "minimal", True),
        ("gpt-5.4", "minimal", False),
        ("gpt-5.6-terra", "max", True),
        ("gpt-6-sol", "none", True),
        ("gpt-6-astra", "none", False),
        ("gpt-6.1-sol", "none", False),
        ("gpt-6.1-terra", "none", True),
        ("gpt-8", "none", False),
        ("gpt-8", "max", True),
    ],
)
def test_efforts_on_responses(model: str, effort: str, is_taken: bool) -> None:
    """Each model's own list, which the refusal names."""
    error = responses(model, reasoning={"effort": effort})
    assert (error == {}) is is_taken
    if not is_taken and effort == "none":
        assert error == {
            "message": f"Unsupported value: 'none' is not supported with the '{model}' model. Supported values are: "
            "'low', 'medium', 'high', 'xhigh', and 'max'.",
            "type": "invalid_request_error",
            "param": "reasoning.effort",
            "code": "unsupported_value",
        }


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            responses("gpt-4o", reasoning={"effort": "low"}),
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        ),
        (
            responses("gpt-6-astra", temperature=0.2),
            "Unsupported parameter: 'temperature' is not supported with this model.",
        ),
        (
            responses("gpt-5.1", reasoning_effort="low"),
            "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
            "'reasoning.effort'.",
        ),
        (
            chat("gpt-5.6", temperature=0.5),
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is "
            "supported.",
        ),
        (chat("gpt-5.6", temperature=1), ""),
        (chat("gpt-6-astra", stop=["x"]), "Unsupported parameter: 'stop' is not supported with this model."),
        (
            chat("gpt-6-astra", max_tokens=5),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
        ),
        (
            chat("gpt-5.3-codex"),
            "This model is only supported in v1/responses and not in v1/chat/completions.",
        ),
        (responses("gpt-5.3-codex", reasoning={"effort": "xhigh"}), ""),
        (chat("my-deployment", temperature=0.5, reasoning_effort="low", tools=TOOLS), ""),
    ],
)
def test_parameters(error: Json, sentence: str) -> None:
    """Sampling, old limits, parameters of the other API. A deployment's own name is not judged."""
    assert error.get("message", "") == sentence


def test_an_organisation_that_is_not_verified() -> None:
    """It gets no summaries."""
    body = {"model": "gpt-5.1", "input": "hi", "reasoning": {"summary": "auto"}}
    assert error_of(RESPONSES, body, profile="unverified")["message"] == (
        "Your organization must be verified to generate reasoning summaries. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on Verify Organization."
    )
    assert error_of(RESPONSES, body) == {}


def test_the_backend_of_codex() -> None:
    """A subscription's backend stores nothing."""
    path = "/backend-api/codex/responses"
    status, answer = answer_to("openai", path, {"model": "gpt-6.1-sol", "input": "hi"})
    assert (status, answer) == (400, '{"detail":"Store must be set to false"}')
    assert answer_to("openai", path, {"model": "gpt-6.1-sol", "input": "hi", "store": False})[0] == 200
