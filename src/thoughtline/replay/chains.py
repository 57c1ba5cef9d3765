"""Finds the record of each model step of a request, all from one chain.

    chain_of(needed, found)  →  a result for each step: Match, Merged, Split, CutOff, Ambiguous or None

A record names its parent: the record of the model turn before it, in the request that produced it. So a step that fits
several records is settled by its neighbours, and a record with another parent than its neighbour belongs to another
conversation that looks the same. If nothing shows which of the two the request is, neither is used.

Records are proposed by what they share with a step (`matching.py`). `supported` decides which of them may be used: it
alone is the rule of identity, and it also holds where a turn's own record was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from thoughtline.replay.ids import unique_forms
from thoughtline.replay.keys import ModelStep, call_key, session_entry, unique_call_keys
from thoughtline.replay.matching import (
    Ambiguous,
    is_exact,
    is_here,
    is_hopeless,
    is_named,
    is_proof,
    is_shared_session,
    looks_of,
    match_by_evidence,
    match_by_names,
    match_joined,
    match_merged,
    replayable,
    shows_name,
)
from thoughtline.replay.plans import Found, Match, Needs, is_of_other_session, match_by_lineage
from thoughtline.replay.visible import visible_of
from thoughtline.replay.witnesses import proven
from thoughtline.values.identity import Identity
from thoughtline.values.items import ToolCall
from thoughtline.values.records import NO_PARENT, UNCERTAIN_PARENT, UNKNOWN_PARENT, Key, Record, RecordId


class Merged(NamedTuple):
    """The records of several steps that a client wrote into one turn, in their order. `is_joined`: there was nothing
    between them, for example because a model paused and continued."""

    records: tuple[Record, ...]
    is_joined: bool = False


class Split(NamedTuple):
    """Neighbouring turns that are separate steps, each with its result."""

    parts: tuple[Result, ...]


class CutOff(NamedTuple):
    """The text of a turn whose calls come after a message that the client inserted; `match` is the match of the
    calls."""

    match: Match


Result: TypeAlias = Match | Merged | Split | CutOff | Ambiguous | None


def chain_of(needed: Needs, found: Found) -> tuple[Result, ...]:
    """Return the result for each step of a request."""
    settled = settled_of(needed, found)
    if None not in settled and _is_one_chain(settled):
        return settled
    if is_plain(needed, settled, found):
        return _with_words_cut_off(needed.steps, settled)
    results, identity = _resolved(needed.steps, settled, found, needed.identity)
    return _with_words_cut_off(needed.steps, supported(needed.steps, results, found, identity))


def wanting(needed: Needs, found: Found) -> tuple[Needs, tuple[Key, ...]]:
    """Return what is settled by the records found so far, and the keys to look up next; no keys if they can't change
    anything.

    After the lineages come call ids; then all keys of the steps that are still unsettled; and all keys of all steps
    where neighbours may decide.
    """
    needed = needed._replace(settled=settled_of(needed, found))
    settled = needed.settled or ()
    if None not in settled and _is_one_chain(settled):
        return needed, ()
    if names := _new(needed.names, found):
        return needed, names
    unsettled = [step for step, match in zip(needed.steps, settled, strict=True) if match is None]
    if unsettled and (keys := _new(needed.keys_of(unsettled), found)):
        return needed, keys
    if is_plain(needed, settled, found):
        return needed, ()
    others = [step for step, match in zip(needed.steps, needed.by_lineage(found), strict=True) if match is None]
    return needed, _new(needed.keys_of(others), found) if others else ()


def _new(keys: Iterable[Key], found: Found) -> tuple[Key, ...]:
    return tuple([one for one in keys if one not in found])


def settled_of(needed: Needs, found: Found) -> tuple[Match | None, ...]:
    """Return the records named by lineages or by call ids."""
    settled = needed.settled if needed.settled is not None else needed.by_lineage(found)
    if None not in settled:
        return settled
    pairs = zip(needed.steps, settled, strict=True)
    return tuple([match or match_by_names(step, found, needed.identity) for step, match in pairs])


def is_plain(needed: Needs, settled: Sequence[Match | None], found: Found, before: RecordId = UNKNOWN_PARENT) -> bool:
    """Whether steps have no more to say about each other: each is known by its call ids or stays without a record, and
    each record follows the one before it, as far as records show. `before` is the parent of the first step."""
    for step, match in zip(needed.steps, settled, strict=True):
        if match is None and not is_hopeless(step, found, needed.identity):
            return False
        if match is not None and not shows_name(step, match.record):
            return False
    return follow_each_other(settled, before)


def follow_each_other(settled: Sequence[Match | None], before: RecordId, taken: Iterable[RecordId] = ()) -> bool:
    """Whether each record stands once and follows the one before it, as far as records say. `before` is the parent of
    the first step, `taken` are the records of the steps before that."""
    taken = set(taken)
    for match in settled:
        if match is None:
            before = NO_PARENT
            continue
        record = match.record
        is_broken = record.parent not in (UNKNOWN_PARENT, before) and before not in (UNKNOWN_PARENT, NO_PARENT)
        if is_broken or record.parent == UNCERTAIN_PARENT or record.id in taken:
            return False
        taken.add(record.id)
        before = record.id
    return True


def records_of(result: Result) -> tuple[Record, ...]:
    """Return the records of a result, in order."""
    match result:
        case Match():
            return (result.record,)
        case Merged():
            return result.records
        case Split():
            return tuple(record for part in result.parts for record in records_of(part))
        case _:
            return ()


def parent_of_next(result: Result) -> RecordId:
    """Return the parent that the next turn's record names."""
    records = records_of(result)
    if records:
        return records[-1].id
    return UNCERTAIN_PARENT if isinstance(result, Ambiguous) else NO_PARENT


def enters_session(last: Result, identity: Identity) -> bool:
    """Whether the answer to a request is the first turn of its conversation in the session that the client names."""
    if identity.session is None or isinstance(last, Ambiguous):
        return False
    return all(record.provenance.named_session != identity.session for record in records_of(last))


def _is_one_chain(settled: Sequence[Match | None]) -> bool:
    """Whether each record follows the one before it, as far as records show."""
    before: RecordId | None = None
    taken: set[RecordId] = set()
    for match in settled:
        if match is None:
            return False
        parent = match.record.parent
        if match.record.id in taken:
            return False
        taken.add(match.record.id)
        if parent and before is not None and parent != before:
            return False
        before = match.record.id
    return True


def _resolved(
    steps: Sequence[ModelStep], settled: Sequence[Match | None], found: Found, identity: Identity
) -> tuple[list[Result], Identity]:
    """Resolve each step by its own evidence, then all of them as one chain. Also return the identity, without a session
    that several conversations share."""
    if not any(found.values()):
        return [None] * len(steps), identity
    if identity.session is not None and is_shared_session(steps, found, identity):
        identity = replace(identity, session=None)
    used = set(proven(steps, found, identity))
    results: list[Result] = []
    for step, match in zip(steps, settled, strict=True):
        results.append(match or _alone(step, found, identity, used))
        used.update(record.id for record in records_of(results[-1]))
    whole = _Chain(steps, results, found, identity)
    whole.ask_following()
    whole.ask_before()
    whole.part()
    whole.use_once()
    return whole.results, identity


def _alone(step: ModelStep, found: Found, identity: Identity, used: set[str]) -> Result:
    """Resolve a step by its own evidence, if its lineage does not settle it."""
    match = match_by_evidence(step, found, identity, used)
    if isinstance(match, Match):
        return match
    if not step.parts:
        if joined := match_joined(step, found, identity):
            return Merged(joined, is_joined=True)
        if merged := match_merged(step, found, identity, used):
            return Merged(merged)
    else:
        alone = [match_by_lineage(part, found, identity) for part in step.parts]
        parts, _ = _resolved(step.parts, alone, found, identity)
        if any(map(records_of, parts)) or match is None:
            return Split(tuple(parts))
    return match


class _Chain:
    """Turns the individual results of a request's steps into one chain."""

    def __init__(self, steps: Sequence[ModelStep], results: list[Result], found: Found, identity: Identity) -> None:
        self._steps = steps
        self._found = found
        self._identity = identity
        self.results = results

    def ask_following(self) -> None:
        """Go from the last step to the first, and use the parent that the following step's record names."""
        for at in reversed(range(len(self._steps) - 1)):
            following = records_of(self.results[at + 1])
            if following and following[0].parent:
                self.results[at] = self._as_parent(at, following[0])

    def _as_parent(self, at: int, following: Record) -> Result:
        result, parent = self.results[at], following.parent
        own = records_of(result)
        if parent == UNCERTAIN_PARENT:
            return result if self._is_anchored(at) else Ambiguous(max(2, len(own)))
        if parent == NO_PARENT:
            is_late = all(record.created_at <= following.created_at for record in own)
            return result if is_late or self._is_anchored(at) else None
        if own and (own[-1].id == parent or self._steps[at].lineage in own[-1].keys):
            return result  # a turn between the two may have been deleted
        is_anchored = is_named(self._steps[at + 1], following, self._identity)
        for look in looks_of(self._steps[at], self._found, self._identity):
            if look.record.id == parent and (is_anchored or look.follows_the_same):
                return look.match
        return result

    def ask_before(self) -> None:
        """Go from the first step to the last, and use the only record whose parent is the step before."""
        for at in range(1, len(self._steps)):
            before = records_of(self.results[at - 1])
            if not before or records_of(self.results[at]):
                continue
            looks = looks_of(self._steps[at], self._found, self._identity)
            children = [look for look in looks if look.record.parent == before[-1].id and look.follows_the_same]
            if children and len({replayable(look.record) for look in children}) == 1:
                self.results[at] = max(children, key=lambda look: look.record.created_at).match

    def part(self) -> None:
        """Separate two conversations that look the same: a record with exactly its step's history follows another
        record than its neighbour. The proven one belongs to the request; without proof, neither is used. A session has
        turns that were asked again: of two that both belong to it, the one that a later turn follows counts."""
        blocks = list(self._blocks())
        if len(blocks) < 2:
            return
        for block in blocks:
            if not any(map(self._is_anchored, block)):
                for at in block:
                    if records_of(self.results[at]):
                        self.results[at] = Ambiguous(2)
        for block in blocks[1:]:
            step, records = self._steps[block[0] - 1], records_of(self.results[block[0] - 1])
            following = records_of(self.results[block[0]])
            is_followed = bool(following) and self._steps[block[0]].lineage in following[0].keys
            if is_followed and records and not any(shows_name(step, record) for record in records):
                self.results[block[0] - 1] = Ambiguous(2)

    def use_once(self) -> None:
        """Use each record for one turn. Of several steps that show all of it, the one with exactly its history gets it,
        or none."""
        taken: dict[RecordId, list[int]] = {}
        for at, result in enumerate(self.results):
            if isinstance(result, Match) and is_exact(result.record, self._steps[at]):
                taken.setdefault(result.record.id, []).append(at)
        for places in taken.values():
            for at in places if len(places) > 1 else ():
                if not any(self._steps[at].lineage in record.keys for record in records_of(self.results[at])):
                    self.results[at] = Ambiguous(len(places))

    def _blocks(self) -> Iterator[range]:
        start = 0
        for at in range(1, len(self._steps)):
            if self._is_broken(at):
                yield range(start, at)
                start = at
        yield range(start, len(self._steps))

    def _is_broken(self, at: int) -> bool:
        """Whether the record of a step follows another record than that of the step before."""
        before, own = records_of(self.results[at - 1]), records_of(self.results[at])
        if not before or not own or own[0].parent in (UNKNOWN_PARENT, NO_PARENT, UNCERTAIN_PARENT, before[-1].id):
            return False
        return self._steps[at].lineage in own[0].keys or (self._is_anchored(at - 1) and not self._is_anchored(at))

    def _is_anchored(self, at: int) -> bool:
        """Whether a step shows something that only its own conversation has."""
        return any(is_proof(self._steps[at], record, self._identity) for record in records_of(self.results[at]))


def _with_words_cut_off(steps: Sequence[ModelStep], results: Sequence[Result]) -> tuple[Result, ...]:
    """Find text without a record whose calls are in the next step, which shows calls and no text: goose 1.34 writes its
    `<info-msg>` between the two. Seen on 2026-11-18."""
    whole = list(results)
    for at, (step, result, following) in enumerate(zip(steps, results, results[1:], strict=False)):
        if result is None and isinstance(following, Match):
            shown, rest = step.visible, steps[at + 1].visible
            made = visible_of(following.record.items)
            if shown.words and not shown.calls and not rest.words and shown.words == made.words:
                whole[at] = CutOff(following)
    return tuple(whole)


# --- the gate ---------------------------------------------------------------------------------------------------------


MIN_RUN = 3
"""Turns in a run that is long enough to identify a conversation whose earlier messages were rewritten or dropped."""

MIN_RUN_CHARS = 256
"""Characters of its text, calls and results."""


class Leaf(NamedTuple):
    """A step, or a part of one that was split, and its result."""

    step: ModelStep
    result: Result

    @property
    def records(self) -> tuple[Record, ...]:
        return records_of(self.result)


def supported(
    steps: Sequence[ModelStep], results: Sequence[Result], found: Found, identity: Identity
) -> tuple[Result, ...]:
    """Return the results that the rule of identity allows; any other record becomes `Ambiguous`.

    A record belongs to a step if the step proves it; if everything visible up to the step is the same and nothing
    contradicts it; if it is part of a long run of identical turns; or if it is the parent or child of an allowed
    record. Nothing else is enough, however the record was proposed.
    """
    leaves = [leaf for step, result in zip(steps, results, strict=True) for leaf in _leaves(step, result)]
    proven = {at for at, leaf in enumerate(leaves) if _is_proven(leaf, identity, is_first=at == 0)}
    barred = _barred(leaves, proven, found, identity)
    allowed = set(proven)
    has_unique_id = False
    for at, leaf in enumerate(leaves):
        if at not in barred and _has_same_history(leaf, identity, has_unique_id=has_unique_id):
            allowed.add(at)
        has_unique_id = has_unique_id or bool(unique_forms(leaf.step.items))
    allowed.update(at for run in _runs(leaves, barred) if _is_long([leaves[at] for at in run]) for at in run)
    links = _links(leaves)
    waiting = list(allowed)
    while waiting:
        for other in links.get(waiting.pop(), ()):
            if other not in allowed and other not in barred:
                allowed.add(other)
                waiting.append(other)
    kept = iter([leaf.result if at in allowed else _unproven(leaf) for at, leaf in enumerate(leaves)])
    return tuple(_with_leaves(step, result, kept) for step, result in zip(steps, results, strict=True))


def _is_proven(leaf: Leaf, identity: Identity, *, is_first: bool) -> bool:
    """Whether a step shows something that only its own conversation has. A session identifies the conversation; the
    turn must also match by the message before it, by a call id, or by being the first."""
    step = leaf.step
    for record in leaf.records:
        if shows_name(step, record):
            return True
        if is_here(record, identity):
            is_asked = record.since in ("", step.spot.since) or (is_first and record.parent == UNKNOWN_PARENT)
            if is_asked or any(isinstance(item, ToolCall) and call_key(item) in record.keys for item in step.items):
                return True
    return False


def _has_same_history(leaf: Leaf, identity: Identity, *, has_unique_id: bool) -> bool:
    """Whether everything visible before a step is the same as before its record, in the same frame and for the same end
    user. Where results were cleared or text was dropped, the rest is only enough with a unique call id in it: without
    one it would also fit a conversation with other results, and only `_links` carry the proof on from step to step."""
    step, records = leaf.step, leaf.records
    if not records:
        return False
    if step.lineage in records[0].keys:
        return True
    if step.spot.place() in records[0].keys and not is_of_other_session(records[0], identity):
        return True
    is_outlined = isinstance(leaf.result, Match) and leaf.result.evidence == "outline"
    return is_outlined and has_unique_id and step.spot.scope.has(records[0])


def _barred(leaves: Sequence[Leaf], proven: AbstractSet[int], found: Found, identity: Identity) -> set[int]:
    """Return the leaves whose records are contradicted: by call ids, by another session although this one has records
    of its own, or by following a contradicted record."""
    keeps_ids = any(map(found.get, (key for leaf in leaves for key in unique_call_keys(leaf.step.items))))
    is_entered = identity.session is not None and bool(found.get(session_entry(identity)))
    barred: set[int] = set()
    strangers: set[RecordId] = set()
    for at, leaf in enumerate(leaves):
        if not leaf.records or at in proven:
            continue
        first = leaf.records[0]
        is_other = is_entered and is_of_other_session(first, identity)
        if is_other or first.parent in strangers or _has_other_ids(leaf, keeps_ids=keeps_ids):
            barred.add(at)
            strangers.update(record.id for record in leaf.records)
    return barred


def _has_other_ids(leaf: Leaf, *, keeps_ids: bool) -> bool:
    """Whether the step has other unique ids than its record, in a conversation whose client keeps ids, or of the same
    form. Ids of another form were rewritten by the client and prove nothing."""
    shown = unique_forms(leaf.step.items)
    made = {name: form for record in leaf.records for name, form in unique_forms(record.items).items()}
    if not shown or not made or not shown.keys().isdisjoint(made):
        return False
    return keeps_ids or not set(shown.values()).isdisjoint(made.values())


def _runs(leaves: Sequence[Leaf], barred: AbstractSet[int]) -> Iterator[list[int]]:
    """Yield runs of turns whose records follow each other, with the same messages between them, in the frame of the
    request."""
    run: list[int] = []
    for at, leaf in enumerate(leaves):
        if at in barred or not leaf.records or not leaf.step.spot.scope.has(leaf.records[0]):
            yield run
            run = []
            continue
        first = leaf.records[0]
        if run and (first.parent != leaves[at - 1].records[-1].id or first.since != leaf.step.spot.since):
            yield run
            run = []
        run.append(at)
    yield run


def _is_long(run: Sequence[Leaf]) -> bool:
    """Whether a run has more in it than two conversations would share: an agent's calls and their results."""
    if len(run) < MIN_RUN or not any(leaf.step.results for leaf in run):
        return False
    size = sum(len(leaf.step.visible.words) + sum(map(len, chain(*leaf.step.visible.calls))) for leaf in run)
    return size + sum(len(bytes(result.content)) for leaf in run for result in leaf.step.results) >= MIN_RUN_CHARS


def _links(leaves: Sequence[Leaf]) -> dict[int, set[int]]:
    """Return which leaves are parent and child, by the parents that records name, or parts of one record."""
    by_id: dict[RecordId, int] = {}
    links: dict[int, set[int]] = {}
    for at, leaf in enumerate(leaves):
        if leaf.records:
            first = leaf.records[0]
            for other in (by_id.get(first.parent), by_id.get(first.id)):
                if other is not None:
                    links.setdefault(at, set()).add(other)
                    links.setdefault(other, set()).add(at)
            by_id.update((record.id, at) for record in leaf.records)
    return links


def _unproven(leaf: Leaf) -> Result:
    return Ambiguous(1) if leaf.records else leaf.result


def _leaves(step: ModelStep, result: Result) -> Iterator[Leaf]:
    if isinstance(result, Split):
        for part, own in zip(step.parts, result.parts, strict=True):
            yield from _leaves(part, own)
    else:
        yield Leaf(step, result)


def _with_leaves(step: ModelStep, result: Result, leaves: Iterator[Result]) -> Result:
    if isinstance(result, Split):
        pairs = zip(step.parts, result.parts, strict=True)
        return Split(tuple(_with_leaves(part, own, leaves) for part, own in pairs))
    return next(leaves)
