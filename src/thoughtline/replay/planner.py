"""Ask, fetch, decide: which keys a request needs, and what to put back, take out or report.

    needs(transcript, contract, identity)  →  Needs      the shell fetches the records of its keys, in one go or two
    plan(transcript, contract, needs, found, issuer)  →  Plan      edits, findings, counts
    plan.apply(transcript)  →  Transcript

What the client sent is kept if it is whole; what it lost or damaged is restored from the record of that very turn; what
a provider would refuse is taken out; what is still missing climbs the contract's ladder. A plan is deterministic, and
planning a planned request changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec
from msgspec.structs import replace

from thoughtline.providers import Contract, Rung
from thoughtline.providers.refusals import RuleCode
from thoughtline.replay.chains import proven
from thoughtline.replay.keys import ModelStep
from thoughtline.replay.matching import Ambiguous, match_by_evidence, match_merged, records_of_seals
from thoughtline.replay.pairing import is_named, unnamed, woven_in_pairs
from thoughtline.replay.plans import (
    NO_PAST,
    Found,
    Match,
    Needs,
    Past,
    Plan,
    Policy,
    is_issued_by,
    match_by_lineage,
    needs,
)
from thoughtline.replay.restoring import (
    are_said_in,
    inherit,
    is_good,
    is_refused,
    is_unsigned,
    without_record,
    without_refused,
    without_thoughts,
)
from thoughtline.replay.turn_plans import (
    MOVABLE,
    TurnPlans,
    learn_names,
    why_unsendable,
)
from thoughtline.replay.weaving import (
    as_text,
    filler_of,
    is_filler,
    is_sealed,
    spread,
    unglued,
    weave,
    with_sentinel,
)
from thoughtline.values.destination import Destination
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningText, Text, ToolCall, reasoning_of
from thoughtline.values.outcome import Deed, Reason
from thoughtline.values.records import Record
from thoughtline.values.turns import Transcript

__all__ = ["Needs", "Plan", "Policy", "may_restore", "needs", "plan"]

Items = tuple[Item, ...]

DEFAULT_POLICY = Policy()


def plan(
    transcript: Transcript,
    contract: Contract,
    needed: Needs,
    found: Found,
    issuer: Destination,
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    """What to do about a request, given what is remembered."""
    return draft(transcript, contract, needed, found=found, issuer=issuer, policy=policy).done()


def draft(
    transcript: Transcript,
    contract: Contract,
    needed: Needs,
    found: Found,
    issuer: Destination,
    policy: Policy,
    past: Past = NO_PAST,
) -> Draft:
    """The same before it is done: it can say what it is made of. `past` is what was planned for the turns before it."""
    work = Draft(transcript, contract, needed, found=found, issuer=issuer, policy=policy, past=past)
    work.clean()
    if contract.takes == "nothing":
        work.strip_everything()
    else:
        if needed.steps and may_restore(transcript, contract):
            work.restore()
            work.climb(policy.ladder if policy.ladder is not None else contract.ladder)
        if contract.scope == "pairs":
            work.ask_for_ciphertext()
        work.mend()
    work.amend()
    return work


def may_restore(transcript: Transcript, contract: Contract) -> bool:
    """Reasoning goes where the request has the model think; what nobody enforces, wherever thinking is not off."""
    if not contract.only_when_thinking:
        return True
    if contract.kind == "advisory":
        return transcript.thinking != "off"
    return contract.thinks(transcript)


class Draft(TurnPlans):
    """A plan in the making. `believed` are records that steps were found to be, and that others speak for."""

    def __init__(
        self,
        transcript: Transcript,
        contract: Contract,
        needed: Needs,
        found: Found,
        issuer: Destination,
        policy: Policy,
        past: Past,
    ) -> None:
        super().__init__(transcript, contract, issuer, policy=policy, past=past)
        self._needed = needed
        self._identity = needed.identity
        self._found = found
        self._used: set[str] = set()
        self._has_records = any(found.values())
        self.believed: set[str] = set()

    # --- what nobody would take ---------------------------------------------------------------------------------------

    def clean(self) -> None:
        """Take out what this provider would refuse whatever is remembered. Bare steps have nothing of that kind."""
        bare: set[int] = set()
        for step in self._needed.steps:
            if step.is_bare:
                bare.update(step.positions)
        if len(bare) == len(self._assistant):
            return
        takes_plain_text = self._contract.takes == "text" and self._contract.dialect.carrier in MOVABLE
        for position in self._assistant:
            if position in bare or self._contract.may_seal:
                continue
            items = self._now(position)
            if takes_plain_text and any(map(is_sealed, items)):
                self._set(position, as_text(items, self._contract), "foreign", "a seal that this provider can't read")
            elif self._refuses_unsigned and any(map(is_unsigned, items)):
                kept = tuple(item for item in items if not is_unsigned(item))
                self._set(position, kept, "truncated", "thinking without a signature")
        for position in self._assistant:
            if position not in bare:
                self._drop_refused(position)

    def _drop_refused(self, position: int) -> None:
        items, refused = self._now(position), self._policy.refused
        if any(is_refused(item, refused) for item in items):
            kept = without_refused(items, refused)
            self._set(position, self._parted(kept), "foreign", "a seal that this provider has refused, or of ours")

    @property
    def _refuses_unsigned(self) -> bool:
        refuses = self._contract.refuses_unsigned or "unsigned_refused" in self._wire.quirks
        return self._contract.takes == "own" and refuses

    # --- one step -----------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Each step from its record. Others speak for one only where not every lineage settles its step."""
        needed, found = self._needed, self._found
        settled = needed.settled if needed.settled is not None else needed.by_lineage(found)
        spoken_for = proven(needed.steps, found, needed.identity) if None in settled else frozenset[str]()
        self.believed |= spoken_for
        for step, match in zip(needed.steps, settled, strict=True):
            self.take(step, spoken_for, match)

    def take(self, step: ModelStep, proven: Set[str] = frozenset(), settled: Match | None = None) -> None:
        """Restore one step from its record, or leave it. `settled` is the record that its lineage names."""
        if not self._has_records:
            for part in step.parts or (step,):
                self._notes.not_find(part)
                self._unpair(part)
            return
        match = settled or match_by_evidence(step, self._found, self._identity, self.believed)
        if isinstance(match, Ambiguous):
            self._find("ambiguous", step.positions[0], f"{match.records} records fit this turn and differ")
            self._notes.lose(step.positions, "ambiguous")
        elif match is not None and (step.is_bare or not self._says_more(step, match.record)):
            self._use(step, match)
            return
        merged = match_merged(step, self._found, self._identity, proven)
        if merged and self._restore_merged(step, merged):
            return
        if step.parts:
            for part in step.parts:
                self.take(part, proven, match_by_lineage(part, self._found, self._identity))
            return
        self._notes.not_find(step)
        for record in records_of_seals(step, self._found, self._identity):
            self._judge(step, record)
        self._unpair(step)

    def _says_more(self, step: ModelStep, record: Record) -> bool:
        """Whether a client wrote several answers as one turn, with thoughts of each: Claude pauses and goes on."""
        if len(reasoning_of(step.items)) <= len(reasoning_of(record.items)):
            return False
        records = records_of_seals(step, self._found, self._identity)
        return len(records) > 1 and are_said_in(step.items, records)

    def _judge(self, step: ModelStep, record: Record) -> None:
        """A seal whose maker we know, on a turn that is not the one it was made for: is it good here?"""
        if self._contract.binds_prefix and step.prefix not in record.keys:
            self._strip_known(step, record, "bound-prefix-changed", "what stands before this turn was changed")
        elif self._sendable(record) is None:
            self._strip_known(step, record, "foreign", "made by another provider, account or model")

    def _use(self, step: ModelStep, match: Match) -> None:
        record = match.record
        if not record.has_reasoning:
            self._had_none.update(step.positions)
            self._notes.lose(step.positions, "had_none")
            return
        if self._contract.binds_prefix and step.prefix not in record.keys:
            self._strip_known(step, record, "bound-prefix-changed", "what stands before this turn was changed")
            return
        items = self._sendable(record)
        if items is None:
            self._strip_known(step, record, "foreign", "made by another provider, account or model, or cut short")
            self._unpair(step)
            return
        self._restore(step, match, items)

    def _sendable(self, record: Record) -> Items | None:
        """A record's items in a shape that this contract takes; None if there is none."""
        if self._policy.refused and any(is_refused(item, self._policy.refused) for item in record.items):
            return None
        takes_text = self._contract.takes == "text"
        if self._carriers is not None and self._carriers.keeps_seals(record):
            return record.items
        carrier = self._contract.dialect.carrier
        has_seals = carrier == "reasoning_details" and not self._contract.follows_answers
        if not takes_text or has_seals or carrier == "native":
            is_same_wire = record.is_complete and record.provenance.format == self._transcript.format
            if is_same_wire and is_issued_by(record, self._issuer, self._contract):
                return record.items
        if not takes_text:
            return None
        items = as_text(record.items, self._contract)
        return items if items and isinstance(items[0], REASONING_KINDS) else None

    def _restore(self, step: ModelStep, match: Match, items: Items) -> None:
        record, shown = match.record, list(map(self._now, step.positions))
        if match.is_glued:
            shown = [unglued(own, record.items) for own in shown]
        self._covered.update(step.positions[1:])
        if record.id in self._used and self._contract.kind == "authenticity":
            self._covered.update(step.positions)
            items = without_thoughts(items)
        self._used.add(record.id)
        self.believed.add(record.id)
        targets = self._woven(items, shown, record.items)
        carrier: str = self._contract.dialect.carrier
        for position, own, target in zip(step.positions, shown, targets, strict=True):
            if self._carriers is not None:
                if self._carriers.use(position, record):
                    self._covered.add(position)
                carrier = self._carriers.at(position)
            if len(shown) > 1 and self._contract.kind == "presence":
                self._loose_in_loop.add(position)
                if position in self._required:
                    self._covered.discard(position)
                    target = weave(items, own)  # each must have some
            # Some models count on their own form of ids; an entry of `reasoning_details` has the id of its call.
            if self._contract.dialect.call_ids == "own" or carrier == "reasoning_details":
                learn_names(self._names, target, record)
            if step.is_bare and len(target) > len(own):
                self._put_back(position, target, match.evidence, record.id)
            else:
                self._replace(position, target, match.evidence, record.id)

    def _woven(self, items: Items, shown: Sequence[Items], made: Items) -> list[Items]:
        """The turns of a step with the items of its record; `made` are those with all the names they had.

        A step that the client wrote as several turns has each thought in the turn of what it led to.
        """
        if "items_are_elements" in self._wire.quirks:
            is_bound = self._contract.scope == "pairs"
            return [woven_in_pairs(items, own, made, is_bound=is_bound) for own in shown]
        return [weave(items, shown[0])] if len(shown) == 1 else spread(items, shown)

    def _restore_merged(self, step: ModelStep, records: tuple[Record, ...]) -> bool:
        """Several steps that the client wrote into one: their reasoning one after the other, each before its calls."""
        sendable = [self._sendable(record) for record in records]
        items = tuple(item for part in sendable if part is not None for item in part)
        if len(step.positions) != 1 or any(part is None for part in sendable) or self._contract.binds_prefix:
            return False
        position = step.positions[0]
        carrier: str = self._contract.dialect.carrier
        if self._carriers is not None:
            self._carriers.use(position, records[-1])
            carrier = self._carriers.at(position)
        if self._contract.takes == "text" and carrier in MOVABLE:
            items = as_text(items, self._contract)
        for used in (self._used, self.believed):
            used.update(record.id for record in records)
        (target,) = self._woven(items, [self._now(position)], items)
        self._replace(position, target, "merged", records[-1].id)
        return True

    def _replace(self, position: int, target: Items, evidence: Reason, record: str) -> None:
        shown = self._now(position)
        if is_good(shown, target, self._contract, self._transcript.format):
            self._notes.keep(position, shown, evidence, record)
            return
        has_own = any(isinstance(item, REASONING_KINDS) and not is_filler(item) for item in shown)
        self._put_back(position, target, evidence, record)
        if has_own:
            self._find("altered", position, "not as the model gave it; the original was put back")

    def _put_back(self, position: int, target: Items, evidence: Reason, record: str) -> None:
        self._items[position] = target
        self._counted.append((position, "restored"))
        self._notes.put(position, "restored", evidence, record)

    def _strip_known(self, step: ModelStep, record: Record, rule: RuleCode, why: str) -> None:
        """Take out what the client sent of a record that must not go back, and say so."""
        self._find(rule, step.positions[0], why)
        self._notes.lose(step.positions, why_unsendable(record, self._issuer, self._contract, rule=rule))
        for position in step.positions:
            items = self._now(position)
            kept = without_record(items, record)
            if kept != items:
                self._items[position] = self._parted(kept)
                self._counted.append((position, "stripped"))
                self._notes.put_stripped(position, rule)

    # --- Responses ----------------------------------------------------------------------------------------------------

    def _unpair(self, step: ModelStep) -> None:
        """Elements that name partners nobody sent: without names nothing is checked."""
        if self._contract.scope != "pairs" or "unpair" not in self._contract.ladder:
            return
        items = [item for position in step.positions for item in self._now(position)]
        named = [item for item in items if isinstance(item, (Text, ToolCall, *REASONING_KINDS))]
        if any(isinstance(item, REASONING_KINDS) for item in items) and all(is_named(item) for item in named):
            return
        for position in step.positions:
            shown = self._now(position)
            if any(is_named(item) for item in shown):
                self._items[position] = unnamed(shown)
                self._find("unpaired", position, "ids without their partners were taken out")

    def ask_for_ciphertext(self) -> None:
        """Where nothing is kept at the provider, reasoning comes back only to those who ask for it in the answer."""
        inclusion, includes = self._wire.inclusion, self._transcript.includes
        if inclusion is not None and self._transcript.is_stored is False and inclusion.seals not in includes:
            self._members.append((inclusion.member, msgspec.json.encode([*includes, inclusion.seals])))

    # --- what is still missing ------------------------------------------------------------------------------------

    def climb(self, ladder: tuple[Rung, ...]) -> None:
        """For each turn that must carry reasoning and doesn't, the first rung that holds."""
        inherited: dict[int, ReasoningText] = {}
        if "inherit" in ladder:
            inherited = inherit([replace(turn, items=self._now(at)) for at, turn in enumerate(self._transcript.turns)])
            if "dialects" in self._wire.quirks:
                self._inherit_elsewhere(inherited)
        for position in sorted(self._required - self._covered):
            items = self._now(position)
            first = items[0] if items and self._contract.scope != "first_call_of_step" else None
            if isinstance(first, ReasoningText) and first.text.strip():
                continue  # it begins with its thoughts
            if not self._carries(position, items):
                bare = tuple(item for item in items if not is_filler(item))
                self._climb_one(position, bare, ladder, inherited)
                self._loose_in_loop.add(position)
            if (filler := filler_of(self._now(position))) is not None:
                self._fillers[position] = filler

    def _inherit_elsewhere(self, inherited: dict[int, ReasoningText]) -> None:
        """Turns that need not carry reasoning borrow it too, unless they are known to have had none."""
        for position in sorted(inherited.keys() - self._required - self._had_none - self._covered):
            self._climb_one(position, self._now(position), ("inherit",), inherited)

    def _climb_one(
        self, position: int, items: Items, ladder: tuple[Rung, ...], inherited: dict[int, ReasoningText]
    ) -> None:
        made_by = self._contract.dialect.reasoning_format
        for rung in ladder:
            if rung == "empty" and self._takes_empty(position):
                self._items[position] = (ReasoningText("", None, made_by), *items)
            elif rung == "inherit" and position in inherited and position not in self._had_none:
                self._items[position] = (replace(inherited[position], format=made_by), *items)
                self._lack("inherited", position)
            elif rung == "blank":
                self._items[position] = (ReasoningText(self._contract.filler, None, made_by), *items)
                self._fillers[position] = self._contract.filler
                self._lack("blank", position)
                why = "this turn had no" if position in self._had_none else "nobody has this turn's"
                self._find("missing", position, f"{why} reasoning; a blank stands for it")
            elif rung == "sentinel":
                self._items[position] = with_sentinel(items)
                self._lack("blank", position)
                self._find("missing", position, "nobody has this call's signature; the skip value stands for it")
            elif rung == "pause_thinking" and self._pause_thinking():
                self._lack("missing", position)
                self._find("missing", position, "nobody has this turn's reasoning; thinking is off for this request")
            else:
                continue
            return
        self._lack("missing", position)
        self._find("missing", position, "nobody has this turn's reasoning")

    def _lack(self, deed: Deed, position: int) -> None:
        self._counted.append((position, deed))
        self._notes.put_unrestored(position, deed, self._found, self._identity)
