"""The plan for each turn so far, its report, and which parts depend on later turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract
from thoughtline.providers.contract import DEPEND_ON_THE_END, after_last_user, has_calls, required_turns
from thoughtline.providers.refusals import RuleCode
from thoughtline.replay.findings import Finding, place_of
from thoughtline.replay.keys import ModelStep, is_empty_turn
from thoughtline.replay.links import last_block
from thoughtline.replay.matching import looks_of
from thoughtline.replay.pairing import is_named, unnamed
from thoughtline.replay.plans import NO_PAST, Found, Past, Plan, Policy, Trace, is_issued_by
from thoughtline.replay.thinking import paused, unasked, without_ciphertext
from thoughtline.replay.visible import is_same_call
from thoughtline.replay.weaving import filler_of, is_filler, without_reasoning
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningText,
    ToolCall,
    ToolResult,
    is_reasoning,
)
from thoughtline.values.outcome import Counts, Reason, Treatment, TurnNote, chained
from thoughtline.values.records import Record, RecordId
from thoughtline.values.turns import Transcript, Turn

_SMUGGLED = "__thought__"
"""LiteLLM hides Gemini's signature in the id of a call, after this text."""


class TurnPlans:
    """The turns of a request, the turns before them (`past`), and the plan for each."""

    def __init__(
        self, transcript: Transcript, contract: Contract, issuer: Destination, *, policy: Policy, past: Past = NO_PAST
    ) -> None:
        self._past = past
        self._transcript = transcript
        self._wire = FORMATS[transcript.format]
        self._contract = contract
        self._issuer = issuer
        self._policy = policy
        self._assistant = [position for position, turn in enumerate(transcript.turns) if turn.role == "assistant"]
        # If a tool loop began earlier, its first turn is among the earlier ones.
        is_gone_on = past.is_in_loop and contract.scope == "loop_head" and not after_last_user(transcript.turns)
        self._required = frozenset(() if is_gone_on else required_turns(transcript, contract, self._assistant))
        self._items: dict[int, tuple[Item, ...]] = {}
        self._moved: set[int] = set()
        self._carriers = Carriers(contract, issuer, past.carrier) if contract.follows_answers else None
        self._members: list[tuple[str, bytes | None]] = []
        self._findings: list[tuple[int, Finding]] = []
        self._counted: list[tuple[int, str]] = []
        self._had_none: set[int] = set()
        self._fillers: dict[int, str] = {}
        self._covered = {position for position in self._assistant if is_empty_turn(transcript.turns[position])}
        self._loose: set[int] = set()
        self._loose_in_loop: set[int] = set()
        self._is_paused = False
        self.is_relinked = self.is_cut = False
        self._names: dict[str, str] = {}
        self._parents: dict[int, RecordId] = {}
        self._enters_session = False
        self._notes = NotesOfTurns(transcript.turns, past.elements)

    def _now(self, position: int) -> tuple[Item, ...]:
        """Return the items of a turn in the plan so far."""
        return self._items.get(position, self._transcript.turns[position].items)

    def _set(self, position: int, items: tuple[Item, ...], rule: RuleCode, why: str) -> None:
        self._items[position] = items
        self._counted.append((position, "stripped"))
        self._notes.put_stripped(position, rule)
        self._find(rule, position, why)

    def _carries(self, position: int, items: tuple[Item, ...]) -> bool:
        if self._contract.scope == "first_call_of_step":
            first = next((item for item in items if isinstance(item, ToolCall)), None)
            return first is None or first.seal is not None
        if self._contract.scope == "loop_head":
            # A turn with reasoning elsewhere may be as it was made: Claude also writes text before it.
            heads = items[:1] if self._contract.insists else items
            return any(isinstance(item, (ReasoningText, ReasoningEncrypted)) for item in heads)
        return any(isinstance(item, REASONING_KINDS) and not self._is_hollow(position, item) for item in items)

    def _is_hollow(self, position: int, item: Item) -> bool:
        """Whether it is a blank without a known meaning: neither for a turn without reasoning nor our own filler."""
        if not is_filler(item) or self._takes_empty(position):
            return False
        return not isinstance(item, ReasoningText) or item.text != self._contract.filler

    def _takes_empty(self, position: int) -> bool:
        return position in self._had_none and not self._contract.refuses_empty

    def _find(self, rule: RuleCode, position: int, message: str) -> None:
        turn = self._transcript.turns[position]
        place = place_of(self._transcript.format, replace(turn, at=turn.at + self._past.elements))
        self._findings.append((position, Finding(rule, place, message, "")))

    # --- the request as a whole
    # -------------------------------------------------------------------------------------------

    def mend(self) -> None:
        """Restore ids of calls and results, with each result once. Move reasoning from a member that the provider does
        not read, or refuses, to the right one."""
        turns = self._transcript.turns
        for position, turn in enumerate(turns):
            if turn.role == "assistant" and turn.carriers and _is_misplaced(turn, self._contract):
                self._moved.add(position)
            items = self._items.get(position, turn.items)
            if _are_well_named(items, self._names):
                continue
            mended = tuple([_renamed(item, self._names) for item in items])
            mended = _unrepeated(turns, position, mended)
            if mended != items:
                self._items[position] = mended

    def strip_everything(self) -> None:
        """Remove all reasoning, for a provider that accepts none."""
        for position in self._assistant:
            turn = self._transcript.turns[position]
            bare = without_reasoning(turn.items)
            if bare != turn.items:
                self._set(position, self._parted(bare), "forbidden", "this provider refuses reasoning in the history")
            if turn.carriers:
                self._moved.add(position)
        self._members += without_ciphertext(self._transcript)

    def amend(self) -> None:
        """Apply a refusal's remedy for the request as a whole."""
        if self._contract.never_thinks:
            self._members += unasked(self._transcript)
        if self._policy.pauses_thinking:
            self._pause_thinking()
        if self._policy.bares_loop or (self._is_paused and self._contract.takes == "own"):
            self._bare_loop()
        if self._policy.drops_ids and "items_are_elements" in self._wire.quirks:
            for position, turn in enumerate(self._transcript.turns):
                if turn.role == "assistant" and any(is_named(item) for item in self._now(position)):
                    self._set(position, unnamed(self._now(position)), "stale-id", "ids that this provider refused")

    def _bare_loop(self) -> None:
        """Remove thinking since the last user message. With thinking off, it is refused there; older thinking is
        ignored."""
        start = after_last_user(self._transcript.turns)
        for position in self._assistant:
            bare = without_reasoning(self._now(position)) if position >= start else ()
            if bare and bare != self._now(position):
                self._set(position, bare, "forbidden", "thinking is off, and this turn is still going on")

    def _parted(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return items that lost a partner without ids, where ids form pairs."""
        return unnamed(items) if "items_are_elements" in self._wire.quirks else items

    def _pause_thinking(self) -> bool:
        """Switch thinking off, if this model has a switch."""
        members = paused(self._transcript, self._contract, self._issuer.model)
        self._members += [member for member in members if member not in self._members]
        self._is_paused = self._is_paused or bool(members)
        return bool(members)

    @property
    def is_paused(self) -> bool:
        """Whether this plan switches thinking off."""
        return self._is_paused

    # --- the result
    # -------------------------------------------------------------------------------------------------------

    def done(self) -> Plan:
        edits = []
        for position in sorted(self._items.keys() | self._moved):
            turn = self._transcript.turns[position]
            if self._items.get(position, turn.items) != turn.items:
                turn = turn.with_items(self._items[position])
                if self._carriers is not None:
                    turn = replace(turn, carrier=self._carriers.at(position, turn.items))
            elif position not in self._moved:
                continue
            edits.append((position, turn.with_reasoning_moved() if position in self._moved else turn))
        past, found, noted = self._past, sorted(self._findings, key=itemgetter(0)), self._notes.by_position
        fillers = [*self._fillers.values(), *([] if past.filler is None else [past.filler])]
        counts = dict(past.counts.counted) if past is not NO_PAST else {}
        for _, what in self._counted:
            counts[what] = counts.get(what, 0) + 1
        return Plan(
            tuple(edits),
            tuple(self._members),
            (*past.findings, *map(itemgetter(1), found)),
            Counts(**counts),
            filler=min(fillers, default=None),
            notes=chained(past.notes, tuple(noted.values())) if noted else past.notes,
            parent=self._parents[max(self._parents)] if self._parents else past.parent,
            enters_session=self._enters_session,
            is_cut=self.is_cut or bool(self._policy.cut),
        )

    def trace(self) -> Trace | None:
        """Return the parts of the plan; None if one turn's plan depends on others in a way that can't be cached."""
        ladder = self._policy.ladder if self._policy.ladder is not None else self._contract.ladder
        if self._is_paused or self._names or "inherit" in ladder or self._policy.corrects or self.is_relinked:
            return None
        carriers, is_head = self._carriers, self._contract.scope == "loop_head"
        in_chain = self._assistant if self._contract.binds_chain else ()
        borrowed = [] if carriers is None else [at for at in self._items if carriers.is_borrowed(at, self._now(at))]
        return Trace(
            tuple(self._counted),
            tuple(sorted(self._findings, key=itemgetter(0))),
            self._fillers,
            carriers.by_position if carriers is not None else {},
            loose=frozenset([*self._loose, *borrowed]),
            loose_in_loop=self._all_loose_in_loop(),
            loose_heads=frozenset(filter(self._is_loose, self._assistant if is_head else ())),
            notes=self._notes.by_position,
            blocks={at: name for at in in_chain if (name := last_block(self._now(at)))},
            parents=self._parents,
        )

    def _all_loose_in_loop(self) -> frozenset[int]:
        """Return the turns whose plan would change if they had to carry reasoning, or no longer had to."""
        if self._contract.scope not in DEPEND_ON_THE_END:
            return frozenset()
        turns, is_head = self._transcript.turns, self._contract.scope == "loop_head"
        calls = () if is_head else [at for at in self._assistant if has_calls(turns[at])]
        return frozenset([*self._loose_in_loop, *filter(self._is_loose, calls)])

    def _is_loose(self, position: int) -> bool:
        items = self._now(position)
        is_settled = position in self._covered or self._carries(position, items)
        return not is_settled or filler_of(items) is not None


# --- the note on each turn: what was done, by which evidence, or why it was not possible ------------------------------


_STRIPPED: dict[RuleCode, Reason] = {
    "foreign": "foreign_seal",
    "truncated": "unsigned",
    "forbidden": "forbidden",
    "stale-id": "stale_id",
    "bound-prefix-changed": "prefix_changed",
}


class NotesOfTurns(Struct):
    """Notes by position; the last one about a turn counts. `_elements` come before these turns in the wire's list."""

    _turns: Sequence[Turn]
    _elements: int = 0
    by_position: dict[int, TurnNote] = {}
    _lost: dict[int, Reason] = {}
    _unfound: dict[int, ModelStep] = {}

    def put(self, position: int, treatment: Treatment, why: Reason, record: str = "") -> None:
        self.by_position[position] = TurnNote(self._turns[position].at + self._elements, treatment, why, record)

    def keep(self, position: int, items: Sequence[Item], evidence: Reason, record: str) -> None:
        """Note that the client's reasoning is as its model made it."""
        if any(is_reasoning(item) and not is_filler(item) for item in items):
            self.put(position, "kept", evidence, record)

    def put_stripped(self, position: int, rule: RuleCode) -> None:
        self.put(position, "stripped", self._lost.get(position) or _STRIPPED.get(rule, ""))

    def put_unrestored(self, position: int, treatment: Treatment, found: Found, identity: Identity) -> None:
        """Note a turn that requires reasoning and can't have its own back."""
        step = self._unfound.get(position)
        why = self._lost.get(position) or ("no_record" if step is None else why_unfound(step, found, identity))
        self.put(position, treatment, why, step.lineage or "" if step is not None and why == "no_record" else "")

    def lose(self, positions: Iterable[int], why: Reason) -> None:
        """Note why these turns can't have their own reasoning back, if they should need it."""
        for position in positions:
            self._lost[position] = why

    def not_find(self, step: ModelStep) -> None:
        """Note a step without a record. The reason is determined only if it is needed. The client's content is sent."""
        for position in step.positions:
            self._unfound[position] = step
            if not step.is_bare and position not in self.by_position:
                self.keep(position, self._turns[position].items, "", "")


def why_unfound(step: ModelStep, found: Found, identity: Identity) -> Reason:
    """Return why none of the records that share a key with a step belongs to it."""
    if looks_of(step, found, identity):
        return "unproven"
    known = (record for one in step.keys for record in found.get(one, ()))
    return "text_differs" if any(record.provenance.tenant == identity.tenant for record in known) else "no_record"


def why_unsendable(record: Record, issuer: Destination, contract: Contract, *, rule: RuleCode) -> Reason:
    """Return why a record may not be sent to this destination."""
    if rule == "bound-prefix-changed":
        return "prefix_changed"
    made = record.provenance
    if is_issued_by(record, issuer, contract):
        return "seal_refused" if record.is_complete else "cut_short"
    if (made.provider, made.endpoint) == (issuer.provider, issuer.endpoint) and made.account != issuer.account:
        return "other_account"
    return "other_maker"


# --- the member for reasoning in a chat message, where the server's own answers decide --------------------------------
# Unlisted servers, and those that serve models of many makers, each have their own reasoning member; a model's name
# does not determine it. So a turn goes back in the member that it came in. Reasoning that never came from the server,
# such as a blank, goes into the member that it used last.


MOVABLE = frozenset(
    {"reasoning_content", "reasoning", "reasoning_text", "thinking", "think_tags", "mistral_chunks", "cohere_chunks"}
)
"""Members for plain text."""

_TWINS = frozenset(("reasoning_content", "reasoning"))
_SEALED = ("reasoning_details", "reasoning_text")
"""Members that hold seals, and go back unchanged or not at all."""


def _is_misplaced(turn: Turn, contract: Contract) -> bool:
    """Whether a turn's reasoning is in a member that the provider does not read, or refuses.

    A second copy is left alone, since ruby_llm 1.16 writes one, unless the row says that it is refused.
    """
    carrier = contract.dialect.carrier
    if carrier not in MOVABLE or contract.follows_answers or contract.may_seal:
        return False
    copies = _TWINS if carrier in _TWINS and not contract.refuses_other_fields else frozenset((carrier,))
    return bool(turn.carriers) and not (carrier in turn.carriers and copies.issuperset(turn.carriers))


class Carriers:
    """The reasoning members of one request's turns, under a contract that follows answers."""

    def __init__(self, contract: Contract, issuer: Destination, last: str = "") -> None:
        self._contract = contract
        self._issuer = issuer
        self.by_position: dict[int, str] = {}
        self._last = last

    def of(self, record: Record) -> str:
        """Return the member that a record's reasoning came in, if this server chose it."""
        made, here = record.provenance, self._issuer
        if (made.provider, made.endpoint) != (here.provider, here.endpoint):
            return ""
        is_google = self._contract.dialect.carrier == "google_extra" and _has_sealed_call(record.items)
        return "" if is_google else made.carrier

    def keeps_seals(self, record: Record) -> bool:
        """Whether a record's seals go back unchanged: to their maker, for the same account and model."""
        made, here = record.provenance, self._issuer
        is_own = made.account == here.account and here.model in (made.model_asked, made.model_answered)
        return self.of(record) in _SEALED and record.is_complete and is_own

    def use(self, position: int, record: Record) -> bool:
        """Use a record's reasoning for a turn. Returns whether that is all that its server needs."""
        carrier = self.of(record)
        self.by_position[position] = carrier
        self._last = carrier or self._last
        return bool(carrier)

    def at(self, position: int, items: tuple[Item, ...] = ()) -> str:
        """Return the member for a turn. A seal on a call is where the dialect has it, whatever other turns use."""
        own = self.by_position.get(position)
        here = own or ("" if _has_sealed_call(items) else self._last)
        return here or self._contract.dialect.carrier

    def is_borrowed(self, position: int, items: tuple[Item, ...]) -> bool:
        """Whether another turn's record decides the member for a turn."""
        return not self.by_position.get(position) and not _has_sealed_call(items)


def _has_sealed_call(items: tuple[Item, ...]) -> bool:
    return any(item.seal is not None for item in items if isinstance(item, ToolCall))


# --- restoring call ids, and each result once -------------------------------------------------------------------------


def learn_names(names: dict[str, str], shown: Sequence[Item], record: Record) -> None:
    """Note the ids that a client renamed, and the originals. An id that the maker gave to any call is correct."""
    made = [item for item in record.items if isinstance(item, ToolCall)]
    known = {own.id for own in made}
    calls = [item for item in shown if isinstance(item, ToolCall)]
    for call, own in zip(calls, made, strict=False):
        if call.id and own.id and call.id not in known and is_same_call(call, own):
            names[call.id] = own.id


def _are_well_named(items: tuple[Item, ...], names: dict[str, str]) -> bool:
    """Whether a turn needs no change: its ids are the maker's, and it has at most one result."""
    results = 0
    for item in items:
        if isinstance(item, ToolCall):
            name = item.id
        elif isinstance(item, ToolResult):
            name = item.call_id
            results += 1
        else:
            continue
        if name is not None and (name in names or _SMUGGLED in name):
            return False
    return results < 2


def _renamed(item: Item, names: dict[str, str]) -> Item:
    """Return the item with its original id, without a signature that another gateway hid in it."""
    match item:
        case ToolCall(id=str() as name) if (own := _own_name(name, names)) != name:
            return replace(item, id=own)
        case ToolResult(call_id=str() as name) if (own := _own_name(name, names)) != name:
            return replace(item, call_id=own)
        case _:
            return item


def _own_name(name: str, names: dict[str, str]) -> str:
    return names.get(name, name).split(_SMUGGLED)[0] or name


def _unrepeated(turns: Sequence[Turn], position: int, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items of a turn without repeated results. As many results as calls are never too many."""
    results = [item for item in items if isinstance(item, ToolResult)]
    calls = [item for item in _before(turns, position) if isinstance(item, ToolCall)]
    if len(results) <= max(1, len(calls)):
        return items
    seen: set[tuple[str | None, str | None, bytes]] = set()
    kept = []
    for item in items:
        if isinstance(item, ToolResult):
            content = (item.call_id, item.name, bytes(item.content))
            if content in seen:
                continue
            seen.add(content)
        kept.append(item)
    return tuple(kept)


def _before(turns: Sequence[Turn], position: int) -> tuple[Item, ...]:
    return turns[position - 1].items if position > 0 and turns[position - 1].role == "assistant" else ()
