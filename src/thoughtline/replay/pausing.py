"""How a request is told not to think: what its model's row says, written into the request as it stands."""

from __future__ import annotations

from typing import Any

import msgspec

from thoughtline.formats import FORMATS
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers import Contract
from thoughtline.providers.thinking import switched_off
from thoughtline.values.turns import Transcript

CIPHERTEXT = "reasoning.encrypted_content"
"""What a request includes to get encrypted reasoning from the Responses API."""

_CONFIGS = ("generationConfig", "generation_config")


def paused(transcript: Transcript, contract: Contract, model: str) -> list[MemberEdit]:
    """The members that switch thinking off for one request; none if this model can't be switched off."""
    wire = FORMATS[transcript.format]
    if "no_off_switch" in wire.quirks:
        return wire.unasked(transcript.body) if not contract.thinks_by_default else []
    return [_written(path, value, transcript.body) for path, value in switched_off(contract, model or transcript.model)]


def _written(path: tuple[str, ...], value: object, body: bytes) -> MemberEdit:
    """A member with a value set inside it. What asked for thinking beside it goes, and other settings stay."""
    given: dict[str, Any] = msgspec.json.decode(body)
    name = next((one for one in _CONFIGS if one in given), path[0]) if path[0] in _CONFIGS else path[0]
    for step in reversed(path[1:]):
        value = {step: value}
    if isinstance(value, dict) and len(path) > 1 and name != "thinking" and isinstance(given.get(name), dict):
        others = {key: held for key, held in given[name].items() if key not in ("thinking_config", "max_tokens")}
        value = {**others, **value}
    return name, msgspec.json.encode(value)


def unasked(transcript: Transcript) -> list[MemberEdit]:
    """What takes out all that asks a model to think, for one that can't."""
    if transcript.thinking in ("unsaid", "off"):
        return []
    return FORMATS[transcript.format].unasked(transcript.body)


def wanting_ciphertext(transcript: Transcript) -> list[MemberEdit]:
    """What asks for encrypted reasoning in the answer, where its provider keeps none."""
    if transcript.is_stored is not False or CIPHERTEXT in transcript.includes:
        return []
    return [("include", msgspec.json.encode([*transcript.includes, CIPHERTEXT]))]


def without_ciphertext(transcript: Transcript) -> list[MemberEdit]:
    """What no longer asks for encrypted reasoning; the rest of what a request asks for beside its answer stays."""
    if CIPHERTEXT not in transcript.includes:
        return []
    others = [name for name in transcript.includes if name != CIPHERTEXT]
    return [("include", msgspec.json.encode(others) if others else None)]
