"""Plans and what they need, as values: keys to look up, records settled by lineages, edits of a request, findings."""

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
    """How settings and refusals change a plan.

    `ladder` replaces the contract's. `refused` are the keys of seals that a provider has refused: they are not sent
    again. `cut` are seals that are removed to heal this request. `drops_ids` removes the ids of Responses items,
    `pauses_thinking` switches thinking off, `bares_loop` removes the thinking of a turn that is still going on, `drops`
    removes members and `mends` changes elements as a contract's do.
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
        """Seals that are not sent."""
        return self.refused | self.cut if self.cut else self.refused

    @property
    def corrects(self) -> bool:
        """Whether it heals a refused request."""
        return self.drops_ids or self.pauses_thinking or self.bares_loop or bool(self.drops or self.mends or self.cut)


class Past(Struct, frozen=True, gc=False):
    """What a plan needs to know about earlier turns that were planned before.

    `elements` is their number in the wire's list. `carrier` is the member that the last record's reasoning came in.
    `is_in_loop`: the model has answered since the last user message. `parent` is the record of the last model turn,
    `block` the last thinking block that was sent.
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
    """The parts of a plan, turn by turn, for caching the beginning of a conversation.

    The plan for `loose` turns depends on later turns; for `loose_in_loop` only until the next user message; so it does
    for `loose_heads`, if they begin a tool loop.
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
    """The edits of a request, and the report on them.

    `filler` is the smallest filler used for reasoning, if any. `notes` say what was done for each turn. `block` is the
    last thinking block that is sent, if its model relies on that; `is_cut`: blocks that the provider refused are
    removed. `parent` is the record of the last model turn, which the answer's record will name. `enters_session`: no
    earlier turn belongs to the session that the client names.
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
        """Return the request with the plan applied; the same object if there is nothing to do."""
        if not self.edits and not self.member_edits:
            return transcript
        turns = list(transcript.turns)
        for position, turn in self.edits:
            turns[position] = turn
        return replace(transcript, turns=tuple(turns), member_edits=(*transcript.member_edits, *self.member_edits))


def is_of_account(record: Record, issuer: Destination) -> bool:
    """Whether this provider made the record's seals, at this address and for this account."""
    made = record.provenance
    return (made.provider, made.endpoint, made.account) == (issuer.provider, issuer.endpoint, issuer.account)


def is_issued_by(record: Record, issuer: Destination, contract: Contract) -> bool:
    """The same, and the requested model can read them."""
    made = record.provenance
    if not is_of_account(record, issuer):
        return False
    if issuer.model in (made.model_asked, made.model_answered):
        return True
    return not contract.binds_model and not (contract.unread and re.search(contract.unread, record.model.lower()))


# --- what a plan needs ------------------------------------------------------------------------------------------------


class Match(NamedTuple):
    """The record of a step. `is_glued`: its reasoning is in the visible text. `evidence` is the strongest found."""

    record: Record
    is_glued: bool = False
    evidence: Evidence = "lineage"


class Needs(NamedTuple):
    """The model steps of a request, and the keys to look up.

    `first` finds nearly everything with one key per step; `wanting` (`chains.py`) returns further keys, given the
    records found. `keys` is all of them, for a single lookup. `end` is the place of the answer, which is all that
    capturing the answer needs. `settled` are the records named by lineages and call ids, if they were looked up.
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
        """Call keys that identify steps which their lineage does not settle."""
        pairs = zip(self.steps, self.settled or (), strict=False)
        return tuple(dict.fromkeys([one for step, match in pairs if match is None for one in step.names]))

    def keys_of(self, steps: Iterable[ModelStep]) -> tuple[Key, ...]:
        """Return all keys of some of its steps."""
        keys = keys_of(steps)
        return keys if self.identity.session is None else (*keys, session_entry(self.identity))

    def by_lineage(self, found: Found) -> tuple[Match | None, ...]:
        """Return for each step the record that its lineage names."""
        settled: list[Match | None] = []
        for step in self.steps:
            settled.append(match_by_lineage(step, found, self.identity))
        return tuple(settled)

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.keys_of(self.steps)


def keys_of(steps: Iterable[ModelStep]) -> tuple[Key, ...]:
    """Return all keys of steps: as a whole, in parts, and as several answers that the client joined."""
    found: dict[Key, None] = {}
    for step in steps:
        for part in (step, *step.parts):
            found.update(dict.fromkeys(part.keys))
        if step.lineage is not None and not step.parts:
            found[step.spot.going_on()] = None
    return tuple(found)


def needs(transcript: Transcript, contract: Contract, identity: Identity, start: Standing | None = None) -> Needs:
    """Return the keys of everything that could be restored. A contract that accepts nothing needs none.

    `start` is the place where a transcript begins that is only the end of a conversation.
    """
    if contract.takes == "nothing":
        return Needs(identity, (), None)
    bound = bound_of(transcript) if contract.binds_prefix and start is None else b""
    steps, end = walk(transcript, identity, bound, start)
    return Needs(identity, steps, end)


def match_by_lineage(step: ModelStep, found: Found, identity: Identity) -> Match | None:
    """Return the only record with exactly the history of a step, its frame and its end user, unless something
    contradicts it.

    Contradictions are: a record of this session where this one is of another, reasoning that the client sent with the
    step, its call ids, or the records of neighbouring steps (`chains.py`).
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
    """Whether calls have ids on both sides, with none in common."""
    names = [item.id for item in shown if isinstance(item, ToolCall) and item.id]
    if not names:
        return False
    own = {item.id for item in made if isinstance(item, ToolCall) and item.id}
    return bool(own) and own.isdisjoint(names)


def is_of_other_session(record: Record, identity: Identity) -> bool:
    """Whether both name a session, and the two differ."""
    session = record.provenance.named_session
    return identity.session is not None and session is not None and session != identity.session


def thoughts_of(items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """Yield what a client could send back of a turn's reasoning: readable text and seals."""
    for item in items:
        seal = seal_of(item)
        text = item.text.strip() if isinstance(item, ReasoningText) else ""
        if text or seal is not None:
            yield text, plain_token(seal.data) if seal else ""
