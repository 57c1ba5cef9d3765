"""What a plan needs, and a plan as a value: the keys to look for, the records that lineages settle, what to change of a
request and what there is to say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.providers import Contract, Rung
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import ModelStep, Spot, Standing, session_entry, walk
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, ReasoningText, ToolCall, plain_token, seal_of
from thoughtline.values.outcome import Counts, Evidence, NoteChain, TurnNote
from thoughtline.values.records import UNKNOWN_PARENT, Key, Record, RecordId
from thoughtline.values.turns import Transcript, Turn

Found = Mapping[Key, Sequence[Record]]


class Policy(Struct, frozen=True, gc=False):
    """What settings and refusals change about a plan.

    `ladder` stands in for the contract's. `refused` are the keys of seals that a provider would not take: they are not
    sent again. `cut` are seals that this very request is healed without. `drops_ids` leaves the names of Responses
    items out, `pauses_thinking` switches thinking off, `bares_loop` leaves out the thinking of a turn that is still
    going on, `drops` members and `mends` elements as a contract's do.
    """

    ladder: tuple[Rung, ...] | None = None
    refused: frozenset[Key] = frozenset()
    drops_ids: bool = False
    pauses_thinking: bool = False
    bares_loop: bool = False
    drops: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    cut: frozenset[Key] = frozenset()

    @property
    def unsendable(self) -> frozenset[Key]:
        """Seals that don't go up."""
        return self.refused | self.cut if self.cut else self.refused

    @property
    def corrects(self) -> bool:
        """Whether a refusal is to be healed by it."""
        return self.drops_ids or self.pauses_thinking or self.bares_loop or bool(self.drops or self.mends or self.cut)


class Past(Struct, frozen=True, gc=False):
    """What a plan has to know of turns that stand before those it is made for, and that were planned before.

    `elements` is how many they are in the wire's list. `carrier` is the member that the last record's reasoning came
    in. `is_in_loop`: the model has spoken since the last user message. `parent` is the record of the last model turn,
    `block` the last thinking block that went up.
    """

    elements: int = 0
    counts: Counts = Counts()
    findings: tuple[Finding, ...] = ()
    filler: str | None = None
    carrier: str = ""
    is_in_loop: bool = False
    notes: NoteChain | None = None
    parent: RecordId = UNKNOWN_PARENT
    block: str = ""


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
    parents: dict[int, RecordId] = {}
    blocks: dict[int, str] = {}


class Plan(Struct, frozen=True, gc=False):
    """What to change of a request, and what there is to say about it.

    `filler` is the least that stands for reasoning in it, if anything does. `notes` say of each turn what was done.
    `block` is the last thinking block that goes up, where its model counts on that; `is_cut`: blocks that the provider
    refused are left out. `parent` is the record of the last model turn in it, which the record of the answer names.
    `enters_session`: no turn before the answer is of the session that the client names.
    """

    edits: tuple[tuple[int, Turn], ...]
    member_edits: tuple[tuple[str, bytes | None], ...]
    findings: tuple[Finding, ...]
    counts: Counts
    filler: str | None = None
    notes: NoteChain | None = None
    parent: RecordId = UNKNOWN_PARENT
    enters_session: bool = False
    block: str = ""
    is_cut: bool = False

    def apply(self, transcript: Transcript) -> Transcript:
        """The request with the plan carried out; the very same one if there is nothing to do."""
        if not self.edits and not self.member_edits:
            return transcript
        turns = list(transcript.turns)
        for position, turn in self.edits:
            turns[position] = turn
        return replace(transcript, turns=tuple(turns), member_edits=(*transcript.member_edits, *self.member_edits))


def is_of_account(record: Record, issuer: Destination) -> bool:
    """Whether this provider, at this address, for this account made the record's seals."""
    made = record.provenance
    return (made.provider, made.endpoint, made.account) == (issuer.provider, issuer.endpoint, issuer.account)


def is_issued_by(record: Record, issuer: Destination, contract: Contract) -> bool:
    """The same, and the model that is asked now can read them."""
    made = record.provenance
    if not is_of_account(record, issuer):
        return False
    if issuer.model in (made.model_asked, made.model_answered):
        return True
    return not contract.binds_model and not (contract.unread and re.search(contract.unread, record.model.lower()))


# --- what is needed to make one ---------------------------------------------------------------------------------------


class Match(NamedTuple):
    """The record of a step. `is_glued`: its reasoning stands in the visible text. `evidence` is the best there is."""

    record: Record
    is_glued: bool = False
    evidence: Evidence = "lineage"


class Needs(NamedTuple):
    """The model steps of a request, and the keys to look for.

    `first` finds nearly all that can be found, with one key for each step; `wanting` (`chains.py`) says what else to
    look for, given what was found. `keys` is all of it, for those who fetch once. `end` is where the answer will stand:
    it is all of the request that capturing the answer needs. `settled` are the records that their lineages and the ids
    of their calls name, where that was looked up.
    """

    identity: Identity
    steps: tuple[ModelStep, ...]
    end: Spot | None
    settled: tuple[Match | None, ...] | None = None

    @property
    def first(self) -> tuple[Key, ...]:
        lineages: dict[Key, None] = {}
        for step in self.steps:
            if step.lineage is not None:
                lineages[step.lineage] = None
        return tuple(lineages)

    @property
    def names(self) -> tuple[Key, ...]:
        """The keys of calls by which steps are known that their lineage does not settle."""
        pairs = zip(self.steps, self.settled or (), strict=False)
        return tuple(dict.fromkeys([one for step, match in pairs if match is None for one in step.names]))

    def keys_of(self, steps: Iterable[ModelStep]) -> tuple[Key, ...]:
        """All that some of its steps can be found by."""
        keys = keys_of(steps)
        return keys if self.identity.session is None else (*keys, session_entry(self.identity))

    def by_lineage(self, found: Found) -> tuple[Match | None, ...]:
        """For each step the record that its lineage names."""
        settled: list[Match | None] = []
        for step in self.steps:
            settled.append(match_by_lineage(step, found, self.identity))
        return tuple(settled)

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.keys_of(self.steps)


def keys_of(steps: Iterable[ModelStep]) -> tuple[Key, ...]:
    """All that steps can be found by, taken whole, in parts, and as several answers that the client joined."""
    found: dict[Key, None] = {}
    for step in steps:
        for part in (step, *step.parts):
            found.update(dict.fromkeys(part.keys))
        if step.lineage is not None and not step.parts:
            found[step.spot.going_on()] = None
    return tuple(found)


def needs(transcript: Transcript, contract: Contract, identity: Identity, start: Standing | None = None) -> Needs:
    """The keys of all that could be put back. A contract that takes nothing needs nothing.

    `start` is where a transcript begins that is only the end of a conversation.
    """
    if contract.takes == "nothing":
        return Needs(identity, (), None)
    bound = bound_of(transcript) if contract.binds_prefix and start is None else b""
    steps, end = walk(transcript, identity, bound, start)
    return Needs(identity, steps, end)


def match_by_lineage(step: ModelStep, found: Found, identity: Identity) -> Match | None:
    """The one record with the very history of a step, its frame and its end user, if nothing speaks against it.

    That could be only a record of this session where it is of another, the reasoning that the client sent with the
    step, the ids of its calls, or the records of the steps around it (`chains.py`).
    """
    records = found.get(step.lineage, ()) if step.lineage is not None else ()
    if len(records) != 1:
        return None
    record = records[0]
    if step.lineage not in record.keys or record.provenance.tenant != identity.tenant:
        return None
    if identity.session is not None and is_of_other_session(record, identity):
        return None
    if _has_other_ids(step.items, record.items):
        return None
    if step.is_bare or not (own := tuple(thoughts_of(step.items))):
        return Match(record)
    return Match(record) if own == tuple(thoughts_of(record.items)) else None


def _has_other_ids(shown: Sequence[Item], made: Sequence[Item]) -> bool:
    """Whether calls have ids on both sides, and none is on both."""
    names = [item.id for item in shown if isinstance(item, ToolCall) and item.id]
    if not names:
        return False
    own = {item.id for item in made if isinstance(item, ToolCall) and item.id}
    return bool(own) and own.isdisjoint(names)


def is_of_other_session(record: Record, identity: Identity) -> bool:
    """Both say which session they are of, and it is not the same."""
    session = record.provenance.named_session
    return identity.session is not None and session is not None and session != identity.session


def thoughts_of(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """What a client could send back of a turn's reasoning: words in the clear, and seals."""
    for item in items:
        seal = seal_of(item)
        text = item.text.strip() if isinstance(item, ReasoningText) else ""
        if text or seal is not None:
            yield text, plain_token(seal.data) if seal else ""
