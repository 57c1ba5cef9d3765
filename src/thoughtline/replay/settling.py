"""Adapts a request's settings to its server: what refusals taught, and what a thinking mode requires."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.bodies import switches_in
from thoughtline.formats.json_text import NULL, members, set_members
from thoughtline.formats.request_settings import Situation, changed
from thoughtline.providers import Contract
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.findings import Finding
from thoughtline.values.turns import Transcript

_EDIT_OF_THOUGHTS = "clear_thinking_20251015"


def with_settings(
    transcript: Transcript, rules: Sequence[SettingRule], contract: Contract
) -> tuple[Transcript, tuple[Finding, ...]]:
    """Return the request with these rules applied, and findings on the changes."""
    if not rules:
        return transcript, ()
    body = set_members(transcript.body, transcript.member_edits) if transcript.member_edits else transcript.body
    switch = contract.switch(transcript)
    situation = Situation(contract.thinks(transcript), switch == "off", transcript.is_streaming)
    edits, done = changed(body, rules, situation)
    for name, value in edits:
        transcript = transcript.with_member(name, value)
    wire = FORMATS[transcript.format]
    if any(name in wire.switches for name, _ in edits):
        given = members(set_members(body, edits))
        switches = switches_in([(name, given.get(name, NULL)) for name in wire.switches])
        first = switches[0][1] if switches else "unsaid"
        transcript = replace(transcript, thinking=first, switches=switches if transcript.switches else ())
    return transcript, tuple(Finding("setting", one.place, one.message, "") for one in done)


def while_thinking(contract: Contract, model: str) -> tuple[SettingRule, ...]:
    """Return what to remove when we switch thinking on: sampling, and a forced tool."""
    sampling, lowered = contract.sampling, model.lower()
    names = sampling.while_thinking
    if re.search(sampling.never, lowered):
        names = sampling.names
    elif sampling.least_top_p:
        names = (*names, "temperature", "top_p")
    rules = tuple(SettingRule(name, "drop") for name in names)
    if not contract.forces_no_tool_while_thinking:
        return rules
    values = ("true",) if re.search(contract.forces_any, lowered) else ()
    return (*rules, SettingRule("tool_choice", "unforce", values))


def while_paused(contract: Contract, model: str) -> tuple[SettingRule, ...]:
    """Return what to remove when we switch thinking off: settings that only a thinking model accepts."""
    rules = [SettingRule("context_management.edits", "drop_kind", (_EDIT_OF_THOUGHTS,))]
    if knob_for(contract, model).style == "thinking_type":
        rules += [SettingRule("reasoning_effort", "drop"), SettingRule("output_config.effort", "drop")]
    if contract.sampling.is_by_mode:
        rules += [SettingRule(name, "drop") for name in contract.sampling.names]
    return tuple(rules)
