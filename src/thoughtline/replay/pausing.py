"""How a request is told not to think: what its model's row says, written into the request as it stands."""

from __future__ import annotations

import msgspec

from thoughtline.formats import FORMATS
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers import Contract
from thoughtline.providers.thinking import switched_off
from thoughtline.values.turns import Transcript


def paused(transcript: Transcript, contract: Contract, model: str) -> list[MemberEdit]:
    """The members that switch thinking off for one request; none if this model can't be switched off."""
    wire = FORMATS[transcript.format]
    if "no_off_switch" in wire.quirks:
        return wire.unasked(transcript.body) if not contract.thinks_by_default else []
    settings = switched_off(contract, model or transcript.model)
    return [wire.thinking.edit(transcript.body, path, value) for path, value in settings]


def unasked(transcript: Transcript) -> list[MemberEdit]:
    """What takes out all that asks a model to think, for one that can't."""
    if transcript.thinking in ("unsaid", "off"):
        return []
    return FORMATS[transcript.format].unasked(transcript.body)


def wanting_ciphertext(transcript: Transcript) -> list[MemberEdit]:
    """What asks for encrypted reasoning in the answer, where its provider keeps none."""
    inclusion = FORMATS[transcript.format].inclusion
    if inclusion is None or transcript.is_stored is not False or inclusion.seals in transcript.includes:
        return []
    return [(inclusion.member, msgspec.json.encode([*transcript.includes, inclusion.seals]))]


def without_ciphertext(transcript: Transcript) -> list[MemberEdit]:
    """What no longer asks for encrypted reasoning; the rest of what a request asks for beside its answer stays."""
    inclusion = FORMATS[transcript.format].inclusion
    if inclusion is None or inclusion.seals not in transcript.includes:
        return []
    others = [name for name in transcript.includes if name != inclusion.seals]
    return [(inclusion.member, msgspec.json.encode(others) if others else None)]
