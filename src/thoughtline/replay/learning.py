"""Applies what refusals taught to a contract: built-in rows < settings < learned.

A correction is about one provider, endpoint and model, and expires. It lets the same request through at the second
attempt, and the next conversation's first request at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never, get_args

from msgspec.structs import replace

from thoughtline import providers as dialects
from thoughtline.formats import FORMATS
from thoughtline.providers import Carrier, Contract, Dialect, Rung, written_in
from thoughtline.providers.contract import PRESENCE, Unread
from thoughtline.providers.knobs import CLAUDE_BUDGETS, CLAUDE_EFFORTS, THINKING_TYPE, Knob
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.refusals import Correction, Evidence
from thoughtline.values.destination import Destination
from thoughtline.values.records import Record

FILLERS = ("", " ", ".")
"""From least to most. After the last one, thinking is switched off."""

_FIELDS: dict[str, Dialect] = {
    "reasoning_content": dialects.REASONING_CONTENT,
    "reasoning": dialects.REASONING,
    "reasoning_details": dialects.REASONING_DETAILS,
}


def corrected(contract: Contract, corrections: Iterable[Correction], target: Destination, now: float) -> Contract:
    """Return the contract with the corrections for exactly this target, oldest first."""
    for correction in sorted(corrections, key=lambda one: one.learned_at):
        where = (correction.provider, correction.endpoint, correction.model)
        is_here = where == (target.provider, target.endpoint, target.model)
        if is_here and correction.account in ("", target.account) and correction.holds_at(now):
            contract = _with(contract, correction)
    return contract


def _with(contract: Contract, correction: Correction) -> Contract:
    match correction.change:
        case "requires":
            return _requiring(contract, correction)
        case "forbids":
            return _forbidding(contract, correction.field)
        case "drops":
            return replace(contract, drops=tuple(dict.fromkeys((*contract.drops, correction.field))))
        case "refuses_filler":
            return _beyond(contract, correction.filler or "")
        case "needs_filler":
            return replace(contract, filler=contract.filler or " ")
        case "binds_prefix" | "insists":
            return replace(contract, **{correction.change: True})
        case "always_thinks":
            return _always_thinking(contract, correction)
        case "lacks_mode":
            return _in_mode(contract, correction)
        case "never_thinks":
            return _unthinking(contract, correction.field)
        case "answers_in":
            return _answering(contract, correction.field)
        case "takes_setting" | "mends" | "ignores" | "opens" | "renders":
            return _with_setting(contract, correction)
        case _:
            assert_never(correction.change)


def _always_thinking(contract: Contract, correction: Correction) -> Contract:
    contract = _in_mode(contract, correction) if correction.field == "disabled" else contract
    return replace(contract, thinks_by_default=True, ladder=_without(contract.ladder, "pause_thinking"))


def _with_setting(contract: Contract, correction: Correction) -> Contract:
    """Apply a correction about settings. Which format to use is decided before a contract is looked up."""
    if correction.change == "renders":
        return _rendering(contract, correction)
    if correction.rule is not None:
        return _setting(contract, correction.rule)
    if correction.change == "mends":
        return replace(contract, mends=tuple(dict.fromkeys((*contract.mends, correction.field))))
    if correction.change == "ignores":
        ignored = tuple(dict.fromkeys((*contract.ignored, correction.field)))
        return replace(contract, ignored=ignored, thinks_by_default=True)
    return contract


def _rendering(contract: Contract, correction: Correction) -> Contract:
    """Apply what a chat template reads. Ollama's own format has no switch for it."""
    if "chat_templates" not in FORMATS[contract.format].quirks:
        return contract
    unread = tuple(kind for kind in get_args(Unread) if kind in correction.field.split(","))
    return replace(contract, unread_turns=unread, keeping=(correction.rule,) if correction.rule is not None else ())


def _setting(contract: Contract, rule: SettingRule) -> Contract:
    """Add a rule for a setting, replacing an older one about the same thing."""
    others = tuple(one for one in contract.settings if (one.path, one.do, one.when) != (rule.path, rule.do, rule.when))
    return replace(contract, settings=(*others, rule))


def _unthinking(contract: Contract, field: str) -> Contract:
    """Don't ask a model to think that can't. If it refuses sealed reasoning, send it none either."""
    if field == "encrypted_content":
        return replace(contract, takes="nothing", kind="forbidden", scope="nowhere", ladder=(), never_thinks=True)
    return replace(contract, kind="advisory", scope="nowhere", ladder=(), never_thinks=True)


def _in_mode(contract: Contract, correction: Correction) -> Contract:
    """Use the other thinking mode for a Claude that refuses one."""
    known = knob_for(contract, correction.model)
    if correction.field == "adaptive":
        knob = Knob("", "claude_budget", budgets=CLAUDE_BUDGETS, modes=("enabled", "disabled"))
    elif correction.field == "disabled" or not known.can_be_off:
        knob = Knob("", "claude_adaptive", CLAUDE_EFFORTS, can_be_off=False, modes=("adaptive",))
    else:
        knob = Knob("", "claude_adaptive", CLAUDE_EFFORTS, modes=("adaptive", "disabled"))
    refused = (*contract.refused_modes, correction.field or "disabled")
    return replace(contract, knobs=(knob,), refused_modes=tuple(dict.fromkeys(refused)))


def _answering(contract: Contract, field: str) -> Contract:
    """Use the reasoning member that an unlisted provider's answer showed."""
    return replace(contract, dialect=written_in(contract.dialect, field)) if contract.follows_answers else contract


def learned_from_answer(record: Record, contract: Contract, now: float, ttl_seconds: float) -> Correction | None:
    """Return a correction if an answer shows a new place for reasoning, under a contract that follows answers."""
    made = record.provenance
    if made.carrier in ("", contract.dialect.carrier):
        return None
    return Correction(
        provider=made.provider,
        endpoint=made.endpoint,
        model=made.model_asked,
        change="answers_in",
        field=made.carrier,
        evidence=Evidence(200, "", ""),
        learned_at=now,
        expires_at=now + ttl_seconds,
    )


_LADDERS: dict[str, tuple[Rung, ...]] = {
    "first_call_of_step": ("sentinel",),
    "loop_head": ("pause_thinking",),
    "pairs": ("unpair",),
}
"""Fallbacks for lost seals, by where they are required."""


def _sealing(contract: Contract, correction: Correction) -> Dialect:
    """Return where a chat-shaped provider keeps its seals: an aggregator that passes on errors uses details."""
    if "dialects" not in FORMATS[contract.format].quirks or contract.dialect.carrier == "reasoning_details":
        return contract.dialect
    is_google = correction.scope == "first_call_of_step" and correction.field != "reasoning_details"
    return dialects.GOOGLE_CHAT if is_google and not correction.evidence.is_wrapped else dialects.REASONING_DETAILS


def _requiring(contract: Contract, correction: Correction) -> Contract:
    """Require reasoning from a provider that was thought not to need it."""
    scope = correction.scope or "calls"
    dialect = _sealing(contract, correction) if scope in _LADDERS else contract.dialect
    if contract.scope == scope and contract.is_strict and contract.dialect == dialect:
        return contract
    if scope == "pairs" and contract.takes == "nothing":
        return contract  # ids without partners, at a provider that would not accept the partners
    if scope == "first_call_of_step" and dialect.carrier == "reasoning_details":
        return replace(contract, takes="own", scope="nowhere", dialect=dialect, ladder=(), thinks_by_default=True)
    if scope in _LADDERS:
        return replace(
            contract,
            kind="authenticity",
            scope=scope,
            takes="own",
            dialect=dialect,
            ladder=_LADDERS[scope],
            thinks_by_default=True,
            insists=scope == "pairs",
        )
    dialect = (
        contract.dialect if contract.takes == "text" else _FIELDS.get(correction.field, dialects.REASONING_CONTENT)
    )
    return replace(
        contract,
        kind="presence",
        scope=scope,
        takes="text",
        dialect=dialect,
        ladder=PRESENCE,
        thinks_by_default=True,
        knobs=contract.knobs or (THINKING_TYPE,),  # like all models known to require text
    )


_PLACES = ("reasoning_content", "reasoning")
"""The members for plain text that most servers read."""


def _forbidding(contract: Contract, field: str) -> Contract:
    """Handle a provider that refuses a reasoning member: its content goes into the one that it reads, if any."""
    if field not in get_args(Carrier):  # not a member, but reasoning in general
        return replace(contract, name="learned", kind="forbidden", scope="nowhere", takes="nothing", ladder=())
    refused = f"messages[].{field}"
    contract = replace(contract, drops=tuple(dict.fromkeys((*contract.drops, refused))))
    left = [name for name in (contract.dialect.carrier, *_PLACES) if f"messages[].{name}" not in contract.drops]
    is_plain = contract.dialect.carrier in _PLACES
    if contract.dialect.carrier not in left and not (is_plain and left):
        return replace(contract, name="learned", kind="forbidden", scope="nowhere", takes="nothing", ladder=())
    dialect = contract.dialect if contract.dialect.carrier == left[0] else _FIELDS[left[0]]
    return replace(contract, dialect=dialect, follows_answers=False, may_seal=False)


def _beyond(contract: Contract, refused: str) -> Contract:
    """Use the next longer filler, or none after the last. A provider that refuses one also refuses empty text."""
    known = (contract.filler, *FILLERS)
    left = [filler for filler in known if len(filler.strip()) > len(refused.strip()) or len(filler) > len(refused)]
    if left:
        return replace(contract, filler=left[0], refuses_empty=True)
    return replace(contract, ladder=_without(contract.ladder, "blank"), refuses_empty=True)


def _without(ladder: tuple[Rung, ...], rung: Rung) -> tuple[Rung, ...]:
    return tuple(one for one in ladder if one != rung)
