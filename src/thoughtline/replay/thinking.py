"""Writes into a request how its model should think, by the model's row.

Old Claude models have a budget, new ones an effort, and some can't be switched off. A request is sent in the mode that
it names until its provider refuses that mode; then its amount is kept: a budget becomes the effort that covers it, an
effort becomes its budget.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import read_or_none, span_at
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers import Contract
from thoughtline.providers.thinking import settle, switched_off
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import ThinkingSwitch, Transcript

_word = msgspec.json.Decoder(str)


def in_own_mode(transcript: Transcript, contract: Contract, model: str) -> tuple[Transcript, tuple[Finding, ...]]:
    """Return the request in a mode that its model accepts, and findings on the change. Only a mode that the provider
    has refused is changed: our table may be older than the model."""
    wire = FORMATS[transcript.format]
    modes = wire.thinking_modes
    if modes is None or not contract.refused_modes:
        return transcript, ()
    mode = _mode_in(transcript.body, modes.switch)
    if mode not in contract.refused_modes:
        return transcript, ()
    try:
        options = wire.options.decode_options(transcript.body).options
    except DecodeError:
        return transcript, ()  # the provider reports what is wrong with it
    settings = dict(settle(options.thinking, contract, model or transcript.model, options.max_tokens).members)
    became = settings.get(modes.switch, modes.words["off"])
    changed = transcript
    for name, value in modes.edits(transcript.body, settings):
        changed = changed.with_member(name, value)
    switches: dict[object, ThinkingSwitch] = {word: switch for switch, word in modes.words.items()}
    finding = Finding(
        "forbidden", f"/{modes.switch[0]}", f"this model has no `{mode}` thinking: it is told `{became}`", ""
    )
    return replace(changed, thinking=switches[became]), (finding,)


def _mode_in(body: bytes, switch: tuple[str, ...]) -> str:
    """Return the thinking mode that a request names; empty if none."""
    found = span_at(body, switch)
    value = read_or_none(_word, body[found[0] : found[1]]) if found is not None else None
    return value or ""


def paused(transcript: Transcript, contract: Contract, model: str) -> list[MemberEdit]:
    """Return the members that switch thinking off for one request; none if this model has no switch."""
    wire = FORMATS[transcript.format]
    if "no_off_switch" in wire.quirks:
        return wire.unasked(transcript.body) if not contract.thinks_by_default else []
    settings = switched_off(contract, model or transcript.model)
    return [wire.thinking.edit(transcript.body, path, value) for path, value in settings]


def unasked(transcript: Transcript) -> list[MemberEdit]:
    """Return the edits that remove every request for thinking, for a model that can't think."""
    if transcript.thinking in ("unsaid", "off"):
        return []
    return FORMATS[transcript.format].unasked(transcript.body)


def without_ciphertext(transcript: Transcript) -> list[MemberEdit]:
    """Return the edits that stop requesting encrypted reasoning; other inclusions stay."""
    inclusion = FORMATS[transcript.format].inclusion
    if inclusion is None or inclusion.seals not in transcript.includes:
        return []
    others = [name for name in transcript.includes if name != inclusion.seals]
    return [(inclusion.member, msgspec.json.encode(others) if others else None)]
