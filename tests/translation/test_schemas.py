"""Tools in forms that a target refuses: schemas, names, pictures. Each server's refusals are told here once more, by
what it says, and every schema of a large set must get past all of them and come back under its own name."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw

from thoughtline.formats import FORMATS
from thoughtline.providers.tool_forms import ToolForms
from thoughtline.replay.detection import resolve
from thoughtline.translation import TranslatedRequest, translate_request
from thoughtline.translation.schemas import mended_schema
from thoughtline.values.destination import Destination
from thoughtline.values.items import ToolCall
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
TARGETS = {
    "openai": Destination("openai", "https://api.openai.com/v1", "gpt-5", "openai_responses"),
    "openai chat": Destination("openai", "https://api.openai.com/v1", "gpt-5", "openai_chat"),
    "anthropic": Destination("anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "anthropic_messages"),
    "kimi": Destination("kimi", "https://api.moonshot.ai/v1", "kimi-k2.6", "openai_chat"),
    "gemini": Destination("gemini", "https://generativelanguage.googleapis.com", "gemini-3-pro", "gemini_generate"),
    "deepseek": Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_chat"),
    "bedrock": Destination("bedrock", "", "us.anthropic.claude-sonnet-4-5", "bedrock_converse"),
    "mistral": Destination("mistral", "https://api.mistral.ai/v1", "magistral-medium-latest", "openai_chat"),
}
TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}


# --- what servers refuse ----------------------------------------------------------------------------------------------


def nodes(schema: object, path: str = "root") -> Iterator[tuple[str, Any]]:
    """Every schema inside a schema."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for name in ("properties", "$defs", "definitions", "patternProperties"):
        for key, inner in (schema.get(name) or {}).items():
            yield from nodes(inner, f"{path}.{name}.{key}")
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for at, inner in enumerate(schema.get(name) or []):
            yield from nodes(inner, f"{path}.{name}.{at}")
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), (dict, list)):
            yield from nodes(schema[name], f"{path}.{name}")


def refusals(name: str, schema: Any, target: str) -> list[str]:
    """What a provider would say to a tool."""
    said: list[str] = []
    names = {"anthropic": r"[a-zA-Z0-9_-]{1,128}", "kimi": r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"}
    names["gemini"] = r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"
    if not re.fullmatch(names.get(target, r"[a-zA-Z0-9_-]{1,64}"), name):
        said.append(f"invalid function name {name}")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return [*said, 'schema must be a JSON Schema of type "object"']
    if not isinstance(schema.get("properties"), dict):
        said.append("object schema missing properties")
    if any(word in schema for word in ("anyOf", "oneOf", "allOf", "enum", "not")):
        said.append("no combinator at the top level")
    for path, node in nodes(schema):
        said += [f"{path}: {problem}" for problem in _refused_below(node, target)]
    return said


def _refused_below(node: Any, target: str) -> Iterator[str]:
    if not isinstance(node, dict):
        if target == "kimi" or not isinstance(node, bool):
            yield "property schema must be an object"
        return
    kind = node.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "type" in node and not TYPES.issuperset(kinds):
        yield "is not valid under any of the given schemas"
    if "array" in kinds and not isinstance(node.get("items"), dict):
        yield "array schema missing items"
    if isinstance(node.get("exclusiveMinimum"), bool) or not isinstance(node.get("required", []), list):
        yield "JSON schema is invalid. It must match JSON Schema draft 2020-12"
    if node.get("enum") == []:
        yield "enum must not be empty"
    if target == "kimi" and "anyOf" in node and "type" in node:
        yield "when using anyOf, type should be defined in anyOf items instead of the parent schema"
    if target == "kimi" and "$ref" in node and len(node) > 1:
        yield "conflicting keywords found after $ref expansion"


# --- a set of schemas, as servers of the Model Context Protocol write them --------------------------------------------

TEXT = {"type": "string", "description": "Some text."}
FIELDS: dict[str, Any] = {
    "plain": TEXT,
    "untyped": {"description": "Anything."},
    "anything": True,
    "bare list": {"type": "array"},
    "nullable list": {"type": ["array", "null"]},
    "list of lists": {"type": "array", "items": {"type": "array"}},
    "tuple": {"type": "array", "items": [{"type": "number"}, {"type": "string"}]},
    "union": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    "typed union": {"type": "object", "anyOf": [{"properties": {"a": TEXT}}, {"properties": {"b": TEXT}}]},
    "reference": {"$ref": "#/$defs/Place", "description": "Where."},
    "draft 4 limit": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "draft 3 requirement": {"type": "string", "required": True},
    "unknown type": {"type": "unknown"},
    "any type": {"type": ["any", "string"]},
    "empty choice": {"type": "string", "enum": []},
    "choice": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "format": {"type": "string", "format": "uri", "pattern": "^https?://", "minLength": 1},
    "open object": {"type": "object", "additionalProperties": True},
    "map": {"type": "object", "additionalProperties": {"type": "array"}},
    "deep": {"type": "object", "properties": {"in": {"type": "object", "properties": {"list": {"type": "array"}}}}},
}
DEFINED = {"$defs": {"Place": {"type": "object", "properties": {"city": TEXT}}}}
TOPS: dict[str, Any] = {
    "usual": lambda fields: {"type": "object", "properties": fields, "required": list(fields), **DEFINED},
    "draft": lambda fields: {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
        **DEFINED,
    },
    "untyped": lambda fields: {"properties": fields, **DEFINED},
    "any of": lambda fields: {
        "anyOf": [{"type": "object", "properties": fields, "required": list(fields)}, {"required": []}],
        **DEFINED,
    },
    "all of": lambda fields: {"type": "object", "allOf": [{"properties": fields, "required": list(fields)}], **DEFINED},
    "referred": lambda fields: {
        "$ref": "#/$defs/Input",
        "$defs": {**DEFINED["$defs"], "Input": {"type": "object", "properties": fields}},
    },
}
WHOLE: list[Any] = [
    {"type": "object"},
    {},
    {"type": "object", "properties": None},
    {"type": "object", "properties": {}, "required": None},
    {"type": ["object", "null"]},
    {"type": "object", "additionalProperties": False},
    True,
]
NAMES = ("look", "files.read", "git:status", "21st_magic", "mcp__" + "x" * 90, "öffnen", "a b")


def corpus() -> list[tuple[str, Any]]:
    """More than two hundred tools: every field under every top, pairs of fields, and tops without any."""
    schemas = [*WHOLE]
    schemas += [top({"it": field}) for top in TOPS.values() for field in FIELDS.values()]
    pairs = list(itertools.combinations(FIELDS.values(), 2))[::2]
    schemas += [TOPS["usual"]({"one": one, "other": other}) for one, other in pairs]
    return [(f"{NAMES[at % len(NAMES)]}{at}", schema) for at, schema in enumerate(schemas)]


def offered(tools: list[tuple[str, Any]], to: Destination, history: list[Json] | None = None) -> TranslatedRequest:
    """A Claude Code request that offers these tools, at a provider."""
    body = {
        "model": "m",
        "max_tokens": 99,
        "messages": history or [{"role": "user", "content": "Hi."}],
        "tools": [{"name": name, "input_schema": schema} for name, schema in tools],
    }
    client: FormatName = "anthropic_messages"
    if to.format == "anthropic_messages":  # from a client that has the same shapes
        client = "openai_chat"
        functions = [{"type": "function", "function": {"name": name, "parameters": one}} for name, one in tools]
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "tools": functions}
    wire = FORMATS[client]
    asked = wire.bodies.decode_request(json.dumps(body).encode(), wire.dialect)
    return translate_request(asked, to.format, resolve(to), to.model)


def written(request: TranslatedRequest) -> list[tuple[str, Any]]:
    """The tools of a body of any format."""
    body = json.loads(request.transcript.body)
    found = body.get("tools") or body["toolConfig"]["tools"]
    if "functionDeclarations" in found[0]:
        found = found[0]["functionDeclarations"]
    named = [tool.get("function") or tool.get("toolSpec") or tool for tool in found]
    schemas = ("parameters", "input_schema", "parametersJsonSchema")
    return [
        (one["name"], next((one[key] for key in schemas if key in one), None) or one["inputSchema"]["json"])
        for one in named
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_every_tool_of_a_large_set_is_taken(target: str) -> None:
    """No name and no schema is refused, every tool is still there under a name of its own, and a call of it comes back
    to the client under the name that the client gave it, with its arguments."""
    tools = corpus()
    assert len(tools) > 200
    request = offered(tools, TARGETS[target])
    sent = written(request)
    assert [problem for name, schema in sent for problem in refusals(name, schema, target)] == []
    assert len({name for name, _ in sent}) == len(tools)
    for (own, _), (name, _) in zip(tools, sent, strict=True):
        back = request.tools.called(ToolCall(name, '{"it": 1}', "c1"))
        assert (back.name, back.arguments) == (own, '{"it": 1}')


@pytest.mark.parametrize("target", TARGETS)
def test_no_argument_is_lost(target: str) -> None:
    """Whatever the top level is, the arguments of a tool keep their names."""
    tools = [(f"t{at}", top({"it": TEXT, "other": FIELDS["union"]})) for at, top in enumerate(TOPS.values())]
    for _, schema in written(offered(tools, TARGETS[target])):
        assert set(schema["properties"]) == {"it", "other"}


def test_a_schema_that_fits_keeps_its_bytes() -> None:
    """Spaces, order and spelling of numbers stay."""
    schema = Raw(b'{ "type":"object", "properties":{"n":{"type":"number","minimum":1.50}} }')
    assert mended_schema(schema, ToolForms()) == (schema, ())
    assert mended_schema(None, ToolForms()) == (None, ())


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        ({"type": "object"}, "`properties` is added"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "`items` is added"),
        ({"anyOf": [{"type": "object", "properties": {}}]}, "a choice at its top is merged"),
        ({"type": "object", "properties": {"a": {"type": "any"}}}, "a type that JSON Schema lacks is left out"),
    ],
)
def test_what_is_changed_is_found(schema: Json, change: str) -> None:
    """A finding names the tool and says what was done."""
    found = [one.message for one in offered([("look", schema)], TARGETS["openai"]).findings]
    assert len(found) == 1
    assert "look" in found[0]
    assert change in found[0]


def test_required_arguments_of_a_choice() -> None:
    """What every member of a choice requires is required, and of all members together what any does."""
    either = {"anyOf": [{"required": ["a", "b"]}, {"required": ["b"]}], "properties": {"a": TEXT, "b": TEXT}}
    both = {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": TEXT, "b": TEXT}}
    sent = written(offered([("either", either), ("both", both)], TARGETS["openai"]))
    assert [schema["required"] for _, schema in sent] == [["b"], ["a", "b"]]


@pytest.mark.parametrize("schema", [b"{", b'"text"', b"[" * 100_000 + b"]" * 100_000, b"null"])
def test_what_is_no_schema_does_no_harm(schema: bytes) -> None:
    """It is forwarded unchanged, or as a schema without arguments: the provider reports the problem."""
    made, _ = mended_schema(Raw(schema), ToolForms())
    assert made is not None


def test_a_schema_that_refers_to_itself_ends() -> None:
    """A reference to the top, and one that goes round."""
    round_trip = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    made, changes = mended_schema(Raw(json.dumps(round_trip).encode()), ToolForms())
    assert made is not None
    assert changes


def test_calls_of_the_history_have_the_names_of_the_target() -> None:
    """Those of tools that are offered, and of one that is not any more; results follow them."""
    history: list[Json] = [
        {"role": "user", "content": "Hi."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t1", "name": "files.read", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "gone.tool", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name in ("t1", "t2")],
        },
    ]
    request = offered([("files.read", WHOLE[3])], TARGETS["openai chat"], history)
    called = [item.name for turn in request.transcript.turns for item in turn.items if isinstance(item, ToolCall)]
    assert called[0] == written(request)[0][0]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in called)
    again = offered([("files.read", WHOLE[3])], TARGETS["openai chat"], history)
    assert again.transcript.body == request.transcript.body


# --- pictures ---------------------------------------------------------------------------------------------------------

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
SHOWN: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}, PICTURE]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [PICTURE]}]},
]


@pytest.mark.parametrize(
    ("provider", "model", "is_shown"),
    [
        ("deepseek", "deepseek-v4-pro", False),
        ("glm", "glm-5", False),
        ("glm", "glm-4.6v", True),
        ("kimi", "kimi-k2.6", True),
    ],
)
def test_pictures_go_to_models_that_take_them(provider: str, model: str, is_shown: bool) -> None:
    """To others they are mentioned, with a finding each: DeepSeek refuses the whole conversation for one."""
    request = offered([("look", WHOLE[3])], Destination(provider, "", model, "openai_chat"), SHOWN)
    body = request.transcript.body
    assert body.count(b'"image_url"') == (4 if is_shown else 0)
    assert body.count(b"can't be shown") == (0 if is_shown else 2)
    assert sum("takes no image" in one.message for one in request.findings) == (0 if is_shown else 2)


# --- tools that are to be found first ---------------------------------------------------------------------------------


def deferred(history: list[Json], *more: Json) -> TranslatedRequest:
    """A request of Claude Code with a search of its own, and tools that it has found or not."""
    named = [("ToolSearch", False), ("mcp__a", True), ("mcp__b", True)]
    tools = [
        {"name": name, "input_schema": WHOLE[3]} | ({"defer_loading": True} if late else {}) for name, late in named
    ]
    body = {"model": "m", "max_tokens": 9, "messages": history, "tools": [*tools, *more]}
    wire, to = FORMATS["anthropic_messages"], TARGETS["deepseek"]
    asked = wire.bodies.decode_request(json.dumps(body).encode(), wire.dialect)
    return translate_request(asked, to.format, resolve(to), to.model)


def test_a_deferred_tool_is_offered_once_it_is_found() -> None:
    """Not before: its definition is not for the model yet."""
    asked: list[Json] = [{"role": "user", "content": "Hi."}]
    assert [name for name, _ in written(deferred(asked))] == ["ToolSearch"]
    assert [one.place for one in deferred(asked).findings if "deferred" in one.message] == ["/tools/1", "/tools/2"]
    found = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "mcp__b"}]}
    call = {"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}
    history = [*asked, {"role": "assistant", "content": [call]}, {"role": "user", "content": [found]}]
    assert [name for name, _ in written(deferred(history))] == ["ToolSearch", "mcp__b"]


def test_deferred_tools_are_offered_where_their_search_is_the_providers() -> None:
    """No other provider has Anthropic's search: without it these tools could not be found."""
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    assert len(written(deferred([{"role": "user", "content": "Hi."}], search))) == 3
