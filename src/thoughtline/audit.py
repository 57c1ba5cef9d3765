"""Auditing a request: what a provider would refuse in it, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from thoughtline.formats import FORMATS
from thoughtline.replay.chains import proven
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import frame_of, walk
from thoughtline.replay.matching import Match, match_step
from thoughtline.replay.rules import Case, check
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import FormatName

_TELLING: tuple[tuple[str, FormatName], ...] = (
    ("contents", "gemini_generate"),
    ("input", "openai_responses"),
    ("inferenceConfig", "bedrock_converse"),
    ("toolConfig", "bedrock_converse"),
    ("anthropic_version", "anthropic_messages"),
    ("max_tokens_to_sample", "anthropic_messages"),
)


def audit(
    request: bytes,
    provider: str,
    model: str = "",
    format: FormatName | None = None,
    records: Iterable[Record] = (),
    issuer: Destination | None = None,
) -> list[Finding]:
    """What is wrong with the reasoning of a request. Records of its turns also tell what was altered or is foreign.

    Without `format` the body's own members tell it; without `model`, the body's.
    """
    row = FORMATS[format or guess_format(request, provider)]
    if row.bodies is None:
        raise ValueError(f"{row.name} has no requests")
    transcript = row.bodies.decode_request(request, row.dialect)
    name = model or transcript.model
    contract = resolve(Destination(provider, "", name, row.name))
    transcript = row.bodies.decode_request(request, contract.dialect)
    kept = list(records)
    identity = Identity(kept[0].provenance.tenant if kept else "")
    index: dict[Key, list[Record]] = {}
    for record in kept:
        for key in record.keys:
            index.setdefault(key, []).append(record)
    steps = walk(transcript, identity, frame_of(transcript) if contract.binds_prefix else b"").steps
    spoken_for = proven(steps, index, identity)
    matches = ((step, match_step(step, index, identity, spoken_for)) for step in steps)
    known = tuple((step, match.record) for step, match in matches if isinstance(match, Match))
    return check(Case(transcript, contract, issuer or Destination(provider, "", name, row.name), known))


def guess_format(request: bytes, provider: str = "") -> FormatName:
    """The format of a body, by the members that only one format has; chat where none tells."""
    try:
        names = msgspec.json.decode(request, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "openai_chat"
    for member, name in _TELLING:
        if member in names:
            return name
    if provider in ("anthropic", "claude") or _has_blocks(names.get("messages")):
        return "anthropic_messages"
    return "ollama_chat" if provider == "ollama" and "options" in names else "openai_chat"


def _has_blocks(messages: msgspec.Raw | None) -> bool:
    """Whether messages hold blocks that only Anthropic's format has."""
    text = bytes(messages) if messages is not None else b""
    return any(mark in text for mark in (b'"tool_use"', b'"tool_result"', b'"redacted_thinking"', b'"tool_use_id"'))
