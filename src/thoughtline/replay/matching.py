"""Which record is the one of a step.

Evidence ranks: the same lineage, then a call whose id is one in the world, then the turns before, then session and
agent. A weak key alone is never enough: the step must show what the record showed, and its surroundings must agree.
Records that can't be told apart and differ are no match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from thoughtline.items import Item, ReasoningSummary, ReasoningText, Text, ToolCall, reasoning_of, seal_of
from thoughtline.records import Key, Record
from thoughtline.replay.keys import Evidence, Identity, Step, call_key, evidence_of, is_distinctive, plain_token
from thoughtline.replay.visible import Visible, is_same_call, shows, shows_glued, visible_of

Found = Mapping[Key, Sequence[Record]]
Rank = tuple[bool, ...]

MOST_PER_KEY = 16
"""Records looked at for one key: as many as a store gives. More that share a key are not told apart by looking."""
_BY_LINEAGE: frozenset[Evidence] = frozenset({"lineage"})


class Match(NamedTuple):
    """The record of a step, and how it was recognised. `is_glued`: its reasoning stands in the visible text."""

    record: Record
    evidence: frozenset[Evidence]
    visible: Visible
    is_glued: bool = False


class Ambiguous(NamedTuple):
    """Several records fit and differ."""

    records: int


def match_step(
    step: Step, found: Found, identity: Identity, used: AbstractSet[str] = frozenset()
) -> Match | Ambiguous | None:
    """The one record that is this step's. `used` are the records that earlier steps of the request were found to be."""
    known = match_by_lineage(step, found, identity)
    if known is not None:
        return known
    looks = _candidates(step, found, identity)
    candidates = [match for match in looks if _is_enough(match, step, identity, used)]
    if not candidates:
        return None
    if len(looks) == 1:
        return looks[0]
    said = [match for match in candidates if _is_what_client_has(match.record, step)]
    pool = said or _not_contradicted(candidates, looks, step, identity)
    if not pool:
        return Ambiguous(len(looks))
    best = max(_rank(match, step, identity) for match in pool)
    leaders = [match for match in pool if _rank(match, step, identity) == best]
    complete = [match for match in leaders if match.record.is_complete] or leaders
    if not said and _is_doubtful(complete[0], looks, step, identity):
        return Ambiguous(len(looks))
    if len({replayable(match.record) for match in complete}) > 1 and not best[0]:
        return Ambiguous(len(complete))
    # In one lineage the newest wins: a turn asked again after a hang-up.
    return max(complete, key=lambda match: match.record.created_at)


def match_by_lineage(step: Step, found: Found, identity: Identity) -> Match | None:
    """The one record with the very history of a step, if nothing can speak against it.

    That could be only a record of this session where it is of another, or the reasoning that the client sent with the
    step. So whatever other keys would find, this is the match.
    """
    records = found.get(step.lineage, ()) if step.lineage is not None else ()
    if len(records) != 1:
        return None
    record = records[0]
    if step.lineage not in record.keys or record.provenance.tenant != identity.tenant:
        return None
    match = Match(record, _BY_LINEAGE, step.visible)
    if _other_session(match, identity):
        return None
    own = tuple(_thoughts(step.items))
    return match if not own or own == tuple(_thoughts(record.items)) else None


def match_merged(step: Step, found: Found, identity: Identity) -> tuple[Record, ...]:
    """The records of several steps that a client wrote into one, in their order: together they made all calls."""
    records: list[Record] = []
    left = [item for item in step.items if isinstance(item, ToolCall)]
    while left:
        named = [record for record in found.get(call_key(left[0]), ()) if record.provenance.tenant == identity.tenant]
        fitting = [record for record in named if _takes_all(record, left, step.visible)]
        if len({replayable(record) for record in fitting}) != 1 or not is_distinctive(left[0].id or ""):
            return ()
        record = max(fitting, key=lambda one: one.created_at)
        records.append(record)
        left = [
            call for call in left if not any(is_same_call(call, own) and call.id == own.id for own in _calls(record))
        ]
    return tuple(records) if len(records) > 1 else ()


def _takes_all(record: Record, calls: Sequence[ToolCall], visible: Visible) -> bool:
    """Whether every call of a record is among these, and its words among those of the step."""
    known = {call_key(call) for call in calls}
    return all(call_key(call) in known for call in _calls(record)) and visible_of(record.items).words in visible.words


def _calls(record: Record) -> list[ToolCall]:
    return [item for item in record.items if isinstance(item, ToolCall)]


def records_of_seals(step: Step, found: Found, identity: Identity) -> list[Record]:
    """The records whose seals a client sent with this step, whatever else it shows."""
    keys = [one for one in step.keys if evidence_of(one) == "seal"]
    records = {record.id: record for one in keys for record in found.get(one, ())}
    return [record for record in records.values() if record.provenance.tenant == identity.tenant]


def _candidates(step: Step, found: Found, identity: Identity) -> list[Match]:
    evidence: dict[str, set[Evidence]] = {}
    records: dict[str, Record] = {}
    for one in step.keys:
        for record in found.get(one, ())[:MOST_PER_KEY]:
            if record.provenance.tenant == identity.tenant:
                records[record.id] = record
                evidence.setdefault(record.id, set()).add(evidence_of(one))
    matches = []
    for name, record in records.items():
        visible = visible_of(record.items)
        if shows(step.visible, visible):
            matches.append(Match(record, frozenset(evidence[name]), visible))
        elif shows_glued(step.visible, visible, thought_of(record.items)):
            matches.append(Match(record, frozenset(evidence[name]), visible, True))
    return matches


def thought_of(items: Iterable[Item]) -> str:
    """The reasoning of a turn that a person can read."""
    texts = []
    for item in items:
        if isinstance(item, ReasoningText):
            texts.append(item.text)
        elif isinstance(item, ReasoningSummary):
            texts.append(item.summary)
    return "".join(texts)


def _is_enough(match: Match, step: Step, identity: Identity, used: AbstractSet[str]) -> bool:
    """Whether the evidence says more than that two turns look alike."""
    if match.evidence & {"lineage", "place", "session", "seal"} or _has_distinctive_call(match, step):
        return True
    if "call" in match.evidence and match.record.id in used:
        return True
    if _other_session(match, identity):
        return False
    if "context" in match.evidence:
        return True
    return bool(match.evidence & {"call", "before"}) and (
        _same_session(match, identity) or match.evidence >= {"call", "before"}
    )


def _is_doubtful(match: Match, looks: list[Match], step: Step, identity: Identity) -> bool:
    """Whether another record that looks the same has a claim as good.

    Against one that only the turns before speak for: any that follows the same turn. Against one of another session
    with the same history: one of this session that follows the same turn or made these very calls.
    """
    if _other_session(match, identity):
        near = [other for other in looks if _same_session(other, identity) and other.evidence & {"before", "call"}]
        return any(replayable(other.record) != replayable(match.record) for other in near)
    if match.evidence & {"lineage", "place", "session", "seal"} or _has_distinctive_call(match, step):
        return False
    if _same_session(match, identity):
        return False
    rivals = [other for other in looks if "before" in other.evidence]
    return any(replayable(other.record) != replayable(match.record) for other in rivals)


def _not_contradicted(candidates: list[Match], looks: list[Match], step: Step, identity: Identity) -> list[Match]:
    """The candidates that nothing speaks against.

    The whole history outweighs an id. Without it, where a call's id, name and arguments name one record, another that
    merely looks the same is not believed; and a turn of calls alone may be one whose words the client dropped, so a
    record without words is not believed beside one with words and these very calls.
    """
    whole = [match for match in candidates if "lineage" in match.evidence]
    if whole:
        return whole
    named = [match for match in looks if "call" in match.evidence]
    here = [match for match in named if _same_session(match, identity)] or named
    if not here:
        return candidates
    pool = [match for match in candidates if match in here]
    exact = [match for match in here if match.visible.words == step.visible.words]
    return pool if not exact or len(exact) == len(here) else []


def _has_distinctive_call(match: Match, step: Step) -> bool:
    if "call" not in match.evidence:
        return False
    known = set(match.record.keys)
    calls = (item for item in step.items if isinstance(item, ToolCall) and item.id)
    return any(is_distinctive(call.id or "") and call_key(call) in known for call in calls)


def _other_session(match: Match, identity: Identity) -> bool:
    """Both say which session they are of, and it is not the same."""
    session = match.record.provenance.told_session
    return identity.session is not None and session is not None and session != identity.session


def _same_session(match: Match, identity: Identity) -> bool:
    return identity.session is not None and match.record.provenance.told_session == identity.session


def _rank(match: Match, step: Step, identity: Identity) -> Rank:
    is_here = _same_session(match, identity)
    return (
        "lineage" in match.evidence,
        _says_exactly(match.record.items, step.items),
        _has_distinctive_call(match, step) or "seal" in match.evidence,
        "place" in match.evidence,
        "call" in match.evidence and is_here,
        "context" in match.evidence,
        "before" in match.evidence,
        is_here,
        is_here and match.record.provenance.agent == identity.agent,
    )


def _says_exactly(made: Iterable[Item], shown: Iterable[Item]) -> bool:
    """Whether the words are the same to the last inner blank: two answers may differ in nothing else."""
    return _words(made) == _words(shown)


def _words(items: Iterable[Item]) -> str:
    return "".join(item.text for item in items if isinstance(item, Text)).strip()


def _is_what_client_has(record: Record, step: Step) -> bool:
    """Whether the reasoning a client sent back is this record's: then there is no doubt whose step it is."""
    own = tuple(_thoughts(step.items))
    return bool(own) and own == tuple(_thoughts(record.items))


def _thoughts(items: Iterable[Item]) -> Iterable[tuple[str, str]]:
    for item in items:
        seal = seal_of(item)
        text = item.text.strip() if isinstance(item, ReasoningText) else ""
        if text or seal is not None:
            yield text, plain_token(seal.data) if seal else ""


def replayable(record: Record) -> tuple[tuple[str, str], ...]:
    """What would be put back: two records that agree in it are one for our purpose."""
    summaries = tuple(("", getattr(item, "summary", "")) for item in reasoning_of(record.items))
    return (*_thoughts(record.items), *summaries)
