"""Two hundred tools as servers of the Model Context Protocol list them, each named by what is special about it.

A row of `SPECIAL` is a schema of one argument, or a whole `inputSchema`; `tools` sets the first under tops that real
servers write (their own, Pydantic's, Zod's, a generator's from OpenAPI) and gives them names that real servers give.
`arguments` is what a model would send to such a tool.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools, read 2026-11-18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

_NODE = {"type": "object", "properties": {"name": {"type": "string"}, "children": {"$ref": "#/$defs/Node"}}}
_TREE = {"type": "object", "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
_NULL = {"type": "null"}
_DEFS: Json = {
    "Node": _NODE,
    "Tree": _TREE,
    "Level": {"type": "string", "enum": ["low", "high"], "title": "Level"},
    "A~b/c": {"type": "string"},
}


def _nested(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
    return schema


class Argument(NamedTuple):
    """The schema of one argument, and a value for it."""

    schema: Any
    value: Any = "x"


ARGUMENTS: dict[str, Argument] = {
    # types
    "a text": Argument({"type": "string"}),
    "a long description": Argument({"type": "string", "description": "Words. " * 400}),
    "a description with quotes, breaks and an emoji": Argument(
        {"type": "string", "description": 'A "b"\n\tc 🐟 \u2028'}
    ),
    "a title and examples": Argument({"type": "string", "title": "Path", "examples": ["/a", "/b"]}),
    "an integer with bounds": Argument({"type": "integer", "minimum": 1, "maximum": 100, "default": 10}, 7),
    "a number with exclusive bounds": Argument({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    "a multiple": Argument({"type": "integer", "multipleOf": 5}, 15),
    "a large number": Argument({"type": "integer", "maximum": 9007199254740993}, 9007199254740993),
    "a flag with a default": Argument({"type": "boolean", "default": False}, True),
    "null alone": Argument({"type": "null"}, None),
    "no type": Argument({"description": "Anything."}, {"a": [1]}),
    "an empty schema": Argument({}, [1, "a"]),
    "the schema true": Argument(True, {"any": 1}),
    "a type of another language": Argument({"type": "float"}, 1.5),
    "a type in capitals": Argument({"type": "STRING"}),
    # several types
    "a list of types": Argument({"type": ["string", "number"]}, 3),
    "a nullable text by its types": Argument({"type": ["string", "null"]}, None),
    "a nullable text of OpenAPI 3.0": Argument({"type": "string", "nullable": True}, None),
    "an optional of Pydantic": Argument({"anyOf": [{"type": "string"}, _NULL], "default": None}, None),
    "an optional list of Pydantic": Argument({"anyOf": [{"type": "array", "items": {"type": "string"}}, _NULL]}, ["a"]),
    "a nullable list by its types": Argument({"type": ["array", "null"], "items": {"type": "string"}}, None),
    "a nullable list without items": Argument({"type": ["array", "null"]}, [1]),
    "types with one that nobody knows": Argument({"type": ["string", "any"]}),
    "an empty list of types": Argument({"type": []}),
    # texts
    "a date and time": Argument({"type": "string", "format": "date-time"}, "2026-11-18T10:00:00Z"),
    "an address": Argument({"type": "string", "format": "uri"}, "https://a.example"),
    "an e-mail": Argument({"type": "string", "format": "email"}, "a@b.example"),
    "a format of its own": Argument({"type": "string", "format": "password"}),
    "an int64 of OpenAPI": Argument({"type": "integer", "format": "int64"}, 5),
    "a pattern": Argument({"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 20}, "abc"),
    "a pattern with escapes": Argument({"type": "string", "pattern": r'^\d{3}-"\\\p{L}/?$'}, "1"),
    "base64 content": Argument(
        {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}, "AA=="
    ),
    # choices
    "a choice of texts": Argument({"type": "string", "enum": ["asc", "desc"]}, "asc"),
    "a choice without a type": Argument({"enum": ["a", "b"]}, "a"),
    "a choice of numbers": Argument({"type": "integer", "enum": [1, 2, 3]}, 2),
    "a mixed choice": Argument({"enum": ["a", 1, None, True]}, 1),
    "a choice with null": Argument({"type": ["string", "null"], "enum": ["a", None]}, None),
    "an empty choice": Argument({"type": "string", "enum": []}),
    "a choice of one": Argument({"type": "string", "enum": ["only"]}, "only"),
    "a choice with an empty text": Argument({"type": "string", "enum": ["", "a"]}, ""),
    "a constant": Argument({"const": "fixed"}, "fixed"),
    "a constant with its type": Argument({"type": "string", "const": "fixed"}, "fixed"),
    "a choice of constants": Argument({"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "a"),
    # lists
    "a list of texts": Argument({"type": "array", "items": {"type": "string"}}, ["a", "b"]),
    "a list without items": Argument({"type": "array"}, [1]),
    "a list of anything": Argument({"type": "array", "items": {}}, [1, "a"]),
    "a list whose items are true": Argument({"type": "array", "items": True}, [1]),
    "a list with bounds": Argument(
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": True}, ["a"]
    ),
    "a list of lists": Argument({"type": "array", "items": {"type": "array"}}, [[1]]),
    "a list of objects": Argument(
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
        [{"a": "b"}],
    ),
    "a tuple of draft 7": Argument({"type": "array", "items": [{"type": "number"}, {"type": "string"}]}, [1, "a"]),
    "a tuple of prefixItems": Argument(
        {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": False}, [1, "a"]
    ),
    "a tuple of prefixItems and nothing else": Argument(
        {"type": "array", "prefixItems": [{"type": "number"}], "minItems": 1, "maxItems": 1}, [1]
    ),
    "an empty tuple": Argument({"type": "array", "items": []}, []),
    "a list that contains": Argument({"type": "array", "items": {"type": "string"}, "contains": {"const": "a"}}, ["a"]),
    # objects
    "an object": Argument({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": "b"}),
    "an object without properties": Argument({"type": "object"}, {"a": 1}),
    "a closed object": Argument({"type": "object", "properties": {}, "additionalProperties": False}, {}),
    "an open object": Argument({"type": "object", "additionalProperties": True}, {"a": 1}),
    "a map of texts": Argument({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "b"}),
    "a map of lists without items": Argument({"type": "object", "additionalProperties": {"type": "array"}}, {"a": []}),
    "a map with an empty schema": Argument({"type": "object", "additionalProperties": {}}, {"a": None}),
    "a map by patterns": Argument({"type": "object", "patternProperties": {"^x-": {"type": "string"}}}, {"x-a": "b"}),
    "names of its own kind": Argument({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, {"a": 1}),
    "dependent arguments": Argument(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "dependentRequired": {"a": ["b"]},
        },
        {"a": "1", "b": "2"},
    ),
    "a deep object": Argument(_nested(5), {"in": {"in": {"in": {"in": {"in": "x"}}}}}),
    "a very deep object": Argument(_nested(20), {"in": {}}),
    "properties that are null": Argument({"type": "object", "properties": None}, {}),
    "properties named like keywords": Argument(
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("type", "$ref", "enum", "items", "required", "anyOf")},
        },
        {"type": "a", "$ref": "b", "enum": "c"},
    ),
    "properties with odd names": Argument(
        {"type": "object", "properties": {"a b": {"type": "string"}, "é": {"type": "string"}, "x.y/z": {}}},
        {"a b": "1", "é": "2", "x.y/z": 3},
    ),
    # unions
    "a union": Argument({"anyOf": [{"type": "string"}, {"type": "number"}]}, 1),
    "one of two": Argument({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a"]),
    "a union with a list without items": Argument({"anyOf": [{"type": "array"}, _NULL]}, [1]),
    "a typed union": Argument(
        {
            "type": "object",
            "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
        },
        {"a": "1"},
    ),
    "all of two": Argument(
        {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]}, {"a": "1"}
    ),
    "a reference in allOf, as Pydantic 1 writes it": Argument({"allOf": [{"$ref": "#/$defs/Level"}]}, "low"),
    "a discriminated union": Argument(
        {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
            ],
            "discriminator": {"propertyName": "kind"},
        },
        {"kind": "a"},
    ),
    "a negation": Argument({"type": "string", "not": {"enum": ["root"]}}),
    "a condition": Argument(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "if": {"properties": {"a": {"const": "x"}}},
            "then": {"required": ["a"]},
        },
        {"a": "x"},
    ),
    "an empty union": Argument({"anyOf": []}),
    # references
    "a reference": Argument({"$ref": "#/$defs/Level"}, "low"),
    "a reference with words": Argument({"$ref": "#/$defs/Level", "description": "How much."}, "low"),
    "a reference to itself": Argument({"$ref": "#/$defs/Node"}, {"name": "a", "children": {"name": "b"}}),
    "a list that refers to itself": Argument({"$ref": "#/$defs/Tree"}, {"nodes": [{"nodes": []}]}),
    "a reference with escapes": Argument({"$ref": "#/$defs/A~0b~1c"}),
    "a reference to the top": Argument({"$ref": "#"}, {}),
    "a reference to nothing": Argument({"$ref": "#/$defs/Missing"}),
    "an optional reference": Argument({"anyOf": [{"$ref": "#/$defs/Level"}, _NULL], "default": None}, None),
    # old drafts
    "an exclusive bound of draft 4": Argument({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 1),
    "no exclusive bound of draft 4": Argument({"type": "number", "maximum": 9, "exclusiveMaximum": False}, 1),
    "an id of draft 4": Argument({"id": "http://a.example/s", "type": "string"}),
    "a requirement of draft 3": Argument({"type": "string", "required": True}),
    "a requirement that is null": Argument({"type": "object", "properties": {}, "required": None}, {}),
    "a schema that is a text": Argument("string"),
    "keywords of Zod": Argument({"type": "string", "$comment": "zod", "readOnly": True, "deprecated": True}),
    "keywords of a vendor": Argument({"type": "string", "x-order": 1, "x-google-enum": ["a"]}),
}


def _usual(schema: Any) -> Json:
    return {"type": "object", "properties": {"it": schema}, "required": ["it"], "$defs": _DEFS}


TOPS: dict[str, Callable[[Any], Json]] = {
    "": _usual,
    "with $schema, closed": lambda schema: {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_usual(schema),
        "additionalProperties": False,
        "title": "Input",
    },
}
WHOLE: dict[str, Any] = {
    "no properties": {"type": "object"},
    "nothing": {},
    "closed and empty": {"type": "object", "additionalProperties": False},
    "empty properties": {"type": "object", "properties": {}},
    "properties are null": {"type": "object", "properties": None},
    "required is null": {"type": "object", "properties": {}, "required": None},
    "a nullable object": {"type": ["object", "null"], "properties": {"it": {"type": "string"}}},
    "no type": {"properties": {"it": {"type": "string"}}},
    "the schema true": True,
    "a reference at the top": {"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "properties": {"it": {}}}}},
    "definitions of draft 7": {
        "type": "object",
        "properties": {"it": {"$ref": "#/definitions/In"}},
        "definitions": {"In": {"type": "string"}},
    },
    "a choice at the top": {
        "anyOf": [
            {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]},
            {"type": "object", "properties": {"other": {"type": "string"}}, "required": ["other"]},
        ]
    },
    "one of at the top": {"type": "object", "oneOf": [{"required": ["it"]}, {"required": ["other"]}], "properties": {}},
    "all of at the top": {
        "allOf": [
            {"type": "object", "properties": {"it": {"type": "string"}}},
            {"type": "object", "properties": {"b": {"type": "string"}}},
        ]
    },
    "a negation at the top": {"type": "object", "properties": {"it": {}}, "not": {"required": ["it"]}},
    "a choice of values at the top": {"type": "object", "properties": {"it": {}}, "enum": [{"it": 1}]},
    "a condition at the top": {"type": "object", "properties": {"it": {}}, "if": {"required": ["it"]}, "then": {}},
    "a text at the top": {"type": "string"},
    "requires what it lacks": {"type": "object", "properties": {"it": {}}, "required": ["gone"]},
    "many properties": {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(120)}},
}
NAMES = (
    *("search", "get_file_contents", "browser-click", "files.read", "git:status", "fs/read_file", "21st_magic"),
    *(
        "mcp__github__" + "x" * 70,
        "mcp__github__" + "x" * 70 + "y",
        "öffnen",
        "检索",
        "a b",
        "a_b",
        "a.b",
        "A_b",
        "🐟",
        "-",
    ),
)
"""Names of usual servers, with dots, colons, slashes, over 64 letters, no letters of ASCII, and some that are the same
once they are made fit."""


class McpTool(NamedTuple):
    """A tool of a list. `about` names its special feature."""

    about: str
    name: str
    schema: Any
    arguments: Json


def tools() -> list[McpTool]:
    """All of them; every name is one of its own."""
    listed: list[tuple[str, Any, Json]] = [(f"the top: {about}", one, {"it": "x"}) for about, one in WHOLE.items()]
    for top, write in TOPS.items():
        listed += [(f"{about} {top}".strip(), write(one.schema), {"it": one.value}) for about, one in ARGUMENTS.items()]
    return [McpTool(about, _name(at), schema, arguments) for at, (about, schema, arguments) in enumerate(listed)]


def _name(at: int) -> str:
    return NAMES[at] if at < len(NAMES) else f"{NAMES[at % len(NAMES)]}_{at}"
