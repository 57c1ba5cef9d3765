"""A request that goes on with what other models thought: recalled once, and written into each plan of the request.

handover = await recall(memory, needed, found, transcript, target, terms)
continued = carry_on(handover, plan.apply(transcript), contract)      pure: planning again carries on again
…                                                                     the request was answered
await remember(memory, handover, continued.quotation)
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from thoughtline.continuity.checkpoints import Checkpoint, Known, checkpoints_of, known_steps
from thoughtline.continuity.injection import NOTHING_TOLD, Quotation, Terms, Told, inject, quote
from thoughtline.continuity.memory import Line, Memory, line_of
from thoughtline.providers import Contract
from thoughtline.replay.matching import Found
from thoughtline.replay.planner import Needs
from thoughtline.replay.plans import Issuer
from thoughtline.values.turns import Transcript
from thoughtline.working import Work, at_once


class Handover(NamedTuple):
    """What is known about a request's turns, and what was quoted before. `session` names the conversation.

    `past` is what its session and agent thought last, where no turn of it is left in the request.
    """

    known: tuple[Known, ...]
    line: Line
    told: Told
    target: Issuer
    terms: Terms
    past: tuple[Checkpoint, ...] = ()

    @property
    def session(self) -> str:
        return self.line.session.rpartition("/")[0]


class Continued(NamedTuple):
    """A request as it goes out, and what is quoted in it."""

    transcript: Transcript
    quotation: Quotation


async def recall(
    memory: Memory,
    needed: Needs,
    found: Found,
    transcript: Transcript,
    target: Issuer,
    terms: Terms,
    work: Work = at_once,
) -> Handover:
    """All that has to be fetched. A request that goes on from no known turn, and of no told agent, asks nothing."""
    known, who = await work(partial(known_steps, needed, found)), needed.identity
    line = await work(partial(line_of, needed, known, transcript, target))
    looks_back = not known and terms.after_compaction and who.session is not None and who.agent is not None
    told = await memory.told(line) if known or looks_back else NOTHING_TOLD
    past = await memory.past(who, terms) if looks_back and not told.is_known else ()
    return Handover(known, line, told, target, terms, past)


def carry_on(handover: Handover, planned: Transcript, contract: Contract) -> Continued:
    """The planned request with what is to be quoted in its system prompt; the very same one if that is nothing."""
    found = checkpoints_of(handover.known, planned, handover.target, handover.terms.max_chars)
    quotation = quote((*handover.past, *found.taken), handover.told, planned, contract, handover.terms)
    told = Quotation(quotation.quotes, (*found.findings, *quotation.findings))
    return Continued(inject(planned, quotation.text), told)


async def remember(memory: Memory, handover: Handover, quotation: Quotation) -> None:
    """The request was answered: what was quoted in it is quoted again in those that go on from the answer."""
    if quotation.quotes:
        await memory.keep(handover.line, quotation.quotes)
