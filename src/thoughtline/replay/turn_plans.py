"""What is planned for each turn so far, what there is to tell of it, and what of it depends on turns that follow."""

from __future__ import annotations

from operator import itemgetter

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract
from thoughtline.providers.refusals import RuleCode
from thoughtline.replay.call_names import CallNames
from thoughtline.replay.carriers import Carriers
from thoughtline.replay.findings import Finding, place_of
from thoughtline.replay.noting import NotesOfTurns
from thoughtline.replay.plans import NO_PAST, Past, Plan, Policy, Trace
from thoughtline.replay.scopes import DEPEND_ON_THE_END, after_last_user, has_calls, required_turns
from thoughtline.replay.weaving import filler_of, is_filler
from thoughtline.values.destination import Destination
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningEncrypted, ReasoningText, ToolCall
from thoughtline.values.outcome import Counts
from thoughtline.values.turn_notes import chained
from thoughtline.values.turns import Transcript


class TurnPlans:
    """The turns of a request, those before them (`past`), and the plan for each."""

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
        self._required = self._required_turns()
        self._items: dict[int, tuple[Item, ...]] = {}
        self._moved: set[int] = set()
        self._carriers = Carriers(contract, issuer, past.carrier)
        self._members: list[tuple[str, bytes | None]] = []
        self._findings: list[tuple[int, Finding]] = []
        self._counted: list[tuple[int, str]] = []
        self._had_none: set[int] = set()
        self._fillers: dict[int, str] = {}
        self._covered: set[int] = set()
        self._loose_in_loop: set[int] = set()
        self._is_paused = False
        self._names = CallNames()
        self._notes = NotesOfTurns(transcript.turns, past.elements)

    def _required_turns(self) -> frozenset[int]:
        """In a tool loop that was begun before, its first turn stands before."""
        transcript, contract = self._transcript, self._contract
        if self._past.is_in_loop and contract.scope == "loop_head" and not after_last_user(transcript.turns):
            return frozenset()
        return frozenset(required_turns(transcript, contract, self._assistant))

    def _now(self, position: int) -> tuple[Item, ...]:
        """The items of a turn as the plan has them so far."""
        return self._items.get(position, self._transcript.turns[position].items)

    def _set(self, position: int, items: tuple[Item, ...], rule: RuleCode, why: str) -> None:
        self._items[position] = items
        self._count("stripped", position)
        self._notes.put_stripped(position, rule)
        self._find(rule, position, why)

    def _carries(self, position: int, items: tuple[Item, ...]) -> bool:
        if self._contract.scope == "first_call_of_step":
            first = next((item for item in items if isinstance(item, ToolCall)), None)
            return first is None or first.seal is not None
        if self._contract.scope == "loop_head":
            return bool(items) and isinstance(items[0], (ReasoningText, ReasoningEncrypted))
        return any(isinstance(item, REASONING_KINDS) and not self._is_hollow(position, item) for item in items)

    def _is_hollow(self, position: int, item: Item) -> bool:
        """A blank that stands for nothing we know of: neither for a turn without reasoning nor as our own filler."""
        if not is_filler(item) or self._takes_empty(position):
            return False
        return not isinstance(item, ReasoningText) or item.text != self._contract.filler

    def _takes_empty(self, position: int) -> bool:
        return position in self._had_none and not self._contract.refuses_empty

    def _find(self, rule: RuleCode, position: int, message: str) -> None:
        turn = self._transcript.turns[position]
        place = place_of(self._transcript.format, replace(turn, at=turn.at + self._past.elements))
        self._findings.append((position, Finding(rule, place, message, "")))

    def _count(self, what: str, position: int) -> None:
        self._counted.append((position, what))

    def done(self) -> Plan:
        edits = []
        for position in sorted(self._items.keys() | self._moved):
            turn = self._transcript.turns[position]
            if self._items.get(position, turn.items) != turn.items:
                turn = turn.with_items(self._items[position])
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
        )

    def trace(self) -> Trace | None:
        """What the plan is made of; None where that of one turn depends on others in ways nobody could remember."""
        ladder = self._policy.ladder if self._policy.ladder is not None else self._contract.ladder
        if self._is_paused or self._names or "inherit" in ladder or self._policy.corrects:
            return None
        carriers, is_head = self._carriers, self._contract.scope == "loop_head"
        return Trace(
            tuple(self._counted),
            tuple(sorted(self._findings, key=itemgetter(0))),
            self._fillers,
            carriers.by_position,
            loose=frozenset([at for at in self._items if carriers.is_borrowed(at, self._now(at))]),
            loose_in_loop=self._all_loose_in_loop(),
            loose_heads=frozenset(filter(self._is_loose, self._assistant if is_head else ())),
            notes=self._notes.by_position,
        )

    def _all_loose_in_loop(self) -> frozenset[int]:
        """Turns for which something else would be planned if they had to carry reasoning, or no longer had to."""
        if self._contract.scope not in DEPEND_ON_THE_END:
            return frozenset()
        calls = () if self._contract.scope == "loop_head" else [at for at in self._assistant if self._calls_at(at)]
        return frozenset([*self._loose_in_loop, *filter(self._is_loose, calls)])

    def _calls_at(self, position: int) -> bool:
        return has_calls(self._transcript.turns[position])

    def _is_loose(self, position: int) -> bool:
        items = self._now(position)
        is_settled = position in self._covered or self._carries(position, items)
        return not is_settled or filler_of(items) is not None
