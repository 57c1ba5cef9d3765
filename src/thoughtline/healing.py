"""What a refusal changes about the request that was refused: the contract it is planned by, and the policy.

A refusal is about what it names. A member that a provider does not know is left out, and nothing else; a seal that it
can't read likewise. Only a refusal of reasoning as such changes what is done about reasoning.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.leaving_out import pattern_at
from thoughtline.lessons import TTL_SECONDS
from thoughtline.providers import Contract
from thoughtline.replay.keys import seal_key
from thoughtline.replay.learning import corrected
from thoughtline.replay.plans import Policy
from thoughtline.replay.refusals import Correction, Refusal, also_named, classify, learn
from thoughtline.values.destination import Destination
from thoughtline.values.items import seal_of
from thoughtline.values.records import Key

_MOST_PLACES = 1024
"""Elements that are looked at for a member whose place counts in a request that a relay wrote."""


class Sent(NamedTuple):
    """A request as it was refused. `filler` is the least that stood for reasoning in it, if anything did."""

    body: bytes
    target: Destination
    contract: Contract
    policy: Policy
    filler: str | None


class Healed(NamedTuple):
    """What to plan it by instead, and what is worth knowing if that helps."""

    contract: Contract
    policy: Policy
    corrections: tuple[Correction, ...]


def heal(status: int, answer: bytes, sent: Sent, now: float) -> Healed | None:
    """What a refusal teaches; None if it is not ours to heal."""
    refusal = classify(status, answer)
    if refusal is None or refusal.remedy in ("pass_on", "restore_exact"):
        return None
    if refusal.remedy in ("strip_field", "drop_member"):
        return _without_named(also_named(status, answer), sent, now)
    contract, lessons = _taught(refusal, sent, now)
    return Healed(contract, _policy(refusal, sent), lessons)


def _taught(refusal: Refusal, sent: Sent, now: float) -> tuple[Contract, tuple[Correction, ...]]:
    """The contract with what the refusal says of this target, and the lesson if it says anything new.

    Where it is known already which turns must have reasoning, it was the filler that did not pass.
    """
    target = sent.target
    for filler in (None, sent.filler):
        lesson = learn(
            refusal,
            target.provider,
            target.endpoint,
            model=target.model,
            now=now,
            ttl_seconds=TTL_SECONDS,
            sent_filler=filler,
        )
        contract = corrected(sent.contract, (lesson,), target, now) if lesson else sent.contract
        if lesson and contract != sent.contract:
            return contract, (lesson,)
    return sent.contract, ()


def _policy(refusal: Refusal, sent: Sent) -> Policy:
    match refusal.remedy:
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
    """Without the members that are named, each of them learned unless it is only one too many of two."""
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
    """The pattern of the member that a refusal names, if it was sent. A relay's places are those of its own request."""
    if refusal.member:
        return refusal.member
    place = refusal.place if refusal.place != f"/{refusal.field}" else ""
    found = pattern_at(body, place, refusal.field)
    outer, *rest = place.strip("/").split("/")
    if found is not None or not refusal.evidence.is_wrapped or not rest:
        return found
    inner = "/".join(["", *rest[1:]])
    places = (f"/{outer}/{at}{inner if inner != '/' else ''}" for at in range(_MOST_PLACES))
    return next((found for place in places if (found := pattern_at(body, place, refusal.field))), None)


def _seals_at(sent: Sent, refusal: Refusal) -> frozenset[Key]:
    """The seals that a refusal is about: those of the element it names, else all that were sent."""
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
            if is_named or (is_here and (is_it or (inner is None and turn.spans == 1))):
                named.append(key)
    return frozenset(named or every)
