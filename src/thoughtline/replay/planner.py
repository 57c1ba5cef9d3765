"""Ask, fetch, decide: which keys a request needs, and what to restore, remove or report.

    needs(transcript, contract, identity)  →  Needs      the caller looks up the records of its keys, once or twice
    plan(transcript, contract, needs, found, issuer)  →  Plan      edits, findings, counts
    plan.apply(transcript)  →  Transcript

What the client sent is kept; what it lost or damaged is restored from that turn's own record; what must not leave its
owner, or is certain to be refused, is removed; for what is still missing, the contract's ladder applies. What is only
expected to be refused is sent unchanged: the provider decides. A plan is deterministic, and planning a planned request
changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thoughtline.providers import Contract
from thoughtline.providers.refusals import RuleCode
from thoughtline.replay.chains import CutOff, Merged, Result, Split, chain_of, enters_session, parent_of_next
from thoughtline.replay.keys import ModelStep
from thoughtline.replay.matching import Ambiguous, records_of_seals, stranger_of
from thoughtline.replay.pairing import has_own_names, is_named, referred_names, unnamed, woven_in_pairs
from thoughtline.replay.plans import (
    NO_PAST,
    Found,
    Match,
    Needs,
    Past,
    Plan,
    Policy,
    is_issued_by,
    is_of_account,
    needs,
)
from thoughtline.replay.restoring import (
    are_said_in,
    is_behind_its_prefix,
    is_good,
    is_refused,
    is_unsigned,
    without_record,
    without_refused,
    without_thoughts,
)
from thoughtline.replay.step_plans import StepPlans
from thoughtline.replay.turn_plans import MOVABLE, learn_names, why_unsendable
from thoughtline.replay.weaving import (
    as_text,
    is_filler,
    is_sealed,
    spread,
    unglued,
    weave,
)
from thoughtline.values.destination import Destination
from thoughtline.values.items import REASONING_KINDS, Item, Text, ToolCall, reasoning_of, seal_of
from thoughtline.values.outcome import Reason
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
    """Plan a request, given the records found."""
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
    """Return the plan before `done`: it can also show its parts. `past` is the plan for the turns before."""
    work = Draft(transcript, contract, needed, found=found, issuer=issuer, policy=policy, past=past)
    work.clean()
    if contract.takes == "nothing":
        work.strip_everything()
    else:
        if needed.steps and may_restore(transcript, contract):
            work.restore()
            if contract.binds_chain:
                work.link()
            work.climb(policy.ladder if policy.ladder is not None else contract.ladder)
        if contract.scope == "pairs":
            work.ask_for_ciphertext()
        work.mend()
    work.amend()
    return work


def may_restore(transcript: Transcript, contract: Contract) -> bool:
    """Whether to restore reasoning: if the request makes the model think; for contracts that enforce nothing, unless it
    is off."""
    if not contract.only_when_thinking or contract.insists:
        return True
    if contract.kind == "advisory":
        return contract.switch(transcript) != "off"
    return contract.thinks(transcript)


class Draft(StepPlans):
    """A plan in progress."""

    # --- what no server accepts
    # -------------------------------------------------------------------------------------------

    def clean(self) -> None:
        """Remove what this provider would refuse in any case. Bare steps contain nothing of that kind."""
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
        items, refused = self._now(position), self._policy.unsendable
        if any(is_refused(item, refused) for item in items):
            kept = without_refused(items, refused)
            self._set(position, self._parted(kept), "foreign", "a seal that this provider has refused, or of ours")

    @property
    def _refuses_unsigned(self) -> bool:
        refuses = self._contract.refuses_unsigned or "unsigned_refused" in self._wire.quirks
        return self._contract.takes == "own" and refuses

    # --- one step -----------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Restore each step from its record."""
        results = chain_of(self._needed, self._found)
        for step, result in zip(self._needed.steps, results, strict=True):
            self._parents[step.positions[-1]] = parent_of_next(result)
            self.restore_step(step, result)
        self._enters_session = enters_session(results[-1] if results else None, self._identity)

    def restore_step(self, step: ModelStep, result: Result) -> None:
        """Restore one step from its result, or leave it."""
        match result:
            case Match() if step.is_bare or not self._says_more(step, result.record):
                self._use(step, result)
                return
            case Merged() if self._restore_merged(step, result):
                return
            case Split():
                for part, own in zip(step.parts, result.parts, strict=True):
                    self.restore_step(part, own)
                return
            case CutOff() if self._contract.takes == "text":
                self._loose.update(step.positions)
                self._use(step, result.match)
                return
            case Ambiguous():
                self._find("ambiguous", step.positions[0], result.message)
                self._notes.lose(step.positions, "ambiguous" if result.records > 1 else "unproven")
            case _:
                self._report_strangers(step)
        for part in step.parts or (step,):
            self._leave(part)

    def _leave(self, step: ModelStep) -> None:
        """Leave a step without a record as it is, except for seals whose maker is known and that are not valid here."""
        self._notes.not_find(step)
        for record in records_of_seals(step, self._found, self._identity) if self._has_records else ():
            self._judge(step, record)
        self._unpair(step)

    def _report_strangers(self, step: ModelStep) -> None:
        """Report a turn with exactly this text that is stored for another end user or system prompt."""
        stranger = stranger_of(step, self._found, self._identity) if self._has_records else None
        if stranger == "other_user":
            self._find("other-user", step.positions[0], "a turn like this is remembered for another end user")
        elif stranger == "other_frame":
            self._find("other-frame", step.positions[0], "a turn like this is remembered under another system prompt")
        if stranger is not None:
            self._notes.lose(step.positions, stranger)

    def _says_more(self, step: ModelStep, record: Record) -> bool:
        """Whether a client wrote several answers as one turn, with the reasoning of each: Claude pauses and
        continues."""
        if len(reasoning_of(step.items)) <= len(reasoning_of(record.items)):
            return False
        records = records_of_seals(step, self._found, self._identity)
        return len(records) > 1 and are_said_in(step.items, records)

    def _judge(self, step: ModelStep, record: Record) -> None:
        """Check a seal whose maker is known, on another turn than the one it was made for: may it be sent?"""
        self._records.setdefault(step.positions, record)
        if self._sendable(record) is None and not is_of_account(record, self._issuer):
            self._strip_known(step, record, "foreign", "made by another provider or account")

    def _use(self, step: ModelStep, match: Match) -> None:
        record = match.record
        self._records[step.positions] = record
        if not record.has_reasoning:
            self._had_none.update(step.positions)
            self._notes.lose(step.positions, "had_none")
            self._cover(step.positions, record)
            return
        if self._contract.binds_prefix and not is_behind_its_prefix(step, record, self._contract):
            if not self._contract.binds_silently:
                self._withhold(step, record, "bound-prefix-changed", "what stands before this turn was changed")
                return
            why = "what stands before this turn was changed: the provider may drop its reasoning in silence"
            self._find("bound-prefix-changed", step.positions[0], why)
        items = self._sendable(record)
        if items is None and is_of_account(record, self._issuer):
            self._withhold(step, record, "foreign", "made by another model, cut short, or refused before")
            self._unpair(step, is_lost=True)
        elif items is None:
            self._strip_known(step, record, "foreign", "made by another provider or account")
            self._unpair(step, is_lost=True)
        else:
            self._restore(step, match, items)

    def _cover(self, positions: Sequence[int], record: Record) -> None:
        """Mark turns that are exactly as their model made them as complete, whatever the contract requires of them."""
        made = record.provenance
        is_own = self._issuer.model in (made.model_asked, made.model_answered) and is_of_account(record, self._issuer)
        if self._contract.takes == "own" and is_own and not self._contract.insists:
            self._covered.update(positions)

    def _withhold(self, step: ModelStep, record: Record, rule: RuleCode, why: str) -> None:
        """Withhold a record that can't be restored. The client's own part of it is sent unchanged: its provider
        decides."""
        self._find(rule, step.positions[0], why)
        self._notes.lose(step.positions, why_unsendable(record, self._issuer, self._contract, rule=rule))
        for position in step.positions:
            items = self._now(position)
            if not record.is_complete and any(kept := [_is_half(item, record) for item in items]):
                whole = tuple(item for item, is_half in zip(items, kept, strict=True) if not is_half)
                self._set(position, whole, "truncated", "a seal whose end was never sent")
            else:
                self._notes.keep(position, items, "", record.id)

    def _sendable(self, record: Record) -> Items | None:
        """Return a record's items in a form that this contract accepts; None if there is none."""
        refused = self._policy.unsendable
        if refused and any(is_refused(item, refused) for item in record.items):
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
            if self._contract.scope != "first_call_of_step":  # there, a call after results is a separate step
                self._covered.update(step.positions)
            items = without_thoughts(items)
        self._used.add(record.id)
        targets = self._woven(items, shown, record.items)
        is_any_frame = match.evidence == "lineage" and step.spot.scope.any_frame
        evidence: Reason = "any_frame" if is_any_frame else match.evidence
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
            # Some models rely on their own form of ids, and an entry of `reasoning_details` has the id of its call.
            if self._contract.dialect.call_ids == "own" or carrier == "reasoning_details":
                learn_names(self._names, target, record)
            if step.is_bare and len(target) > len(own):
                self._put_back(position, target, evidence, record.id)
            else:
                self._replace(position, target, record.items, evidence, record.id)
        if sum(map(len, targets)) >= len(record.items):
            self._cover(step.positions, record)

    def _woven(self, items: Items, shown: Sequence[Items], made: Items) -> list[Items]:
        """Return the turns of a step with the items of its record; `made` are the items with all their ids.

        In a step that the client wrote as several turns, each reasoning item goes into the turn of what it led to.
        """
        if "items_are_elements" in self._wire.quirks:
            is_bound = self._contract.scope == "pairs"
            return [woven_in_pairs(items, own, made, is_bound=is_bound) for own in shown]
        return [weave(items, shown[0])] if len(shown) == 1 else spread(items, shown)

    def _restore_merged(self, step: ModelStep, merged: Merged) -> bool:
        """Restore several steps that the client merged: their reasoning in order, each before its calls."""
        records = merged.records
        sendable = [self._sendable(record) for record in records]
        items = tuple(item for part in sendable if part is not None for item in part)
        is_bound = self._contract.binds_prefix and not (merged.is_joined and step.prefix in records[0].keys)
        if len(step.positions) != 1 or any(part is None for part in sendable) or is_bound:
            return False
        position = step.positions[0]
        carrier: str = self._contract.dialect.carrier
        if self._carriers is not None:
            self._carriers.use(position, records[-1])
            carrier = self._carriers.at(position)
        if self._contract.takes == "text" and carrier in MOVABLE:
            items = as_text(items, self._contract)
        self._used.update(record.id for record in records)
        (target,) = self._woven(items, [self._now(position)], items)
        self._replace(position, target, items, "merged", records[-1].id)
        return True

    def _replace(self, position: int, target: Items, made: Items, evidence: Reason, record: str) -> None:
        shown = self._now(position)
        is_unpaired = self._contract.scope == "pairs" and self._transcript.is_stored is False
        has_all = is_unpaired and not self._contract.insists and has_own_names(shown, target, made)
        if has_all or is_good(shown, target, self._contract, self._transcript.format):
            self._notes.keep(position, shown, evidence, record)
            return
        has_own = any(isinstance(item, REASONING_KINDS) and not is_filler(item) for item in shown)
        self._put_back(position, target, evidence, record)
        if has_own:
            self._find("altered", position, "not as the model gave it; the original was put back")

    def _put_back(self, position: int, target: Items, evidence: Reason, record: str) -> None:
        self._before_put.setdefault(position, self._now(position))
        self._items[position] = target
        self._counted.append((position, "restored"))
        self._notes.put(position, "restored", evidence, record)

    def _strip_known(self, step: ModelStep, record: Record, rule: RuleCode, why: str) -> None:
        """Remove the client's part of a record that must not be sent back, and report it."""
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

    def _unpair(self, step: ModelStep, *, is_lost: bool = False) -> None:
        """Remove ids whose partners are missing: elements without ids are not checked. `is_lost`: the partners are
        known, but can't be sent."""
        if self._contract.scope != "pairs" or "unpair" not in self._contract.ladder:
            return
        may_be_whole = not is_lost and not self._contract.insists
        if self._transcript.is_stored is False and may_be_whole:
            return  # no pairs are checked with `store: false` (recorded: 9 of 9 accepted, 2026-11)
        items = [item for position in step.positions for item in self._now(position)]
        if may_be_whole and referred_names(items):
            return  # the partners may be what the client refers to: only the provider knows
        named = [item for item in items if isinstance(item, (Text, ToolCall, *REASONING_KINDS))]
        if any(isinstance(item, REASONING_KINDS) for item in items) and all(is_named(item) for item in named):
            return
        for position in step.positions:
            shown = self._now(position)
            if any(is_named(item) for item in shown):
                self._items[position] = unnamed(shown)
                self._find("unpaired", position, "ids without their partners were taken out")

    def ask_for_ciphertext(self) -> None:
        """Request encrypted reasoning. If the provider stores nothing, only answers that were asked for it contain
        it."""
        inclusion, includes = self._wire.inclusion, self._transcript.includes
        if inclusion is not None and self._transcript.is_stored is False and inclusion.seals not in includes:
            self._members.append((inclusion.member, msgspec.json.encode([*includes, inclusion.seals])))


def _is_half(item: Item, record: Record) -> bool:
    """Whether a reasoning item has a seal whose end is missing in its record, which is of a truncated turn."""
    seal = seal_of(item) if isinstance(item, REASONING_KINDS) else None
    return seal is not None and all(seal != seal_of(own) for own in record.items)
