"""What a provider's error changes for the rejected request: its contract and its policy.

An error applies to what it names. A member that a provider does not know is removed, and nothing else; likewise a seal
that it can't read. Only an error about reasoning in general changes how reasoning is handled. An error about settings
changes those that it names (`replay/setting_refusals.py`).
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from thoughtline.engine.learned import TTL_SECONDS
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, members
from thoughtline.formats.leaving_out import pattern_at
from thoughtline.providers import Contract
from thoughtline.providers.refusals import Remedy, Rule
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.keys import seal_key
from thoughtline.replay.learning import corrected
from thoughtline.replay.links import binding_of
from thoughtline.replay.plans import Policy
from thoughtline.replay.refusals import (
    Change,
    Correction,
    Evidence,
    Refusal,
    also_named,
    classify,
    fingerprint_of,
    learn,
)
from thoughtline.replay.setting_refusals import Refused, SettingFix, read_fix
from thoughtline.values.destination import Destination
from thoughtline.values.items import seal_of
from thoughtline.values.records import Key

_MAX_PLACES = 1024
"""How many elements are searched for a member, if its position is that of a request rewritten by a relay."""


class Sent(NamedTuple):
    """A request as it was rejected. `filler` is the minimal placeholder for reasoning in it, if any.

    `said_off` are members that switch thinking off; `says_thinking`: a member switches it on; `thinks`: the model
    thinks.
    """

    body: bytes
    target: Destination
    contract: Contract
    policy: Policy
    filler: str | None
    said_off: tuple[str, ...] = ()
    says_thinking: bool = False
    thinks: bool = False


class Healed(NamedTuple):
    """The new contract and policy, and the corrections to keep if they help. `is_setting`: only settings change."""

    contract: Contract
    policy: Policy
    corrections: tuple[Correction, ...]
    is_setting: bool = False


def heal(status: int, answer: bytes, sent: Sent, now: float) -> Healed | None:
    """The changes for an error; None if we can't heal it."""
    refusal = classify(status, answer)
    if refusal is None:
        fix = fix_for(status, answer, sent)
        return _with_fix(fix, status, sent, now) if fix is not None and not fix.doors and not fix.closed else None
    if refusal.remedy in ("pass_on", "restore_exact"):
        return None
    if refusal.rule == "bound-prefix-changed" and _wants_error(sent.body):
        return None  # the client asked for it
    if refusal.remedy in ("strip_field", "drop_member"):
        return _without_named(also_named(status, answer), sent, now)
    ignoring = _ignoring(refusal.evidence, sent, now) if refusal.rule == "missing" else ()
    sent = sent._replace(contract=corrected(sent.contract, ignoring, sent.target, now))
    contract, lessons = _taught(refusal, sent, now)
    if not ignoring and not lessons:
        contract, lessons = _insisting(refusal, sent, now)
    return Healed(contract, _policy(refusal, sent), (*ignoring, *lessons))


def read_refusal(status: int, answer: bytes, sent: Sent) -> Refusal | None:
    """What an error is about, for display; None if it is about neither reasoning nor settings."""
    refusal = classify(status, answer)
    fix = fix_for(status, answer, sent) if refusal is None else None
    if fix is None:
        return refusal
    evidence = Evidence(status, "", fingerprint_of(fix.sentence), fix.is_wrapped)
    if fix.doors or fix.closed:
        return _refusal("door", "change_door", ", ".join(fix.doors), evidence=evidence)
    place = f"/{fix.fields[0]}".replace(".", "/")
    return _refusal("setting", "change_setting", ", ".join(fix.fields), evidence=evidence, place=place)


def _refusal(rule: Rule, remedy: Remedy, field: str, *, evidence: Evidence, place: str = "") -> Refusal:
    return Refusal(rule, "", remedy, field=field, place=place, evidence=evidence)


def doors_named(status: int, answer: bytes, sent: Sent) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Endpoints that an error offers, and those that it rules out; None if it is not about endpoints."""
    fix = fix_for(status, answer, sent) if classify(status, answer) is None else None
    return (fix.doors, fix.closed) if fix is not None and (fix.doors or fix.closed) else None


def fix_for(status: int, answer: bytes, sent: Sent) -> SettingFix | None:
    """The fix for an error about settings."""
    inside = FORMATS[sent.target.format].inside
    try:
        body = bytes(members(sent.body).get(inside, NULL)) if inside else sent.body
        members(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # not JSON: there are no settings to change
    can_force_any = re.search(sent.contract.forces_any, sent.target.model.lower()) is not None
    style = knob_for(sent.contract, sent.target.model).style
    refused = Refused(
        body,
        sent.thinks,
        sent.says_thinking,
        can_force_any=can_force_any,
        has_modes=FORMATS[sent.target.format].thinking_modes is not None,
        knows_effort=style in ("reasoning_effort", "responses") and bool(sent.contract.knobs),
    )
    return read_fix(status, answer, refused)


def _with_fix(fix: SettingFix, status: int, sent: Sent, now: float) -> Healed:
    """The settings as the error demands. Each rule is learned separately."""
    evidence = Evidence(status, "", fingerprint_of(fix.sentence), fix.is_wrapped)
    if fix.mode:
        refusal = _refusal("thinking-mode", "adapt_thinking", fix.mode, evidence=evidence)
        contract, lessons = _taught(refusal, sent, now)
        return Healed(contract, sent.policy, lessons, is_setting=True)
    lesson = partial(_lesson, sent, evidence, now)
    account = sent.target.account if fix.is_accounts else ""
    lessons = tuple(lesson(change="takes_setting", field=rule.path, rule=rule, account=account) for rule in fix.rules)
    if fix.is_always_on:
        lessons = (*lessons, lesson(change="always_thinks", field="reasoning"))
    if fix.is_lasting:
        lessons = (*lessons, *(lesson(change="mends", field=name) for name in fix.mends))
        policy = sent.policy
    else:
        policy = replace(sent.policy, mends=(*sent.policy.mends, *fix.mends))
    return Healed(corrected(sent.contract, lessons, sent.target, now), policy, lessons, is_setting=True)


def _lesson(
    sent: Sent,
    evidence: Evidence,
    now: float,
    *,
    change: Change,
    field: str,
    rule: SettingRule | None = None,
    account: str = "",
) -> Correction:
    target = sent.target
    return Correction(
        target.provider,
        target.endpoint,
        target.model,
        change=change,
        field=field,
        evidence=evidence,
        learned_at=now,
        expires_at=now + TTL_SECONDS,
        rule=rule,
        account=account,
    )


def _ignoring(evidence: Evidence, sent: Sent, now: float) -> tuple[Correction, ...]:
    """A model that demands its reasoning back has been thinking: the member that should have switched it off has no
    effect.
    """
    return tuple(_lesson(sent, evidence, now, change="ignores", field=name) for name in sent.said_off)


def _taught(refusal: Refusal, sent: Sent, now: float) -> tuple[Contract, tuple[Correction, ...]]:
    """The contract with the error's information about this target, and the correction if it is new.

    If the contract already knew which turns must have reasoning, the filler was rejected.
    """
    target = sent.target
    account = target.account if refusal.rule == "bound-prefix-changed" else ""
    for filler in (None, sent.filler):
        lesson = _learned(refusal, target, now, filler)
        lesson = replace(lesson, account=account) if lesson and account else lesson
        contract = corrected(sent.contract, (lesson,), target, now) if lesson else sent.contract
        if lesson and contract != sent.contract:
            return contract, (lesson,)
    return sent.contract, ()


def _insisting(refusal: Refusal, sent: Sent, now: float) -> tuple[Contract, tuple[Correction, ...]]:
    """A known demand, met as we understood it: it also applies to turns that we thought were exempt."""
    lesson = _learned(refusal, sent.target, now)
    if lesson is None or lesson.change != "requires" or sent.contract.insists:
        return sent.contract, ()
    lesson = replace(lesson, change="insists")
    return corrected(sent.contract, (lesson,), sent.target, now), (lesson,)


def _learned(refusal: Refusal, target: Destination, now: float, filler: str | None = None) -> Correction | None:
    return learn(
        refusal,
        target.provider,
        target.endpoint,
        model=target.model,
        now=now,
        ttl_seconds=TTL_SECONDS,
        sent_filler=filler,
    )


def _wants_error(body: bytes) -> bool:
    """Whether a request asks to reject blocks of another conversation."""
    return binding_of(body) == "error"


def _policy(refusal: Refusal, sent: Sent) -> Policy:
    match refusal.remedy:
        case "drop_block" if refusal.rule == "bound-prefix-changed":
            return replace(sent.policy, cut=sent.policy.cut | _seals_at(sent, refusal, and_later=True))
        case "strip_seal" | "drop_block" | "drop_item":
            return replace(sent.policy, refused=sent.policy.refused | _seals_at(sent, refusal))
        case "unpair":
            return replace(sent.policy, drops_ids=True)
        case "pause_thinking":
            return replace(sent.policy, pauses_thinking=True)
        case "bare_loop":
            return replace(sent.policy, bares_loop=True)
        case _:
            return sent.policy


def _without_named(refusals: tuple[Refusal, ...], sent: Sent, now: float) -> Healed:
    """Without the named members, each of them learned unless it only conflicts with another one."""
    lessons: tuple[Correction, ...] = ()
    for refusal in refusals:
        if refusal.remedy == "drop_member":
            pattern = _pattern(refusal, sent.body)
            if pattern is None:
                continue
            if refusal.rule != "forbidden":
                sent = sent._replace(policy=replace(sent.policy, drops=(*sent.policy.drops, pattern)))
                continue
            refusal = replace(refusal, field=pattern)
        contract, more = _taught(refusal, sent, now)
        sent, lessons = sent._replace(contract=contract), (*lessons, *more)
    return Healed(sent.contract, sent.policy, lessons)


def _pattern(refusal: Refusal, body: bytes) -> str | None:
    """The pattern of the member that an error names, if it was sent. A relay's positions are those of
    its own request.
    """
    if refusal.member:
        return refusal.member
    place = refusal.place if refusal.place != f"/{refusal.field}" else ""
    found = pattern_at(body, place, refusal.field)
    outer, *rest = place.strip("/").split("/")
    if found is not None or not refusal.evidence.is_wrapped or not rest:
        return found
    inner = "/".join(["", *rest[1:]])
    places = (f"/{outer}/{at}{inner if inner != '/' else ''}" for at in range(_MAX_PLACES))
    return next((found for place in places if (found := pattern_at(body, place, refusal.field))), None)


def _seals_at(sent: Sent, refusal: Refusal, *, and_later: bool = False) -> frozenset[Key]:
    """The seals that an error is about: those of the element it names, else all that were sent. `and_later`: also those
    after it.
    """
    request = FORMATS[sent.target.format].bodies.decode_request(sent.body, sent.contract.dialect)
    place = "" if refusal.evidence.is_wrapped else refusal.place
    steps = place.strip("/").split("/")
    at = int(steps[1]) if len(steps) > 1 and steps[1].isdecimal() else None
    inner = int(steps[3]) if len(steps) > 3 and steps[3].isdecimal() else None
    every: list[Key] = []
    named: list[Key] = []
    for turn in request.turns:
        for number, item in enumerate(turn.items):
            seal = seal_of(item)
            if seal is None or not seal.data:
                continue
            key = seal_key(seal.data)
            every.append(key)
            is_here = at is not None and turn.at <= at < turn.at + turn.spans
            is_it = number == (at - turn.at if turn.spans > 1 and at is not None else inner)
            is_named = bool(place) and getattr(item, "id", None) == place
            if (and_later and named) or is_named or (is_here and (is_it or (inner is None and turn.spans == 1))):
                named.append(key)
    return frozenset(named or every)
