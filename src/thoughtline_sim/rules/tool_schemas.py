"""Names and schemas of tools that OpenAI, Claude and Gemini reject, each with its own message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import Json, JsonObject, as_object, objects, string
from thoughtline_sim.refusals import gemini_error, openai_error
from thoughtline_sim.values import Rejection
from thoughtline_sim.wires.generate import is_2_5, is_array

_OPENAI_NAME = "^[a-zA-Z0-9_-]+$"
_CLAUDE_NAME = "^[a-zA-Z0-9_-]{1,128}$"
_GOOGLE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_MAX_CHARS = 64
_STRICT_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_COMBINERS = ("oneOf", "allOf", "anyOf")
_GOOGLE_LACKS = ("$ref", "$defs", "$schema", "definitions", "const", "patternProperties", "exclusiveMinimum")


# OpenAI


def openai_chat_tools(exchange: SimExchange) -> Iterator[Rejection]:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        if tool.get("type") == "function":
            yield from _openai_tool(as_object(tool.get("function")), f"tools[{index}].function")


def openai_responses_tools(exchange: SimExchange) -> Iterator[Rejection]:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        if tool.get("type") == "function":
            yield from _openai_tool(tool, f"tools[{index}]")


def _openai_tool(tool: JsonObject, place: str) -> Iterator[Rejection]:
    name = string(tool.get("name"))
    where = f"{place}.name"
    if len(name) > _MAX_CHARS:
        message = (
            f"Invalid '{where}': string too long. Expected a string with maximum length {_MAX_CHARS}, but got a "
            f"string with length {len(name)} instead."
        )
        yield openai_error(message, param=where, code="string_above_max_length")
    elif not re.fullmatch(_OPENAI_NAME, name):
        message = (
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            f"'{_OPENAI_NAME}'."
        )
        yield openai_error(message, param=where, code="invalid_value")
    for problem in _openai_schema(tool.get("parameters"), (), is_strict=tool.get("strict") is True):
        message = f"Invalid schema for function '{name}': {problem}"
        yield openai_error(message, param=f"{place}.parameters", code="invalid_function_parameters")


def _openai_schema(schema: Json, context: tuple[str, ...], *, is_strict: bool) -> Iterator[str]:
    """The top-level object has properties, and arrays have items; strict schemas are closed and allow few formats.

    A nested object may omit them: it is accepted, and not shown to the model (community.openai.com/t/1368533,
    2026-11-19).
    """
    if not isinstance(schema, dict) or len(context) > 40:
        return
    place = f"In context=({', '.join(repr(part) for part in context)}{',' if len(context) == 1 else ''})"
    kind, properties = schema.get("type"), as_object(schema.get("properties"))
    if not context and kind != "object" and not any(name in schema for name in ("$ref", *_COMBINERS)):
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    is_bare = kind == "object" and "properties" not in schema and "additionalProperties" not in schema
    if is_bare and (is_strict or not context):
        yield f"{place}, object schema missing properties."
    if kind == "array" and "items" not in schema:
        yield f"{place}, array schema missing items."
    if is_strict and kind == "object" and schema.get("additionalProperties") is not False:
        yield f"{place}, 'additionalProperties' is required to be supplied and to be false."
    required = schema.get("required")
    missing = [name for name in properties if not isinstance(required, list) or name not in required]
    if is_strict and missing:
        yield (
            f"{place}, 'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    if is_strict and schema.get("format") not in (None, *_STRICT_FORMATS):
        yield f"{place}, '{schema['format']}' is not a valid format."
    for name, inner in properties.items():
        yield from _openai_schema(inner, (*context, "properties", name), is_strict=is_strict)
    yield from _openai_schema(schema.get("items"), (*context, "items"), is_strict=is_strict)


# Claude


def claude_tools(exchange: SimExchange) -> Iterator[str]:
    names: set[str] = set()
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        if string(tool.get("type")) not in ("", "custom"):
            continue
        name, place = string(tool.get("name")), f"tools.{index}.custom"
        if not re.fullmatch(_CLAUDE_NAME, name):
            yield f"{place}.name: String should match pattern '{_CLAUDE_NAME}'"
        schema = as_object(tool.get("input_schema"))
        if any(word in schema for word in _COMBINERS):
            yield f"{place}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        elif "type" not in schema and isinstance(tool.get("input_schema"), dict):
            yield f"{place}.input_schema.type: Field required"
        elif schema.get("type") not in (None, "object"):
            yield f"{place}.input_schema.type: Input should be 'object'"
        if name in names:
            yield "tools: Tool names must be unique."
        names.add(name)


# Gemini


def gemini_tools(exchange: SimExchange) -> Iterator[Rejection]:
    for number, tool in enumerate(objects(exchange.body.get("tools"))):
        declared = objects(tool.get("functionDeclarations") or tool.get("function_declarations"))
        for index, function in enumerate(declared):
            place = f"tools[{number}].function_declarations[{index}]"
            for sentence in _gemini_function(function, place, knows_formats=not is_2_5(exchange.model)):
                yield gemini_error(sentence, is_in_array=is_array(exchange))


def _gemini_function(function: JsonObject, place: str, *, knows_formats: bool) -> Iterator[str]:
    """Gemini 3 accepts any format of a string (recorded 2026)."""
    if not _GOOGLE_NAME.fullmatch(string(function.get("name"))):
        yield (
            f"* GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. "
            "Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
            "length of 64.\n"
        )
    yield from _unknown_names(function.get("parameters"), f"{place}.parameters")
    for sentence in _gemini_schema(function.get("parameters"), f"GenerateContentRequest.{place}.parameters"):
        if not (knows_formats and ".format: " in sentence):
            yield sentence


def _unknown_names(schema: Json, place: str) -> Iterator[str]:
    """Members without a field in the protocol buffer, by the position of each property."""
    if not isinstance(schema, dict):
        return
    for name in _GOOGLE_LACKS:
        if name in schema:
            yield f"Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
    for number, inner in enumerate(as_object(schema.get("properties")).values()):
        yield from _unknown_names(inner, f"{place}.properties[{number}].value")
    yield from _unknown_names(schema.get("items"), f"{place}.items")


def _gemini_schema(schema: Json, place: str) -> Iterator[str]:
    """The validator's errors about known fields, by the name of each property."""
    if not isinstance(schema, dict):
        return
    kind = string(schema.get("type")).upper()
    if kind == "STRING" and schema.get("format") not in (None, "enum", "date-time"):
        yield f"* {place}.format: only 'enum' and 'date-time' are supported for STRING type\n"
    if kind == "ARRAY" and "items" not in schema:
        yield f"* {place}.items: missing field.\n"
    for name, inner in as_object(schema.get("properties")).items():
        yield from _gemini_schema(inner, f"{place}.properties[{name}]")
    yield from _gemini_schema(schema.get("items"), f"{place}.items")
