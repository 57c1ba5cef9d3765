"""A request that tells a Claude to think in a way that it does not have, in the way that it has.

Old models take a budget, new ones an effort, some can't be told not to think. What was said is kept: a budget as the
effort that covers it, an effort as its budget.
"""

from __future__ import annotations

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, encode, is_given, members, object_of
from thoughtline.providers import Contract
from thoughtline.providers.knobs import ThinkingMode
from thoughtline.providers.thinking import knob_for, settle
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import ThinkingSwitch, Transcript

_MODES: dict[ThinkingSwitch, ThinkingMode] = {"on": "enabled", "adaptive": "adaptive", "off": "disabled"}
_SWITCHES: dict[object, ThinkingSwitch] = {mode: switch for switch, mode in _MODES.items()}


def in_own_mode(transcript: Transcript, contract: Contract, model: str) -> tuple[Transcript, tuple[Finding, ...]]:
    """The request as its model takes it, and what was changed about it."""
    mode = _MODES.get(transcript.thinking)
    if mode is None or "thinking_modes" not in FORMATS[transcript.format].quirks:
        return transcript, ()
    knob = knob_for(contract, model or transcript.model)
    if not knob.modes or mode in knob.modes:
        return transcript, ()
    try:
        asked = FORMATS[transcript.format].options.decode_options(transcript.body).options
    except DecodeError:
        return transcript, ()  # the provider says what is wrong with it
    told = dict(settle(asked.thinking, contract, model or transcript.model, asked.max_tokens).members)
    became = told.get(("thinking", "type"), "disabled")
    known = members(transcript.body)
    thinking = _with(known.get("thinking", NULL), "thinking", told)
    changed = transcript.with_member("thinking", thinking if told else None)
    if "output_config" in known or ("output_config", "effort") in told:
        changed = changed.with_member("output_config", _with(known.get("output_config", NULL), "output_config", told))
    finding = Finding("forbidden", "/thinking", f"this model has no `{mode}` thinking: it is told `{became}`", "")
    return replace(changed, thinking=_SWITCHES[became]), (finding,)


def _with(raw: Raw, name: str, told: dict[tuple[str, ...], object]) -> bytes | None:
    """A member without what it said of thinking, and with what is to be said; None if nothing is left."""
    before = members(raw).items() if is_given(raw) else ()
    kept: dict[str, bytes] = {key: bytes(value) for key, value in before if key not in ("budget_tokens", "effort")}
    kept |= {path[1]: encode(value) for path, value in told.items() if path[0] == name}
    return object_of(kept.items()) if kept else None
