"""A plan as a value: what to change of a request, and what there is to say about it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.providers import Contract, Rung
from thoughtline.replay.findings import Finding
from thoughtline.values.destination import Destination
from thoughtline.values.outcome import Counts
from thoughtline.values.records import Key, Record
from thoughtline.values.turn_notes import TurnNote
from thoughtline.values.turns import Transcript, Turn


class Policy(Struct, frozen=True, gc=False):
    """What settings and refusals change about a plan.

    `ladder` stands in for the contract's. `refused` are the keys of seals that a provider would not take: they are not
    sent again. `drops_ids` leaves the names of Responses items out, `pauses_thinking` switches thinking off,
    `bares_loop` leaves out the thinking of a turn that is still going on, `drops` members as a contract's does.
    """

    ladder: tuple[Rung, ...] | None = None
    refused: frozenset[Key] = frozenset()
    drops_ids: bool = False
    pauses_thinking: bool = False
    bares_loop: bool = False
    drops: tuple[str, ...] = ()


class Plan(Struct, frozen=True, gc=False):
    """What to change of a request, and what there is to say about it.

    `filler` is the least that stands for reasoning in it, if anything does. `notes` say of each turn what was done.
    """

    edits: tuple[tuple[int, Turn], ...]
    member_edits: tuple[tuple[str, bytes | None], ...]
    findings: tuple[Finding, ...]
    counts: Counts
    filler: str | None = None
    notes: tuple[TurnNote, ...] = ()

    def apply(self, transcript: Transcript) -> Transcript:
        """The request with the plan carried out; the very same one if there is nothing to do."""
        if not self.edits and not self.member_edits:
            return transcript
        turns = list(transcript.turns)
        for position, turn in self.edits:
            turns[position] = turn
        return replace(transcript, turns=tuple(turns), member_edits=(*transcript.member_edits, *self.member_edits))


def is_issued_by(record: Record, issuer: Destination, contract: Contract) -> bool:
    """Whether this provider, at this address, for this account made the record's seals."""
    made = record.provenance
    if (made.provider, made.endpoint, made.account) != (issuer.provider, issuer.endpoint, issuer.account):
        return False
    return not contract.binds_model or issuer.model in (made.model_asked, made.model_answered)
