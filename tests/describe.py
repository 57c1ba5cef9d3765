"""Typed values as plain JSON, for comparing and for reading in test cases."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace

from thoughtline.items import REASONING_KINDS, Item, ReasoningEncrypted, ReasoningText, Seal, ToolResult, Unknown
from thoughtline.turns import Reply, Transcript


def describe(item: Item) -> dict[str, Any]:
    """An item as `{kind: {what it says}}`: no raw JSON, nothing that is missing or false."""
    said = {key: value for key, value in asdict(item).items() if key != "raw" and value not in (None, False)}
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
    return item if isinstance(item, Unknown) else replace(item, raw=None)


def thoughts(items: tuple[Item, ...]) -> list[tuple[str, ...]]:
    """The reasoning and the seals of a turn, by what a provider would compare."""
    found: list[tuple[str, ...]] = []
    for item in items:
        match item:
            case ReasoningText():
                found.append(("text", item.text, token(item.signature)))
            case ReasoningEncrypted():
                found.append(("encrypted", token(item.data)))
            case _ if isinstance(item, REASONING_KINDS):
                found.append(("summary", getattr(item, "summary", "")))
            case _:
                seal: Seal | None = getattr(item, "seal", None)
                if seal is not None:
                    found.append(("seal", type(item).__name__, token(seal.data)))
    return found


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
    return msgspec.json.decode(raw)
