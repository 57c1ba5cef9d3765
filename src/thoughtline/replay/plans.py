"""A plan as a value: what to change of a request, and what there is to say about it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.providers import Contract, Rung
from thoughtline.replay.findings import Finding
from thoughtline.values.destination import Destination
from thoughtline.values.outcome import Counts, NoteChain, TurnNote
from thoughtline.values.records import Key, Record
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

    @property
    def corrects(self) -> bool:
        """Whether a refusal is to be healed by it."""
        return self.drops_ids or self.pauses_thinking or self.bares_loop or bool(self.drops)


class Past(Struct, frozen=True, gc=False):
    """What a plan has to know of turns that stand before those it is made for, and that were planned before.

    `elements` is how many they are in the wire's list. `carrier` is the member that the last record's reasoning came
    in. `is_in_loop`: the model has spoken since the last user message.
    """

    elements: int = 0
    counts: Counts = Counts()
    findings: tuple[Finding, ...] = ()
    filler: str | None = None
    carrier: str = ""
    is_in_loop: bool = False
    notes: NoteChain | None = None


NO_PAST = Past()


class Trace(Struct, frozen=True, gc=False):
    """What a plan is made of, turn by turn: for whoever remembers the beginning of a conversation.

    What is planned for `loose` turns depends on what follows; for `loose_in_loop` until the next user message; for
    `loose_heads` too, where they are the first of a tool loop.
    """

    counted: tuple[tuple[int, str], ...]
    findings: tuple[tuple[int, Finding], ...]
    fillers: dict[int, str]
    carriers: dict[int, str]
    loose: frozenset[int]
    loose_in_loop: frozenset[int]
    loose_heads: frozenset[int]
    notes: dict[int, TurnNote] = {}


class Plan(Struct, frozen=True, gc=False):
    """What to change of a request, and what there is to say about it.

    `filler` is the least that stands for reasoning in it, if anything does. `notes` say of each turn what was done.
    """

    edits: tuple[tuple[int, Turn], ...]
    member_edits: tuple[tuple[str, bytes | None], ...]
    findings: tuple[Finding, ...]
    counts: Counts
    filler: str | None = None
    notes: NoteChain | None = None

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
