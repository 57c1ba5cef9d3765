"""Plans across steps: a valid chain of thinking blocks, and the ladder for turns that still lack reasoning."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline.providers import Contract, Rung
from thoughtline.replay.links import Link, broken, is_compaction, link_of, name_of_block
from thoughtline.replay.plans import Found, Needs, Past, Policy
from thoughtline.replay.restoring import inherit
from thoughtline.replay.turn_plans import TurnPlans
from thoughtline.replay.weaving import filler_of, is_filler, with_sentinel
from thoughtline.values.destination import Destination
from thoughtline.values.items import Item, ReasoningText
from thoughtline.values.outcome import Treatment
from thoughtline.values.records import Record
from thoughtline.values.turns import Transcript

Items = tuple[Item, ...]


class StepPlans(TurnPlans):
    """The plan for each turn, with what is known of the steps."""

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
        self._records: dict[tuple[int, ...], Record] = {}
        self._before_put: dict[int, Items] = {}
        self._has_records = any(found.values())
        self._enters_session = not self._assistant and needed.identity.session is not None

    # --- Claude's chain of blocks -------------------------------------------------------------------------------------

    def link(self) -> None:
        """Undo restored blocks that would break the chain. If the provider has refused blocks of this conversation,
        they are removed from now on."""
        start = self._after_compaction()
        links = [
            link_of(
                step.positions,
                [item for position in step.positions for item in self._now(position)],
                self._records.get(step.positions),
                is_ours=not self._before_put.keys().isdisjoint(step.positions),
            )
            for step in self._needed.steps
            if step.positions[-1] >= start
        ]
        if self._past.block and links and not start:
            links.insert(0, Link((), self._past.block))
        found = broken(links)
        self.is_relinked = bool(found.ours or found.refused or start)
        self.is_cut = bool(found.refused)
        for position in [position for positions in found.ours for position in positions]:
            self._take_back(position)
        for position in [position for positions in found.refused for position in positions]:
            kept = tuple(item for item in self._now(position) if not name_of_block(item))
            self._set(
                position, kept, "bound-prefix-changed", "the provider has refused this block in this conversation"
            )

    def _after_compaction(self) -> int:
        """Return the position of the last compaction: content before it is not read."""
        turns = self._transcript.turns
        return next((at for at in range(len(turns) - 1, 0, -1) if any(map(is_compaction, turns[at].items))), 0)

    def _take_back(self, position: int) -> None:
        if position not in self._before_put:
            return
        self._items[position] = self._before_put.pop(position)
        self._counted.remove((position, "restored"))
        self._notes.by_position.pop(position, None)
        self._notes.lose((position,), "prefix_changed")
        self._find("bound-prefix-changed", position, "its block would stand beside blocks that were made without it")

    # --- what is still missing ------------------------------------------------------------------------------------

    def climb(self, ladder: tuple[Rung, ...]) -> None:
        """Apply the first rung that works to each turn that requires reasoning and has none."""
        inherited: dict[int, ReasoningText] = {}
        if "inherit" in ladder:
            inherited = inherit([replace(turn, items=self._now(at)) for at, turn in enumerate(self._transcript.turns)])
            if "dialects" in self._wire.quirks:
                self._inherit_elsewhere(inherited)
        for position in sorted(self._required - self._covered):
            items = self._now(position)
            first = items[0] if items and self._contract.scope != "first_call_of_step" else None
            if isinstance(first, ReasoningText) and first.text.strip():
                continue  # it begins with reasoning
            if not self._carries(position, items):
                bare = tuple(item for item in items if not is_filler(item))
                self._climb_one(position, bare, ladder, inherited)
                self._loose_in_loop.add(position)
            if (filler := filler_of(self._now(position))) is not None:
                self._fillers[position] = filler

    def _inherit_elsewhere(self, inherited: dict[int, ReasoningText]) -> None:
        """Let turns that don't require reasoning inherit it too, unless they are known to have had none."""
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
                why = "this turn had no" if position in self._had_none else "no record has this turn's"
                self._find("missing", position, f"{why} reasoning; a blank stands for it")
            elif rung == "sentinel":
                self._items[position] = with_sentinel(items)
                self._lack("blank", position)
                self._find("missing", position, "no record has this call's signature; the skip value stands for it")
            elif rung == "pause_thinking" and self._pause_thinking():
                self._lack("missing", position)
                self._find("missing", position, "no record has this turn's reasoning; thinking is off for this request")
            else:
                continue
            return
        self._lack("missing", position)
        self._find("missing", position, "no record has this turn's reasoning")

    def _lack(self, treatment: Treatment, position: int) -> None:
        self._counted.append((position, treatment))
        self._notes.put_unrestored(position, treatment, self._found, self._identity)
