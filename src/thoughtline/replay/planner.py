"""Ask, fetch, decide: which keys a request needs, and what to put back, take out or report.

    needs(transcript, contract, identity)  →  Needs      the shell fetches the records of its keys
    plan(transcript, contract, needs, found, issuer)  →  Plan      edits, findings, counts
    plan.apply(transcript)  →  Transcript

What the client sent is kept if it is whole; what it lost or damaged is restored from the record of that very turn; what
a provider would refuse is taken out; what is still missing climbs the contract's ladder. A plan is deterministic, and
planning a planned request changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    seal_of,
)
from thoughtline.records import Key, Record
from thoughtline.replay.contracts import Contract, Rung
from thoughtline.replay.findings import Finding, RuleCode, place_of
from thoughtline.replay.inherit import inherit
from thoughtline.replay.keys import Identity, Step, frame_of, steps_of
from thoughtline.replay.matching import Ambiguous, Found, match_step
from thoughtline.replay.scopes import required_turns
from thoughtline.replay.weaving import (
    as_text,
    is_filler,
    is_named,
    same_reasoning,
    unnamed,
    weave,
    without_reasoning,
)
from thoughtline.turns import Transcript, Turn

SENTINEL = "skip_thought_signature_validator"
_PAUSED = b'{"type":"disabled"}'
_MOVABLE = ("reasoning_content", "reasoning", "reasoning_text", "think_tags", "mistral_chunks", "cohere_chunks")


class Issuer(Struct, frozen=True, gc=False):
    """Who will get the request: seals go back only to the one who made them."""

    provider: str
    endpoint: str
    account: str
    model: str


class Policy(Struct, frozen=True, gc=False):
    """What a setting may change: the ladder of a contract, as a whole."""

    ladder: tuple[Rung, ...] | None = None


DEFAULT_POLICY = Policy()


class Needs(NamedTuple):
    """The model steps of a request, and the keys to look for."""

    identity: Identity
    steps: tuple[Step, ...]
    keys: tuple[Key, ...]


class Counts(Struct, gc=False):
    """What was done, in numbers."""

    restored: int = 0
    inherited: int = 0
    blank: int = 0
    stripped: int = 0
    missing: int = 0


class Plan(Struct, frozen=True, gc=False):
    """What to change of a request, and what there is to say about it."""

    edits: tuple[tuple[int, Turn], ...]
    member_edits: tuple[tuple[str, bytes | None], ...]
    findings: tuple[Finding, ...]
    counts: Counts

    def apply(self, transcript: Transcript) -> Transcript:
        """The request with the plan carried out; the very same one if there is nothing to do."""
        if not self.edits and not self.member_edits:
            return transcript
        turns = list(transcript.turns)
        for position, turn in self.edits:
            turns[position] = turn
        return replace(transcript, turns=tuple(turns), member_edits=(*transcript.member_edits, *self.member_edits))


def needs(transcript: Transcript, contract: Contract, identity: Identity) -> Needs:
    """The keys of all that could be put back. A contract that takes nothing needs nothing."""
    if contract.takes == "nothing":
        return Needs(identity, (), ())
    frame = frame_of(transcript) if contract.binds_prefix else b""
    steps = steps_of(transcript, identity, frame)
    keys = [key for step in steps for part in (step, *step.parts) for key in part.keys]
    return Needs(identity, steps, tuple(dict.fromkeys(keys)))


def plan(
    transcript: Transcript,
    contract: Contract,
    needed: Needs,
    found: Found,
    issuer: Issuer,
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    """What to do about a request, given what is remembered."""
    work = _Work(transcript, contract, needed.identity, found, issuer)
    if contract.takes == "nothing":
        work.strip_everything()
        return work.done()
    for step in needed.steps:
        work.take(step)
    work.climb(policy.ladder if policy.ladder is not None else contract.ladder)
    work.move_fields()
    return work.done()


class _Work:
    """A plan in the making."""

    def __init__(
        self, transcript: Transcript, contract: Contract, identity: Identity, found: Found, issuer: Issuer
    ) -> None:
        self._transcript = transcript
        self._contract = contract
        self._identity = identity
        self._found = found
        self._issuer = issuer
        self._required = frozenset(required_turns(transcript, contract))
        self._items: dict[int, tuple[Item, ...]] = {}
        self._moved: set[int] = set()
        self._members: list[tuple[str, bytes | None]] = []
        self._findings: list[Finding] = []
        self._counts = Counts()
        self._had_none: set[int] = set()
        self._used: set[str] = set()
        self._is_prefix_broken = False

    # --- one step -------------------------------------------------------------------------------------------------

    def take(self, step: Step) -> None:
        """Restore one step from its record, or leave it."""
        match = match_step(step, self._found, self._identity)
        if isinstance(match, Ambiguous):
            self._find("ambiguous", step.positions[0], f"{match.records} records fit this turn and differ")
        elif match is not None:
            self._use(step, match.record)
            return
        if step.parts:
            for part in step.parts:
                self.take(part)
            return
        self._unpair(step)

    def _use(self, step: Step, record: Record) -> None:
        if not record.has_reasoning:
            self._had_none.update(step.positions)
            return
        if self._contract.binds_prefix and (self._is_prefix_broken or step.prefix not in record.keys):
            self._is_prefix_broken = True
            self._strip_known(step, record, "bound-prefix-changed", "what stands before this turn was changed")
            return
        items = self._sendable(record)
        if items is None:
            self._strip_known(step, record, "foreign", "made by another provider, account or model")
            return
        self._restore(step, record, items)

    def _sendable(self, record: Record) -> tuple[Item, ...] | None:
        """A record's items in a shape that this contract takes; None if there is none."""
        takes_text = self._contract.takes == "text"
        is_own = is_issued_by(record, self._issuer, self._contract)
        is_same_wire = is_own and record.is_complete and record.provenance.format == self._transcript.format
        if is_same_wire and (not takes_text or self._contract.dialect.carrier in ("native", "reasoning_details")):
            return record.items
        if not takes_text:
            return None
        items = as_text(record.items, self._contract)
        return items if any(isinstance(item, REASONING_KINDS) for item in items) else None

    def _restore(self, step: Step, record: Record, items: tuple[Item, ...]) -> None:
        again = record.id in self._used and self._contract.kind == "authenticity"
        self._used.add(record.id)
        seals_only = tuple(item for item in items if not isinstance(item, REASONING_KINDS))
        for number, position in enumerate(step.positions):
            turn = self._transcript.turns[position]
            repeats = number > 0 and not (self._contract.kind == "presence" and position in self._required)
            target = weave(seals_only if again or repeats else items, turn.items)
            if self._transcript.format == "openai_responses":
                target = _paired(target, record)
            self._replace(position, turn, target, record)

    def _replace(self, position: int, turn: Turn, target: tuple[Item, ...], record: Record) -> None:
        if same_reasoning(target, turn.items) or self._is_own_words(turn, target):
            return
        has_own = any(isinstance(item, REASONING_KINDS) and not is_filler(item) for item in turn.items)
        self._items[position] = target
        self._counts.restored += 1
        if has_own:
            self._find("altered", position, "not as the model gave it; the original was put back")

    def _is_own_words(self, turn: Turn, target: tuple[Item, ...]) -> bool:
        """Plain text that differs from the original by more than damage is the client's own business."""
        if self._contract.takes != "text":
            return False
        own, original = _text_of(turn.items), _text_of(target)
        if not own.strip():
            return False
        return "".join(own.split()) not in "".join(original.split())

    def _strip_known(self, step: Step, record: Record, rule: RuleCode, why: str) -> None:
        """Take out what the client sent of a record that must not go back."""
        known = {seal.data for item in record.items if (seal := seal_of(item)) is not None}
        for position in step.positions:
            items = self._transcript.turns[position].items
            kept = tuple(bare for item in items if (bare := _without_seal(item, known)) is not None)
            if kept != items:
                self._items[position] = kept
                self._counts.stripped += 1
                self._find(rule, position, why)

    # --- Responses pairs ------------------------------------------------------------------------------------------

    def _unpair(self, step: Step) -> None:
        """Elements that name partners nobody sent: without names nothing is checked."""
        if self._contract.scope != "pairs" or "unpair" not in self._contract.ladder:
            return
        has_reasoning = any(isinstance(item, REASONING_KINDS) for item in step.items)
        if has_reasoning and all(
            is_named(item) for item in step.items if isinstance(item, (*_PAIRS, *REASONING_KINDS))
        ):
            return
        for position in step.positions:
            turn = self._transcript.turns[position]
            if any(is_named(item) for item in turn.items):
                self._items[position] = unnamed(turn.items)
                self._find("unpaired", position, "ids without their partners were taken out")

    # --- what is still missing ------------------------------------------------------------------------------------

    def climb(self, ladder: tuple[Rung, ...]) -> None:
        """For each turn that must carry reasoning and doesn't, the first rung that holds."""
        inherited = inherit(self._transcript.turns) if "inherit" in ladder else {}
        for position in sorted(self._required):
            items = self._items.get(position, self._transcript.turns[position].items)
            if not self._carries(items):
                self._climb_one(position, items, ladder, inherited)

    def _carries(self, items: tuple[Item, ...]) -> bool:
        if self._contract.scope == "first_call_of_step":
            first = next((item for item in items if isinstance(item, ToolCall)), None)
            return first is None or first.seal is not None
        if self._contract.scope == "loop_head":
            return bool(items) and isinstance(items[0], (ReasoningText, ReasoningEncrypted))
        return any(isinstance(item, REASONING_KINDS) for item in items)

    def _climb_one(
        self, position: int, items: tuple[Item, ...], ladder: tuple[Rung, ...], inherited: dict[int, ReasoningText]
    ) -> None:
        made_by = self._contract.dialect.reasoning_format
        for rung in ladder:
            if rung == "empty" and position in self._had_none:
                self._items[position] = (ReasoningText("", None, made_by), *items)
            elif rung == "inherit" and position in inherited:
                self._items[position] = (replace(inherited[position], format=made_by), *items)
                self._counts.inherited += 1
            elif rung == "blank":
                self._items[position] = (ReasoningText(self._contract.filler, None, made_by), *items)
                self._counts.blank += 1
                self._find("missing", position, "nobody has this turn's reasoning; a blank stands for it")
            elif rung == "sentinel":
                self._items[position] = _with_sentinel(items)
                self._counts.blank += 1
                self._find("missing", position, "nobody has this call's signature; the skip value stands for it")
            elif rung == "pause_thinking":
                self._pause(position)
            else:
                continue
            return
        self._counts.missing += 1
        self._find("missing", position, "nobody has this turn's reasoning")

    def _pause(self, position: int) -> None:
        if not self._members:
            self._members.append(("thinking", _PAUSED))
        self._counts.missing += 1
        self._find("missing", position, "nobody has this turn's reasoning; thinking is off for this request")

    # --- fields ---------------------------------------------------------------------------------------------------

    def move_fields(self) -> None:
        """Reasoning that stands in a member the provider does not read, or refuses, goes where it belongs."""
        carrier = self._contract.dialect.carrier
        if carrier not in _MOVABLE or self._contract.name == "unknown":
            return
        for position, turn in enumerate(self._transcript.turns):
            if turn.carriers and turn.carriers != (carrier,):
                self._moved.add(position)

    def strip_everything(self) -> None:
        """A provider that takes no reasoning gets none."""
        for position, turn in enumerate(self._transcript.turns):
            if turn.role != "assistant":
                continue
            bare = without_reasoning(turn.items)
            if bare != turn.items:
                self._items[position] = bare
                self._counts.stripped += 1
                self._find("forbidden", position, "this provider refuses reasoning in the history")

    # --- the result -----------------------------------------------------------------------------------------------

    def _find(self, rule: RuleCode, position: int, message: str) -> None:
        place = place_of(self._transcript.format, self._transcript.turns[position])
        self._findings.append(Finding(rule, place, message, ""))

    def done(self) -> Plan:
        edits = []
        for position in sorted(self._items.keys() | self._moved):
            turn = self._transcript.turns[position]
            if position in self._items:
                turn = turn.with_items(self._items[position])
            edits.append((position, turn.with_reasoning_moved() if position in self._moved else turn))
        return Plan(tuple(edits), tuple(self._members), tuple(self._findings), self._counts)


_PAIRS = (Text, ToolCall)


def is_issued_by(record: Record, issuer: Issuer, contract: Contract) -> bool:
    """Whether this provider, at this address, for this account made the record's seals."""
    made = record.provenance
    if (made.provider, made.endpoint, made.account) != (issuer.provider, issuer.endpoint, issuer.account):
        return False
    return not contract.binds_model or issuer.model in (made.model_asked, made.model_answered)


def _text_of(items: tuple[Item, ...]) -> str:
    return "".join(item.text for item in items if isinstance(item, ReasoningText))


def _without_seal(item: Item, known: set[str]) -> Item | None:
    """The item without a seal of this set; None if it was nothing else."""
    seal = seal_of(item)
    if seal is None or seal.data not in known:
        return item
    return None if isinstance(item, REASONING_KINDS) else replace(item, seal=None)


def _paired(items: tuple[Item, ...], record: Record) -> tuple[Item, ...]:
    """All names of a step, or none: half a pair is refused."""
    names = {item.id for item in record.items if isinstance(item, Text)}
    names |= {item.item_id for item in record.items if isinstance(item, ToolCall)}
    shown = [
        item.id if isinstance(item, Text) else item.item_id for item in items if isinstance(item, (Text, ToolCall))
    ]
    is_whole = bool(shown) and all(name is not None and name in names for name in shown)
    return items if is_whole else unnamed(items)


def _with_sentinel(items: tuple[Item, ...]) -> tuple[Item, ...]:
    at = next(at for at, item in enumerate(items) if isinstance(item, ToolCall))
    return tuple(
        replace(item, seal=Seal(SENTINEL, GOOGLE_GEMINI_V1)) if number == at and isinstance(item, ToolCall) else item
        for number, item in enumerate(items)
    )
