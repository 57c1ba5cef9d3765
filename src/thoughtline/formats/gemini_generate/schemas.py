"""Gemini's own schema (a subset of OpenAPI 3.0) as a JSON schema: types in lower case, `nullable` as a type."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

_INNER = ("items", "additionalProperties")
_LISTS = ("anyOf", "prefixItems")
_NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MAX_DEPTH = 64


def json_schema(own: Raw) -> Raw:
    """The JSON schema that says the same; what is no schema at all stays as it is."""
    value = msgspec.json.decode(own)
    return Raw(msgspec.json.encode(_plain(value, 0))) if isinstance(value, dict) else own


def _plain(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            plain[key] = value.lower()
        elif key == "properties" and isinstance(value, dict):
            plain[key] = {name: _plain(inner, depth + 1) for name, inner in value.items()}
        elif key in _INNER:
            plain[key] = _plain(value, depth + 1)
        elif key in _LISTS and isinstance(value, list):
            plain[key] = [_plain(inner, depth + 1) for inner in value]
        elif key in _NUMBERS and isinstance(value, str) and value.isdigit():
            plain[key] = int(value)  # 64-bit numbers are strings in Google's JSON
        elif key not in ("nullable", "propertyOrdering", "property_ordering", "example"):
            plain[key] = value
    if schema.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain
