"""Shared code of simulators for decoding JSON: a request may contain anything, so no shape is trusted."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


def canonical(value: Json) -> str:
    """JSON independent of key order: two equal values have one text."""
    return msgspec.json.encode(value, order="sorted").decode()


def call_arguments(arguments: Json) -> str:
    """The arguments of a call, from an object or JSON text, in one spelling."""
    if isinstance(arguments, str):
        try:
            return canonical(msgspec.json.decode(arguments or "{}"))
        except msgspec.DecodeError:
            return arguments
    return canonical({} if arguments is None else arguments)


def standard(token: str) -> str:
    """A token in the standard alphabet of base64, whatever its own."""
    return token.translate(str.maketrans("-_", "+/"))


def as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects(value: Json) -> list[JsonObject]:
    """The objects of a list; everything else in it is left out."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def text_of(content: Json) -> str:
    """The text of a `content`: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(string(part.get("text")) for part in objects(content))
