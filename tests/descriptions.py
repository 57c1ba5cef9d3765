"""Typed values as plain JSON, for comparing and for reading in test cases."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace

from thoughtline.values.items import NO_RAW, Item, Seal, ToolResult, Unknown
from thoughtline.values.turns import Reply, Transcript


def describe(item: Item) -> dict[str, Any]:
    """An item as `{kind: {what it says}}`: no raw JSON, nothing that is missing or false."""
    said = {
        key: value for key, value in asdict(item).items() if key != "raw" and value is not None and value is not False
    }
    if isinstance(said.get("seal"), Seal):
        said["seal"] = asdict(said["seal"])
    if isinstance(item, ToolResult):
        said["content"] = msgspec.json.decode(item.content)
    if isinstance(item, Unknown):
        said["json"] = msgspec.json.decode(item.raw)
    return {type(item).__name__: said}


def describe_request(transcript: Transcript) -> list[dict[str, Any]]:
    return [{"role": turn.role, "items": [describe(item) for item in turn.items]} for turn in transcript.turns]


def describe_reply(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": candidate.index,
            "items": [describe(item) for item in candidate.turn.items],
            "finish": candidate.finish.reason if candidate.finish else None,
        }
        for candidate in reply.candidates
    ]


def without_raw(item: Item) -> Item:
    """The item by what it says, for comparing one that came whole with one that came in pieces."""
    return item if isinstance(item, Unknown) else replace(item, raw=NO_RAW)


def token(value: str | None) -> str:
    """An opaque token, whichever base64 alphabet spells it."""
    if not value:
        return ""
    plain = value.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).hex()
    except (binascii.Error, ValueError):
        return value


def json_of(raw: Raw | bytes) -> Any:
    """A JSON value in which fractions are text: `1e400` and `1.0` keep their spelling."""
    return json.loads(bytes(raw), parse_float=str)
