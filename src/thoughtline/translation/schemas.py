"""Rewrites schemas of tools to a form that a server accepts.

Most changes keep the meaning. Where something is lost, such as a choice between whole sets of arguments, the arguments
stay and the choice is dropped; a finding reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from thoughtline.providers.tool_forms import ToolForms

Schema: TypeAlias = dict[str, Any]

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_UNIONS = ("anyOf", "oneOf", "allOf")
_NOT_AT_TOP = (*_UNIONS, "enum", "not", "const", "if", "then", "else")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = (*_UNIONS, "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DEEPEST = 40
"""A schema that refers to itself is followed to this depth."""


class Mending:
    """A schema being rewritten. `changes` describes the changes."""

    def __init__(self, schema: Schema, forms: ToolForms) -> None:
        self._root = schema
        self._forms = forms
        self.changes: list[str] = []

    def _note(self, change: str) -> None:
        if change not in self.changes:
            self.changes.append(change)

    # --- the top ------------------------------------------------------------------------------------------------------

    def mended(self) -> Schema:
        """The schema as an object with properties, which every server requires."""
        top = self._opened(self._root)
        if self._forms.has_plain_top and any(name in top for name in _NOT_AT_TOP):
            top = self._merged(top)
        if top.get("type") != "object":
            self._note("its top is an object")
            top = {"type": "object"} | {name: value for name, value in top.items() if name != "type"}
        if not isinstance(top.get("properties"), dict):
            self._note("`properties` is added")
            top = {**top, "properties": {}}
        if top.pop("$schema", None) is not None:
            self._note("`$schema` is left out")
        return self._walked(top, 0)

    def _opened(self, schema: Schema) -> Schema:
        """Resolve a top level that is only a reference, as some libraries write it."""
        for _ in range(_DEEPEST):
            target = self._target(schema.get("$ref"))
            if target is None:
                break
            self._note("a `$ref` at its top is opened")
            schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
        return dict(schema)

    def _merged(self, top: Schema) -> Schema:
        """One object with the properties of all members of a union; required are those that every member requires."""
        self._note("a choice at its top is merged")
        merged: Schema = {name: value for name, value in top.items() if name not in _NOT_AT_TOP}
        properties = dict(top["properties"]) if isinstance(top.get("properties"), dict) else {}
        required = list(top["required"]) if isinstance(top.get("required"), list) else []
        for union in _UNIONS:
            members = [self._opened(one) for one in _listed(top.get(union)) if isinstance(one, dict)]
            for member in members:
                inner = member.get("properties")
                properties = {**(inner if isinstance(inner, dict) else {}), **properties}
            wanted = [set(_listed(member.get("required"))) for member in members]
            needed = set.union(*wanted) if union == "allOf" and wanted else set.intersection(*wanted or [set()])
            required += sorted(str(name) for name in needed if name not in required)
        merged["properties"] = properties
        if required:
            merged["required"] = required
        return merged

    def _target(self, reference: object) -> Schema | None:
        """The target of a reference inside the schema."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: object = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None

    # --- below --------------------------------------------------------------------------------------------------------

    def _walked(self, schema: Schema, depth: int) -> Schema:
        if depth > _DEEPEST:
            return schema
        schema = self._bare_reference(self._plain(schema))
        walked: Schema = {}
        for name, value in schema.items():
            if name in _MAPS and isinstance(value, dict):
                walked[name] = {key: self._below(inner, depth) for key, inner in value.items()}
            elif name in _LISTS and isinstance(value, list):
                walked[name] = [self._below(inner, depth) for inner in value]
            elif name in _SCHEMAS and isinstance(value, dict):
                walked[name] = self._walked(value, depth + 1)
            else:
                walked[name] = value
        return self._bare_union(walked) if self._forms.has_bare_unions else walked

    def _below(self, schema: object, depth: int) -> object:
        if isinstance(schema, dict):
            return self._walked(schema, depth + 1)
        if self._forms.has_flags and isinstance(schema, bool):
            return schema
        self._note("a schema that is no object is one that takes anything")
        return {}

    def _plain(self, schema: Schema) -> Schema:
        """Remove keywords of drafts that no server supports, and add missing ones."""
        plain = dict(schema)
        for repair in _REPAIRS:
            if change := repair(plain):
                self._note(change)
        return plain

    def _bare_reference(self, schema: Schema) -> Schema:
        if not self._forms.has_bare_references or "$ref" not in schema or len(schema) == 1:
            return schema
        self._note("words beside a `$ref` are left out")
        return {"$ref": schema["$ref"]}

    def _bare_union(self, schema: Schema) -> Schema:
        """Move the type of a union into its members."""
        if "type" not in schema or not isinstance(schema.get("anyOf"), list):
            return schema
        self._note("a `type` beside `anyOf` stands in its members")
        given = {"type": schema["type"]}
        members = [
            one if not isinstance(one, dict) or "type" in one or "$ref" in one else given | one
            for one in schema["anyOf"]
        ]
        return {name: value for name, value in schema.items() if name not in ("type", "anyOf")} | {"anyOf": members}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- repairs: each changes a schema in place and returns a description
# -------------------------------------------------


def _known_types(schema: Schema) -> str:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "type" not in schema or (kinds and all(one in _TYPES for one in kinds)):
        return ""
    kept = [one for one in kinds if one in _TYPES]
    if kept:
        schema["type"] = kept
    else:
        del schema["type"]
    return "a type that JSON Schema lacks is left out"


def _array_items(schema: Schema) -> str:
    kind = schema.get("type")
    if not (kind == "array" or (isinstance(kind, list) and "array" in kind)):
        return ""
    items = schema.get("items")
    if isinstance(items, list):
        schema["items"] = items[0] if len(items) == 1 else {"anyOf": items} if items else {}
        return "a tuple of `items` stands as a choice"
    if isinstance(items, dict):
        return ""
    schema["items"] = {}
    return "`items` is added"


def _limits(schema: Schema) -> str:
    """`exclusiveMinimum: true` of draft 4."""
    changed = ""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and limit in schema:
                schema[exclusive] = schema.pop(limit)
            changed = f"`{exclusive}` is a number"
    return changed


def _named_requirements(schema: Schema) -> str:
    """`required: true` of draft 3, and empty lists."""
    required = schema.get("required")
    if "required" not in schema or (isinstance(required, list) and all(isinstance(one, str) for one in required)):
        return ""
    del schema["required"]
    return "`required` that is no list of names is left out"


def _chosen_values(schema: Schema) -> str:
    if "enum" not in schema or (isinstance(schema["enum"], list) and schema["enum"]):
        return ""
    del schema["enum"]
    return "an `enum` without values is left out"


def _named_properties(schema: Schema) -> str:
    if "properties" not in schema or isinstance(schema["properties"], dict):
        return ""
    del schema["properties"]
    return "`properties` that are no object are left out"


_REPAIRS: tuple[Callable[[Schema], str], ...] = (
    _known_types,
    _array_items,
    _limits,
    _named_requirements,
    _chosen_values,
    _named_properties,
)


def mended_schema(parameters: Raw | None, forms: ToolForms) -> tuple[Raw | None, tuple[str, ...]]:
    """The schema of a tool as a server accepts it, and the changes. A valid schema keeps its bytes."""
    if parameters is None:
        return None, ()
    try:
        schema = msgspec.json.decode(parameters)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return parameters, ()
    mending = Mending(schema if isinstance(schema, dict) else {}, forms)
    mended = mending.mended()
    return (Raw(msgspec.json.encode(mended)), tuple(mending.changes)) if mending.changes else (parameters, ())
