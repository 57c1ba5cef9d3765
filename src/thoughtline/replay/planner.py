"""Ask, fetch, decide: which keys a request needs, and what to put back, take out or report.

    needs(transcript, contract, identity)  →  Needs      the shell fetches the records of its keys, in one go or two
    plan(transcript, contract, needs, found, issuer)  →  Plan      edits, findings, counts
    plan.apply(transcript)  →  Transcript

What the client sent is kept if it is whole; what it lost or damaged is restored from the record of that very turn; what
a provider would refuse is taken out; what is still missing climbs the contract's ladder. A plan is deterministic, and
planning a planned request changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from thoughtline.providers import Contract
from thoughtline.replay.chains import proven
from thoughtline.replay.drafting import Draft
from thoughtline.replay.keys import ModelStep, Spot, Standing, frame_of, walk
from thoughtline.replay.matching import Found, Match, match_by_lineage
from thoughtline.replay.plans import NO_PAST, Past, Plan, Policy
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key
from thoughtline.values.turns import Transcript

__all__ = ["Needs", "Plan", "Policy", "may_restore", "needs", "plan"]


DEFAULT_POLICY = Policy()


class Needs(NamedTuple):
    """The model steps of a request, and the keys to look for.

    `first` finds nearly all that can be found, with one key for each step; `rest` says what else to look for, given
    what that found. `keys` is both, for those who fetch once. `end` is where the answer will stand: it is all of the
    request that capturing the answer needs. `settled` are the records that lineages name, where that was looked up.
    """

    identity: Identity
    steps: tuple[ModelStep, ...]
    end: Spot | None
    settled: tuple[Match | None, ...] | None = None

    @property
    def first(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys([step.lineage for step in self.steps if step.lineage is not None]))

    def rest(self, found: Found) -> tuple[Key, ...]:
        """The keys of the steps that their lineage does not settle."""
        settled = self.settled if self.settled is not None else self.by_lineage(found)
        return keys_of(step for step, match in zip(self.steps, settled, strict=True) if match is None)

    def by_lineage(self, found: Found) -> tuple[Match | None, ...]:
        """For each step the record that its lineage names."""
        return tuple([match_by_lineage(step, found, self.identity) for step in self.steps])

    @property
    def keys(self) -> tuple[Key, ...]:
        return keys_of(self.steps)


def keys_of(steps: Iterable[ModelStep]) -> tuple[Key, ...]:
    """All that steps can be found by, taken whole and in parts."""
    return tuple(dict.fromkeys(key for step in steps for part in (step, *step.parts) for key in part.keys))


def needs(transcript: Transcript, contract: Contract, identity: Identity, start: Standing | None = None) -> Needs:
    """The keys of all that could be put back. A contract that takes nothing needs nothing.

    `start` is where a transcript begins that is only the end of a conversation.
    """
    if contract.takes == "nothing":
        return Needs(identity, (), None)
    frame = frame_of(transcript) if contract.binds_prefix and start is None else b""
    steps, end = walk(transcript, identity, frame, start)
    return Needs(identity, steps, end)


def plan(
    transcript: Transcript,
    contract: Contract,
    needed: Needs,
    found: Found,
    issuer: Destination,
    policy: Policy = DEFAULT_POLICY,
) -> Plan:
    """What to do about a request, given what is remembered."""
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
    """The same before it is done: it can say what it is made of. `past` is what was planned for the turns before it."""
    work = Draft(transcript, contract, needed.identity, found=found, issuer=issuer, policy=policy, past=past)
    work.clean({position for step in needed.steps if step.is_bare for position in step.positions})
    if contract.takes == "nothing":
        work.strip_everything()
        work.amend()
        return work
    if needed.steps and may_restore(transcript, contract):
        spoken_for = proven(needed.steps, found, needed.identity)
        work.believed |= spoken_for
        settled = needed.settled if needed.settled is not None else needed.by_lineage(found)
        for step, match in zip(needed.steps, settled, strict=True):
            work.take(step, spoken_for, match)
        work.climb(policy.ladder if policy.ladder is not None else contract.ladder)
    work.ask_for_ciphertext()
    work.mend_calls()
    work.move_fields()
    work.amend()
    return work


def may_restore(transcript: Transcript, contract: Contract) -> bool:
    """Reasoning goes where the request has the model think; what nobody enforces, wherever thinking is not off."""
    if not contract.only_when_thinking:
        return True
    if contract.kind == "advisory":
        return transcript.thinking != "off"
    return contract.thinks(transcript)
