"""Which record is the one of a step: the rule of identity (`docs/identity.md`), row by row.

In each example a model called `ls` and its thought was stored; then a client sends the step again, without the thought.

    row          the step and the record                example                                        found
    same         same frame, end user and history       "Be brief." · Look. · ls as call_1, again      by lineage
    other-user   different end users                    the same for `user` anna, then for bert        never
    other-frame  another frame, and no proof            "Be brief." became "Be long."; call_1          never
    unique-id    an id that is unique in the world      the same; call_9fQ2mZx81LkPq7Rt                by its call
    seal         a signature or ciphertext              the same; the client kept a signature          by the seal
    session      the session of one conversation        the same; call_1, x-thoughtline-session: 42    by the session
    long-run     three turns in a row as they were      the opening was rewritten; results of 256      by the chain
                                                        characters and more stayed
    ranked       same history, other model or tools     two models, asked in the same words            its own model's
    several      several fit, and differ                the same answer twice, with two thoughts       none: ambiguous
    different    the step shows something else          ls became pwd                                  none

What is found here is a proposal: `chains.py` makes one chain of all steps of a request, and lets through only what the
rule allows. `tests/replay/test_rule_of_identity.py` has one test per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

from thoughtline.replay.ids import is_distinctive, random_parts
from thoughtline.replay.keys import (
    ModelStep,
    call_key,
    evidence_of,
    keys_of_items,
    place_after,
    said_by_results,
    session_entry,
    unique_call_keys,
)
from thoughtline.replay.plans import Found, Match, is_of_other_session, match_by_lineage, thoughts_of
from thoughtline.replay.visible import Visible, is_same_call, shown_of, shows, shows_glued, visible_of
from thoughtline.values.identity import Identity
from thoughtline.values.items import (
    Item,
    Text,
    ToolCall,
    Unknown,
    readable_text,
    reasoning_of,
)
from thoughtline.values.outcome import Evidence
from thoughtline.values.records import MAX_PER_KEY, UNKNOWN_PARENT, Key, Record

Rank = tuple[int, ...]

_TELLING = 6
"""Minimum length of a part of an id that can identify it."""


_WEAK = frozenset[Evidence](("context", "before", "session", "place", "outline"))
"""Evidence that several turns may share: it counts only if all of them are read."""

_STRONGEST: tuple[Evidence, ...] = (
    "lineage",
    "seal",
    "item",
    "outline",
    "call",
    "place",
    "context",
    "before",
    "session",
)


class Look(NamedTuple):
    """A record that looks like a step, and how it was found. `is_in_scope`: it has the frame and end user of the
    request. `is_asked_the_same`: the messages since the turn before it are the same as in the request."""

    match: Match
    evidence: frozenset[Evidence]
    visible: Visible
    is_in_scope: bool
    is_asked_the_same: bool

    @property
    def record(self) -> Record:
        return self.match.record

    @property
    def follows_the_same(self) -> bool:
        """Whether the messages before the record are the same as those before the step."""
        is_outlined = "outline" in self.evidence and self.is_asked_the_same
        return is_outlined or bool(self.evidence & {"lineage", "place", "context", "before"})


class Ambiguous(NamedTuple):
    """Several records fit and differ, or one fits without proof that it belongs to the step."""

    records: int

    @property
    def message(self) -> str:
        if self.records > 1:
            return f"{self.records} records fit this turn and differ"
        return "a record looks like this turn, and nothing proves that it is of this conversation"


def match_step(
    step: ModelStep, found: Found, identity: Identity, used: AbstractSet[str] = frozenset()
) -> Match | Ambiguous | None:
    """Return the only record of this step. `used`: records already matched to earlier steps, or corroborated by other
    steps (`witnesses.py`)."""
    return match_by_lineage(step, found, identity) or match_by_evidence(step, found, identity, used)


def match_by_evidence(
    step: ModelStep, found: Found, identity: Identity, used: AbstractSet[str] = frozenset()
) -> Match | Ambiguous | None:
    """The same for a step that its lineage does not settle."""
    looks = looks_of(step, found, identity)
    looks = _not_renamed(looks, step, found) if looks else looks
    candidates = [look for look in looks if _is_enough(look, step, identity, used)]
    if not candidates:
        return None
    if len(looks) == 1:
        return None if _is_merged(looks[0], step, found, identity) else looks[0].match
    confirmed = [look for look in candidates if _is_what_client_has(look.record, step)]
    pool = confirmed or _not_contradicted(candidates, looks, step, identity)
    if not pool:
        return Ambiguous(len(looks))
    best = max(_rank(look, step, identity) for look in pool)
    leaders = [look for look in pool if _rank(look, step, identity) == best]
    complete = [look for look in leaders if look.record.is_complete] or leaders
    is_proven = "outline" in complete[0].evidence and complete[0].record.id in used
    if not confirmed and not is_proven and _is_doubtful(complete[0], looks, step, identity):
        return Ambiguous(len(looks))
    if not confirmed and _is_guess(complete[0], looks, step, identity):
        return Ambiguous(len(looks))
    if _is_merged(complete[0], step, found, identity):
        return None
    # A turn requested again after a disconnect: the client has the answer whose end it received.
    seen = [look for look in complete if look.record.is_seen] or complete
    if len({replayable(look.record) for look in seen}) > 1:
        return Ambiguous(len(seen))
    return max(seen, key=lambda look: look.record.created_at).match


def match_by_names(step: ModelStep, found: Found, identity: Identity) -> Match | None:
    """Return the only record that made all calls of a step, if each of their ids is globally unique: in any context, no
    other record can be the step's."""
    some = [found.get(one, ()) for one in step.names] if not step.parts else []
    if not some or any(len(records) != 1 or records[0].id != some[0][0].id for records in some):
        return None
    record = some[0][0]
    if not _is_of(identity, record) or step.spot.scope.is_of_other_user(record):
        return None
    if not shows(step.visible, visible_of(record.items)):
        return None
    return Match(record, evidence=evidence_of_names(step, record))


def evidence_of_names(step: ModelStep, record: Record, *, is_moved: bool = False) -> Evidence:
    """Return the strongest evidence. `is_moved`: everything before it is different."""
    if step.lineage in record.keys and not is_moved:
        return "lineage"
    seals, names = keys_of_items(step.items)
    shared = {evidence_of(one) for one in (*seals, *names) if one in record.keys}
    return "seal" if "seal" in shared else "item" if "item" in shared else "call"


def match_merged(
    step: ModelStep,
    found: Found,
    identity: Identity,
    used: AbstractSet[str] = frozenset(),
    place: Key | None = None,
) -> tuple[Record, ...]:
    """Return the records of several steps that a client wrote into one, in order: together they made all calls.

    Repeated ids prove nothing, but places do: each record must follow the one before it and the results of its calls,
    and the first must be at the step's place, or at `place` if that is known otherwise. `used` is as in `match_step`.
    """
    calls = [item for item in step.items if isinstance(item, ToolCall)]
    if len(calls) < 2:
        return ()
    records: list[Record] = []
    scope = step.spot.scope
    places: set[Key | None] = {step.spot.place(), place}
    left, visible = [(call, call_key(call)) for call in calls], step.visible
    while left:
        first, its_key = left[0]
        named = [one for one in found.get(its_key, ()) if _is_of(identity, one) and not scope.is_of_other_user(one)]
        keys = {one for _, one in left}
        fitting = [record for record in named if _takes_all(record, keys, visible)]
        if not is_distinctive(first.id or "", first.name):
            fitting = [one for one in fitting if one.id in used or places & set(one.keys) or is_here(one, identity)]
        if len({replayable(record) for record in fitting}) != 1:
            return ()
        record = max(fitting, key=lambda one: one.created_at)
        records.append(record)
        places = {_place_after_calls(step, record)}
        made = _calls(record)
        left = [one for one in left if not any(one[0].id == own.id and is_same_call(one[0], own) for own in made)]
    return tuple(records) if len(records) > 1 else ()


def _place_after_calls(step: ModelStep, record: Record) -> Key | None:
    own = [one for one in step.results if one.call_id in record.call_ids]
    return place_after(record, [said_by_results(own, shown_of(record.items).calls)]) if own else None


def match_joined(step: ModelStep, found: Found, identity: Identity) -> tuple[Record, ...]:
    """Return the records of a turn that a model gave in several answers, each continuing the last, and that the client
    wrote as one: Claude pauses, and is asked to continue."""
    ends = [record for record in found.get(step.spot.going_on(), ()) if _is_of(identity, record)]
    if not ends or len(ends) >= MAX_PER_KEY:
        return ()
    here = {record.id: record for record in (*found.get(step.spot.place(), ()), *ends) if _is_of(identity, record)}
    shown, known = step.visible, list[tuple[Record, ...]]()
    for last in ends:
        records = [last]
        while (before := here.get(records[0].parent)) is not None and len(records) < len(here):
            records.insert(0, before)
        if len(records) > 1 and _say_together(records, shown):
            known.append(tuple(records))
    return known[0] if len({tuple(map(replayable, records)) for records in known}) == 1 else ()


def _say_together(records: Sequence[Record], shown: Visible) -> bool:
    all_of_them = [visible_of(record.items) for record in records]
    words = "".join(one.words for one in all_of_them)
    calls = [call for one in all_of_them for call in one.calls]
    return words == shown.words and sorted(calls) == sorted(shown.calls)


def _is_of(identity: Identity, record: Record) -> bool:
    return record.provenance.tenant == identity.tenant


def _takes_all(record: Record, known: AbstractSet[Key], visible: Visible) -> bool:
    """Whether all calls of a record are among these keys, and its text is part of the step's."""
    return all(call_key(call) in known for call in _calls(record)) and visible_of(record.items).words in visible.words


def _calls(record: Record) -> list[ToolCall]:
    return [item for item in record.items if isinstance(item, ToolCall)]


def records_of_seals(step: ModelStep, found: Found, identity: Identity) -> list[Record]:
    """Return the records whose seals a client sent with this step, whatever else the step shows."""
    keys = [one for one in step.keys if one.startswith("seal-")]
    records = {record.id: record for one in keys for record in found.get(one, ())}
    return [record for record in records.values() if record.provenance.tenant == identity.tenant]


def looks_of(step: ModelStep, found: Found, identity: Identity) -> list[Look]:
    """Return the records that look like a step. Every key they share counts as evidence, not only the one they were
    found by."""
    if step.looked is None or step.looked[0] is not found or step.looked[1] != step.place:
        step.looked = found, step.place, _looks_of(step, found, identity)
    looks: list[Look] = step.looked[2]
    return looks


def _looks_of(step: ModelStep, found: Found, identity: Identity) -> list[Look]:
    scope = step.spot.scope
    records: dict[str, Record] = {}
    own: dict[Key, Evidence] = {}
    for one in step.keys:
        evidence, some = evidence_of(one), found.get(one, ())
        # A full page hides other records with this key: weak evidence can't choose among them.
        if len(some) < MAX_PER_KEY or evidence not in _WEAK:
            own[one] = evidence
        for record in some[:MAX_PER_KEY]:
            if _is_of(identity, record) and not scope.is_of_other_user(record):
                records[record.id] = record
    if not records:
        return []
    if step.place is not None:
        own[step.place] = "place"
    shown, since = step.visible, step.spot.since
    looks = []
    for record in records.values():
        visible = visible_of(record.items)
        is_shown = shows(shown, visible)
        if is_shown or shows_glued(shown, visible, thought_of(record.items)):
            shared = frozenset(own[one] for one in record.keys if one in own)
            best: Evidence = next((one for one in _STRONGEST if one in shared), "lineage")
            match, is_asked_the_same = Match(record, not is_shown, best), record.since == since
            looks.append(Look(match, shared, visible, scope.has(record), is_asked_the_same))
    return looks


def is_shared_session(steps: Sequence[ModelStep], found: Found, identity: Identity) -> bool:
    """Whether several conversations share the session that a client names: several have entered it; or the request
    begins differently from the one that has, and one of its turns has a rival in the same frame that names no session
    and follows the same messages."""
    entries = found.get(session_entry(identity), ())
    if len(entries) >= MAX_PER_KEY or len({_place_of(record) for record in entries}) > 1:
        return True
    if any(_begins(record, steps) for record in entries):
        return False
    for step in steps:
        looks = looks_of(step, found, identity)
        here = [look for look in looks if _same_session(look, identity)]
        unnamed = [look for look in looks if look.is_in_scope and look.record.provenance.named_session is None]
        rivals = [look for look in unnamed if here and look.follows_the_same]
        if {replayable(look.record) for look in rivals} - {replayable(look.record) for look in here}:
            return True
    return False


def _begins(record: Record, steps: Sequence[ModelStep]) -> bool:
    """Whether a request begins like the conversation whose first turn is this record."""
    return bool(steps) and record.parent == UNKNOWN_PARENT and record.since == steps[0].spot.since


def _place_of(record: Record) -> Key | None:
    return next((one for one in record.keys if evidence_of(one) == "place"), None)


def is_proof(step: ModelStep, record: Record, identity: Identity) -> bool:
    """Whether a step shows something that only this record's conversation has."""
    return is_here(record, identity) or shows_name(step, record)


def shows_name(step: ModelStep, record: Record) -> bool:
    """Whether a step shows a seal of this record, its reasoning, or a globally unique id of it."""
    has_seal = not set(record.keys).isdisjoint(one for one in step.keys if evidence_of(one) == "seal")
    return has_seal or _is_what_client_has(record, step) or _has_unique_id(step, record)


def is_here(record: Record, identity: Identity) -> bool:
    """Whether a record belongs to the session that the client names."""
    return identity.session is not None and record.provenance.named_session == identity.session


def is_named(step: ModelStep, record: Record, identity: Identity) -> bool:
    """Whether a step shows a name that only this record's conversation has: a globally unique id, or the session that
    its client named. No plan changes that."""
    return is_here(record, identity) or _has_unique_id(step, record)


def _has_unique_id(step: ModelStep, record: Record) -> bool:
    known = set(record.keys)
    if not known.isdisjoint(unique_call_keys(step.items)):
        return True
    return not known.isdisjoint(one for one in step.keys if evidence_of(one) == "item")


def stranger_of(step: ModelStep, found: Found, identity: Identity) -> Literal["other_user", "other_frame"] | None:
    """Return why records with exactly the step's text and calls are not its own: another end user, or another system
    prompt."""
    scope, shown = step.spot.scope, step.visible
    known = [record for one in step.keys for record in found.get(one, ()) if _is_of(identity, record)]
    alike = [record for record in known if visible_of(record.items) == shown and not scope.has(record)]
    if any(map(scope.is_of_other_user, alike)):
        return "other_user"
    return "other_frame" if any(record.frame for record in alike) else None


def thought_of(items: Iterable[Item]) -> str:
    """Return the readable reasoning of a turn."""
    return "".join(map(readable_text, items))


def _is_enough(look: Look, step: ModelStep, identity: Identity, used: AbstractSet[str]) -> bool:
    """Whether the evidence proves more than that two turns look alike.

    Outside the frame and end user of the request, only something that no other conversation has is enough.
    """
    if look.evidence & {"lineage", "place", "seal"} or _has_distinctive_id(look, step):
        return True
    if "session" in look.evidence and identity.session is not None:
        return True
    if look.evidence & {"call", "outline"} and look.record.id in used:
        return True
    if not look.is_in_scope or is_of_other_session(look.record, identity):
        return False
    if "context" in look.evidence:
        return True
    return bool(look.evidence & {"call", "before"}) and (
        _same_session(look, identity) or look.evidence >= {"call", "before"}
    )


def _is_doubtful(look: Look, looks: list[Look], step: ModelStep, identity: Identity) -> bool:
    """Whether another record that looks the same fits as well.

    For a record that only earlier turns support: any that follows the same turn. For a record of another session with
    the same history: one of this session that follows the same turn or made exactly these calls.
    """
    if is_of_other_session(look.record, identity):
        near = [other for other in looks if _same_session(other, identity) and other.evidence & {"before", "call"}]
        return any(replayable(other.record) != replayable(look.record) for other in near)
    if look.evidence & {"lineage", "place", "session", "seal"} or _has_distinctive_id(look, step):
        return False
    if _same_session(look, identity):
        return False
    rivals = [other for other in looks if "before" in other.evidence]
    return any(replayable(other.record) != replayable(look.record) for other in rivals)


def _not_contradicted(candidates: list[Look], looks: list[Look], step: ModelStep, identity: Identity) -> list[Look]:
    """Return the candidates that nothing contradicts.

    A complete history outweighs an id that is not globally unique. Without it, if a call's id, name and arguments name
    one record, another record that only looks the same is not used. A turn with calls only may have lost its text, so a
    record without text is not used if another one has text and exactly these calls.
    """
    whole = [look for look in candidates if "lineage" in look.evidence]
    if whole:
        return whole
    named = [look for look in looks if "call" in look.evidence]
    here = [look for look in named if _same_session(look, identity)] or named
    if not here:
        return candidates
    pool = [look for look in candidates if look in here]
    exact = [look for look in here if look.visible.words == step.visible.words]
    return pool if not exact or len(exact) == len(here) else []


def _has_distinctive_id(look: Look, step: ModelStep) -> bool:
    if "item" in look.evidence:
        return True
    if "call" not in look.evidence:
        return False
    known = set(look.record.keys)
    calls = (item for item in step.items if isinstance(item, ToolCall) and item.id)
    return any(is_distinctive(call.id or "", call.name) and call_key(call) in known for call in calls)


def _shared_ids(look: Look, step: ModelStep) -> int:
    """Count the calls and items of a step that still have the ids of the record."""
    known = set(look.record.keys)
    calls = sum(call_key(item) in known for item in step.items if isinstance(item, ToolCall) and item.id)
    return calls + len(_item_ids(step.items) & _item_ids(look.record.items))


def _item_ids(items: Iterable[Item]) -> set[str]:
    """Return the second ids of Responses: `fc_…` of calls, `msg_…` of text, `rs_…` of reasoning."""
    names = (item.item_id if isinstance(item, ToolCall) else getattr(item, "id", None) for item in items)
    return {name for name in names if name}


def _similar_ids(look: Look, step: ModelStep) -> int:
    """Count the step's call ids that a client may have derived from the record's: cut, extended, or respelled."""
    shown = [_bare_id(item.id) for item in step.items if isinstance(item, ToolCall) and item.id]
    made = [(_bare_id(call.id), random_parts(call.id, call.name)) for call in _calls(look.record) if call.id]
    return sum(any(_is_similar(one, *other) for other in made) for one in shown)


def _is_similar(shown: str, made: str, parts: list[str]) -> bool:
    return (len(shown) >= _TELLING and shown in made) or any(part.lower() in shown for part in parts)


def _bare_id(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _not_renamed(looks: list[Look], step: ModelStep, found: Found) -> list[Look]:
    """Return the records without those that have other ids, if the step's own ids are globally unique and some record
    has them."""
    calls = [item for item in step.items if isinstance(item, ToolCall) and item.id]
    unique = [call for call in calls if is_distinctive(call.id or "", call.name)] if looks else []
    if not any(found.get(call_key(call)) for call in unique):
        return looks
    return [look for look in looks if "call" in look.evidence]


def is_hopeless(step: ModelStep, found: Found, identity: Identity) -> bool:
    """Whether a step stays without a record whatever its neighbours are: no record looks like it, alone or as one of
    several written into one turn."""
    if step.parts or found.get(step.spot.going_on()) or looks_of(step, found, identity):
        return False
    return sum(isinstance(item, ToolCall) for item in step.items) < 2


def is_exact(record: Record, step: ModelStep) -> bool:
    """Whether a step shows everything that the record showed."""
    shown, made = step.visible, visible_of(record.items)
    return shown.words == made.words and len(shown.calls) == len(made.calls)


def _is_guess(look: Look, looks: Sequence[Look], step: ModelStep, identity: Identity) -> bool:
    """Whether the record fits only if the client dropped text or calls, while another record made such calls too."""
    if is_exact(look.record, step) or look.match.is_glued or _has_distinctive_id(look, step):
        return False
    rivals = [other for other in looks if "call" in other.evidence and not is_of_other_session(other.record, identity)]
    return any(replayable(other.record) != replayable(look.record) for other in rivals)


def _is_merged(look: Look, step: ModelStep, found: Found, identity: Identity) -> bool:
    """True if this record fits only if the client dropped its text, while another record at this place made the first
    call without any: the client may have merged several steps."""
    if is_exact(look.record, step) or look.match.is_glued or _has_distinctive_id(look, step):
        return False
    calls = [item for item in step.items if isinstance(item, ToolCall)]
    named = found.get(call_key(calls[0]), ()) if len(calls) > 1 else ()
    ours = [record for record in named if record.provenance.tenant == identity.tenant and record.id != look.record.id]
    here = [record for record in ours if step.spot.place() in record.keys or step.place in record.keys]
    known = {call_key(call) for call in calls} if here else frozenset[Key]()
    return any(_takes_all(record, known, step.visible) for record in here)


def _same_session(look: Look, identity: Identity) -> bool:
    return is_here(look.record, identity)


def _rank(look: Look, step: ModelStep, identity: Identity) -> Rank:
    is_here = _same_session(look, identity)
    is_whole = "lineage" in look.evidence
    return (
        is_whole,
        _shared_ids(look, step) if is_whole else 0,
        _similar_ids(look, step) if is_whole else 0,
        is_whole and "outline" in look.evidence,
        is_whole and _strange_kinds(look.record.items) == _strange_kinds(step.items),
        is_whole and bool(step.spot.bound) and step.prefix in look.record.keys,
        _says_exactly(look.record.items, step.items),
        is_whole and look.record.exact == step.exact,
        is_whole and identity.model in (look.record.provenance.model_asked, look.record.provenance.model_answered),
        is_whole and look.record.tools == step.spot.scope.tools,
        _has_distinctive_id(look, step) or "seal" in look.evidence,
        "place" in look.evidence,
        "outline" in look.evidence,
        "call" in look.evidence and is_here,
        "context" in look.evidence,
        "before" in look.evidence,
        is_here,
        is_here and look.record.provenance.agent == identity.agent,
    )


def _strange_kinds(items: Iterable[Item]) -> list[str]:
    """Return the kinds of other items: calls of the provider's own tools, and their results."""
    return [item.kind for item in items if isinstance(item, Unknown)]


def _says_exactly(made: Iterable[Item], shown: Iterable[Item]) -> bool:
    """Whether the text is the same including inner white space: two answers may differ in nothing else."""
    return _words(made) == _words(shown)


def _words(items: Iterable[Item]) -> str:
    return "".join(item.text for item in items if isinstance(item, Text)).strip()


def _is_what_client_has(record: Record, step: ModelStep) -> bool:
    """Whether the client sent back exactly this record's reasoning: then the record is certainly the step's."""
    own = tuple(thoughts_of(step.items))
    return bool(own) and own == tuple(thoughts_of(record.items))


def replayable(record: Record) -> tuple[tuple[str, str], ...]:
    """Return what would be restored: two records that agree on it are interchangeable here."""
    summaries = tuple(("", getattr(item, "summary", "")) for item in reasoning_of(record.items))
    return (*thoughts_of(record.items), *summaries)
