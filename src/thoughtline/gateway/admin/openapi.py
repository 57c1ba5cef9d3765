"""Writes the table of addresses as an OpenAPI 3.1 document, with the schemas of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from types import NoneType
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo

from thoughtline.gateway.admin.answers import Failure
from thoughtline.gateway.admin.requests import MAX_PARAMETER_CHARS, Row, choices_of

Json: TypeAlias = dict[str, Any]
_TOKEN, _COOKIE = "adminToken", "adminCookie"
_SECURITY: dict[str, list[Json]] = {
    "admin": [{_TOKEN: []}, {_COOKIE: []}],
    "metrics": [{}, {_TOKEN: []}, {_COOKIE: []}],
    "open": [],
}
# Possible errors of every row of a kind: an unknown parameter, a wrong token, a client key, another host, too many
# wrong tokens, a failing store.
_REFUSALS = {"admin": (400, 401, 403, 421, 429, 503), "metrics": (400, 401, 403, 421, 429), "open": (400, 421)}
_BODY_REFUSALS = (413, 415)


def document(rows: Iterable[Row]) -> bytes:
    """Return the whole document as JSON."""
    rows = tuple(rows)
    kinds = [Failure, *(kind for row in rows for kind in (row.answer, row.body) if kind is not None)]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: Json = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "thoughtline",
                "version": version("thoughtline"),
                "description": "Management and probes of a gateway that remembers what models thought.",
            },
            "paths": paths,
            "components": {"schemas": schemas, "securitySchemes": _schemes()},
        }
    )


def _schemes() -> Json:
    return {
        _TOKEN: {"type": "http", "scheme": "bearer", "description": "The admin token."},
        _COOKIE: {"type": "apiKey", "in": "cookie", "name": "thoughtline_admin", "description": "Set by /login."},
    }


def _operation(row: Row) -> Json:
    operation: Json = {
        "operationId": re.sub(r"\W+", "_", row.method.lower() + (row.path if row.path != "/" else "/page")).strip("_"),
        "summary": row.summary,
        "security": _SECURITY[row.access],
        "parameters": [*_path_parameters(row.path), *map(_parameter, msgspec.structs.fields(row.query))],
        "responses": _responses(row),
    }
    if row.body is not None:
        schema = _reference(row.body)
        if row.takes_any_object:
            schema = {"anyOf": [schema, {"type": "object"}]}
        content = {kind: {"schema": schema} for kind in row.body_types}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(path: str) -> list[Json]:
    names = re.findall(r"{(\w+)}", path)
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _parameter(field: FieldInfo) -> Json:
    return {
        "name": field.encode_name,
        "in": "query",
        "required": field.default is NODEFAULT,
        "schema": _parameter_schema(field),
    }


def _parameter_schema(field: FieldInfo) -> Json:
    """Return the schema of a query parameter: null is not possible, the parameter is omitted instead."""
    if words := choices_of(field):
        return {"type": "string", "enum": list(words)}
    if field.type is int:
        return {"type": "integer", "default": field.default}
    assert set(get_args(field.type)) <= {str, NoneType}, field
    return {"type": "string", "maxLength": MAX_PARAMETER_CHARS, "pattern": r"^[^\u0000]*$"}


def _responses(row: Row) -> Json:
    refusals = {*_REFUSALS[row.access], *(_BODY_REFUSALS if row.body else ()), *row.refusals}
    good = {str(status): _success(row) for status in (row.status, *row.also)}
    return good | {str(status): _refusal(status) for status in sorted(refusals)}


def _success(row: Row) -> Json:
    kind = row.content_type.partition(";")[0]
    if row.status == HTTPStatus.SEE_OTHER:
        return {"description": row.summary, "headers": {"location": {"schema": {"type": "string"}}}}
    is_json = kind == "application/json"
    schema = _reference(row.answer) if row.answer and is_json else {"type": "object" if is_json else "string"}
    return {"description": row.summary, "content": {kind: {"schema": schema}}}


def _refusal(status: int) -> Json:
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": _reference(Failure)}}}


def _reference(kind: type[Struct]) -> Json:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
