"""Which record is the one of a step.

Evidence ranks: the same lineage, then a call whose id is one in the world, then the turns before, then session and
agent. A weak key alone is never enough: the step must show what the record showed, and its surroundings must agree.
Records that can't be told apart and differ are no match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from thoughtline.items import Item, ReasoningText, ToolCall, reasoning_of, seal_of
from thoughtline.records import Key, Record
from thoughtline.replay.keys import Evidence, Identity, Step, call_key, evidence_of, is_distinctive
from thoughtline.replay.visible import shows, visible_of

Found = Mapping[Key, Sequence[Record]]
Rank = tuple[bool, ...]


class Match(NamedTuple):
    """The record of a step, and how it was recognised."""

    record: Record
    evidence: frozenset[Evidence]


class Ambiguous(NamedTuple):
    """Several records fit and differ."""

    records: int


def match_step(step: Step, found: Found, identity: Identity) -> Match | Ambiguous | None:
    """The one record that is this step's."""
    looks = _candidates(step, found, identity)
    if len(looks) == 1:
        return looks[0] if _is_enough(looks[0], step, identity) else None
    candidates = [match for match in looks if _is_enough(match, step, identity)]
    if not candidates:
        return None
    said = [match for match in candidates if _is_what_client_has(match.record, step)]
    pool = said or _not_contradicted(candidates, looks, step, identity)
    if not pool:
        return Ambiguous(len(looks))
    best = max(_rank(match, step, identity) for match in pool)
    leaders = [match for match in pool if _rank(match, step, identity) == best]
    complete = [match for match in leaders if match.record.is_complete] or leaders
    if not said and _is_doubtful(complete[0], looks, step, identity):
        return Ambiguous(len(looks))
    if len({_replayable(match.record) for match in complete}) > 1 and not best[0]:
        return Ambiguous(len(complete))
    # In one lineage the newest wins: a turn asked again after a hang-up.
    return max(complete, key=lambda match: match.record.created_at)


def _is_doubtful(match: Match, looks: list[Match], step: Step, identity: Identity) -> bool:
    """Whether another record that looks the same has a claim as good.

    Against one that only the turns before speak for: any that follows the same turn. Against one of another session
    with the same history: one of this session that follows the same turn.
    """
    if _other_session(match, identity):
        near = [other for other in looks if _same_session(other, identity) and "before" in other.evidence]
        return any(_replayable(other.record) != _replayable(match.record) for other in near)
    if match.evidence & {"lineage", "session"} or _has_distinctive_call(match, step) or _same_session(match, identity):
        return False
    rivals = [other for other in looks if "before" in other.evidence]
    return any(_replayable(other.record) != _replayable(match.record) for other in rivals)


def _candidates(step: Step, found: Found, identity: Identity) -> list[Match]:
    evidence: dict[str, set[Evidence]] = {}
    records: dict[str, Record] = {}
    for one in step.keys:
        for record in found.get(one, ()):
            if record.provenance.tenant == identity.tenant:
                records[record.id] = record
                evidence.setdefault(record.id, set()).add(evidence_of(one))
    matches = [Match(record, frozenset(evidence[name])) for name, record in records.items()]
    return [match for match in matches if shows(step.visible, visible_of(match.record.items))]


def _is_enough(match: Match, step: Step, identity: Identity) -> bool:
    """Whether the evidence says more than that two turns look alike."""
    if match.evidence & {"lineage", "session"} or _has_distinctive_call(match, step):
        return True
    if _other_session(match, identity):
        return False
    if "context" in match.evidence:
        return True
    return bool(match.evidence & {"call", "before"}) and (
        _same_session(match, identity) or match.evidence >= {"call", "before"}
    )


def _not_contradicted(candidates: list[Match], looks: list[Match], step: Step, identity: Identity) -> list[Match]:
    """The candidates that nothing speaks against.

    Where a call's id, name and arguments name one record, another that merely looks the same is not believed. And a
    turn of calls alone may be one whose words the client dropped: if a record with words has these very calls, only the
    whole history before it makes one without words the right one.
    """
    named = [match for match in looks if "call" in match.evidence]
    here = [match for match in named if _same_session(match, identity)] or named
    if not here:
        return candidates
    pool = [match for match in candidates if match in here]
    exact = [match for match in here if visible_of(match.record.items).words == step.visible.words]
    if len(exact) < len(here):
        return [match for match in pool if match in exact and "lineage" in match.evidence] if exact else pool
    return pool


def _has_distinctive_call(match: Match, step: Step) -> bool:
    known = set(match.record.keys)
    calls = (item for item in step.items if isinstance(item, ToolCall) and item.id)
    return any(is_distinctive(call.id or "") and call_key(call) in known for call in calls)


def _other_session(match: Match, identity: Identity) -> bool:
    """Both say which session they are of, and it is not the same."""
    session = match.record.provenance.session
    return identity.session is not None and session is not None and session != identity.session


def _same_session(match: Match, identity: Identity) -> bool:
    return identity.session is not None and match.record.provenance.session == identity.session


def _rank(match: Match, step: Step, identity: Identity) -> Rank:
    return (
        "lineage" in match.evidence,
        _has_distinctive_call(match, step),
        "call" in match.evidence and _same_session(match, identity),
        "context" in match.evidence,
        "before" in match.evidence,
        _same_session(match, identity),
        _same_session(match, identity) and match.record.provenance.agent == identity.agent,
    )


def _is_what_client_has(record: Record, step: Step) -> bool:
    """Whether the reasoning a client sent back is this record's: then there is no doubt whose step it is."""
    own = tuple(_thoughts(step.items))
    return bool(own) and own == tuple(_thoughts(record.items))


def _thoughts(items: Iterable[Item]) -> Iterable[tuple[str, str]]:
    for item in items:
        seal = seal_of(item)
        text = item.text.strip() if isinstance(item, ReasoningText) else ""
        if text or seal is not None:
            yield text, seal.data if seal else ""


def _replayable(record: Record) -> tuple[tuple[str, str], ...]:
    """What would be put back: two records that agree in it are one for our purpose."""
    summaries = tuple(("", getattr(item, "summary", "")) for item in reasoning_of(record.items))
    return (*_thoughts(record.items), *summaries)
