"""What is noted about each turn while a plan is made: what was done, by which evidence, or why it could not be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thoughtline.providers import Contract
from thoughtline.providers.refusals import RuleCode
from thoughtline.replay.keys import ModelStep
from thoughtline.replay.matching import Found, looks_of
from thoughtline.replay.plans import is_issued_by
from thoughtline.replay.weaving import is_filler
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, is_reasoning
from thoughtline.values.records import Record
from thoughtline.values.turn_notes import Deed, Reason, TurnNote
from thoughtline.values.turns import Turn

_STRIPPED: dict[RuleCode, Reason] = {
    "foreign": "foreign_seal",
    "truncated": "unsigned",
    "forbidden": "forbidden",
    "stale-id": "stale_id",
    "bound-prefix-changed": "prefix_changed",
}


class NotesOfTurns:
    """By position; the last word about a turn counts."""

    def __init__(self, turns: Sequence[Turn], elements: int = 0) -> None:
        """`elements` stand before these turns in the wire's list."""
        self._turns = turns
        self._elements = elements
        self.by_position: dict[int, TurnNote] = {}
        self._lost: dict[int, Reason] = {}
        self._unfound: dict[int, ModelStep] = {}

    def put(self, position: int, deed: Deed, why: Reason, record: str = "") -> None:
        self.by_position[position] = TurnNote(self._turns[position].at + self._elements, deed, why, record)

    def keep(self, position: int, items: Sequence[Item], evidence: Reason, record: str) -> None:
        """What the client sent is as its model gave it."""
        if any(is_reasoning(item) and not is_filler(item) for item in items):
            self.put(position, "kept", evidence, record)

    def put_stripped(self, position: int, rule: RuleCode) -> None:
        self.put(position, "stripped", self._lost.get(position) or _STRIPPED.get(rule, ""))

    def put_unrestored(self, position: int, deed: Deed, found: Found, identity: Identity) -> None:
        """A turn that must have reasoning, and can't have its own."""
        step = self._unfound.get(position)
        why = self._lost.get(position) or ("no_record" if step is None else why_unfound(step, found, identity))
        self.put(position, deed, why, step.lineage or "" if step is not None and why == "no_record" else "")

    def lose(self, positions: Iterable[int], why: Reason) -> None:
        """Why these turns can't have their own back, should they need it."""
        for position in positions:
            self._lost[position] = why

    def not_find(self, step: ModelStep) -> None:
        """Nobody has this step's record: why, is looked into only if it is needed. What the client sent goes up."""
        for position in step.positions:
            self._unfound[position] = step
            if not step.is_bare and position not in self.by_position:
                self.keep(position, self._turns[position].items, "", "")


def why_unfound(step: ModelStep, found: Found, identity: Identity) -> Reason:
    """Why none of the records that share a key with a step is its own."""
    if looks_of(step, found, identity):
        return "unproven"
    known = (record for one in step.keys for record in found.get(one, ()))
    return "text_differs" if any(record.provenance.tenant == identity.tenant for record in known) else "no_record"


def why_unsendable(record: Record, issuer: Destination, contract: Contract, *, rule: RuleCode) -> Reason:
    """Why a record that was found may not go where the request goes."""
    if rule == "bound-prefix-changed":
        return "prefix_changed"
    made = record.provenance
    if is_issued_by(record, issuer, contract):
        return "seal_refused" if record.is_complete else "cut_short"
    if (made.provider, made.endpoint) == (issuer.provider, issuer.endpoint) and made.account != issuer.account:
        return "other_account"
    return "other_maker"
