"""Names and schemas of tools that OpenAI, Claude and Gemini refuse, each in its own sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.rules.test_asking import HI, answer_to

Json = dict[str, Any]
EMPTY: Json = {"type": "object", "properties": {}}


def of(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def error_of(simulator: str, path: str, body: Json) -> Json:
    status, answer = answer_to(simulator, path, body)
    error: Json = {} if status == 200 else json.loads(answer)["error"]
    return error


def chat(name: str, schema: Json | None, **members: Any) -> Json:
    function = {"name": name, **members, **({} if schema is None else {"parameters": schema})}
    body = {"model": "gpt-5", "messages": HI, "tools": [{"type": "function", "function": function}]}
    return error_of("openai", "/v1/chat/completions", body)


PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
LONG = "string too long. Expected a string with maximum length 64, but got a string with length 65 instead."


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (chat("look", EMPTY), ""),
        (chat("look", None), ""),
        (chat("a.b", EMPTY), f"Invalid 'tools[0].function.name': {PATTERN}"),
        (chat("a:b", EMPTY), f"Invalid 'tools[0].function.name': {PATTERN}"),
        (chat("x" * 65, EMPTY), f"Invalid 'tools[0].function.name': {LONG}"),
        (
            chat("look", {"type": "object"}),
            "Invalid schema for function 'look': In context=(), object schema missing properties.",
        ),
        (chat("look", of(where={"type": "object"})), ""),
        (
            chat(
                "look",
                {**of(where={"type": "object"}), "required": ["where"], "additionalProperties": False},
                strict=True,
            ),
            "Invalid schema for function 'look': In context=('properties', 'where'), object schema missing properties.",
        ),
        (
            chat("look", of(all={"type": "array"})),
            "Invalid schema for function 'look': In context=('properties', 'all'), array schema missing items.",
        ),
        (
            chat("look", {}),
            "Invalid schema for function 'look': schema must be a JSON Schema of 'type: \"object\"', got 'type: "
            '"None"\'.',
        ),
        (
            chat(
                "look",
                {**of(url={"type": "string", "format": "uri"}), "required": ["url"], "additionalProperties": False},
                strict=True,
            ),
            "Invalid schema for function 'look': In context=('properties', 'url'), 'uri' is not a valid format.",
        ),
        (chat("look", of(url={"type": "string", "format": "uri"})), ""),
        (
            chat("look", EMPTY, strict=True),
            "Invalid schema for function 'look': In context=(), 'additionalProperties' is required to be supplied and "
            "to be false.",
        ),
    ],
)
def test_openai_chat(error: Json, sentence: str) -> None:
    """Names, objects without properties, and formats of strict schemas."""
    assert error.get("message", "") == sentence


@pytest.mark.parametrize("simulator", ["openai", "azure"])
def test_openai_responses(simulator: str) -> None:
    """The same, by the place that the other API has."""
    body = {"model": "gpt-5", "input": "hi", "tools": [{"type": "function", "name": "a.b", "parameters": EMPTY}]}
    assert error_of(simulator, "/v1/responses", body) == {
        "message": f"Invalid 'tools[0].name': {PATTERN}",
        "type": "invalid_request_error",
        "param": "tools[0].name",
        "code": "invalid_value",
    }


@pytest.mark.parametrize(
    ("tool", "sentence"),
    [
        ({"name": "x" * 128, "input_schema": EMPTY}, ""),
        ({"name": "look", "input_schema": {"type": "object"}}, ""),
        *(
            (
                {"name": name, "input_schema": EMPTY},
                "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            )
            for name in ("a.b", "a:b", "x" * 129)
        ),
        ({"name": "look", "input_schema": {}}, "tools.0.custom.input_schema.type: Field required"),
        (
            {"name": "look", "input_schema": {"type": "array"}},
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
        (
            {"name": "look", "input_schema": {"type": "object", "anyOf": [EMPTY]}},
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        ),
    ],
)
def test_claude(tool: Json, sentence: str) -> None:
    """Names to 128 characters, and an object at the top."""
    body = {"model": "claude-opus-5-5", "max_tokens": 500, "messages": HI, "tools": [tool]}
    assert error_of("anthropic", "/v1/messages", body).get("message", "") == sentence


def test_claudes_names_are_unique() -> None:
    """Two tools of one name."""
    tool = {"name": "look", "input_schema": EMPTY}
    body = {"model": "claude-opus-5-5", "max_tokens": 500, "messages": HI, "tools": [tool, tool]}
    assert error_of("anthropic", "/v1/messages", body)["message"] == "tools: Tool names must be unique."


NAME = (
    "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a letter "
    "or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with "
    "a maximum length of 64.\n"
)
PARAMETERS = "tools[0].function_declarations[0].parameters"


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ({"name": "a.b:c-d"}, ""),
        ({"name": "1look"}, NAME),
        ({"name": "x" * 65}, NAME),
        (
            {"name": "look", "parameters": of(where={"$ref": "#/$defs/place"})},
            f"Invalid JSON payload received. Unknown name \"$ref\" at '{PARAMETERS}.properties[0].value': Cannot find "
            "field.",
        ),
        (
            {"name": "look", "parameters": {**EMPTY, "$schema": "x"}},
            f"Invalid JSON payload received. Unknown name \"$schema\" at '{PARAMETERS}': Cannot find field.",
        ),
        (
            {"name": "look", "parameters": of(all={"type": "ARRAY"})},
            f"* GenerateContentRequest.{PARAMETERS}.properties[all].items: missing field.\n",
        ),
        ({"name": "look", "parametersJsonSchema": of(where={"$ref": "#/$defs/place"})}, ""),
    ],
)
@pytest.mark.parametrize("model", ["gemini-3-pro-preview", "gemini-2.5-flash"])
def test_gemini(model: str, function: Json, sentence: str) -> None:
    """Names with dots and colons are fine; words that its schema has no field for are not."""
    assert google(model, function) == sentence


def google(model: str, function: Json) -> str:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [function]}],
    }
    simulator = "gemini-2.5" if "2.5" in model else "gemini"
    error = error_of(simulator, f"/v1beta/models/{model}:generateContent", body)
    return str(error.get("message", ""))


def test_geminis_formats() -> None:
    """Gemini 2.5 knows two formats of a string; Gemini 3 takes any (recorded on 3.1 Pro)."""
    function = {"name": "look", "parameters": of(url={"type": "string", "format": "uri"})}
    assert google("gemini-3.1-pro-preview", function) == ""
    assert google("gemini-2.5-flash", function) == (
        f"* GenerateContentRequest.{PARAMETERS}.properties[url].format: only 'enum' and 'date-time' are supported for "
        "STRING type\n"
    )
