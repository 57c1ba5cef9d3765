"""What is believed of a model, and what its provider says to that.

Each check sends a request or two that answer one question. What is believed comes from the contract and from the
auditor, which foretells what a request would be refused for; what is seen is the status, the turn and its usage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from thoughtline.engine.heal import Sent, fix_for
from thoughtline.formats import FORMATS
from thoughtline.providers import ProviderRow, facts
from thoughtline.providers.contract import Contract, Sampling
from thoughtline.providers.knobs import Knob
from thoughtline.providers.row import Door
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.detection import resolve
from thoughtline.replay.plans import Policy
from thoughtline.replay.refusals import classify
from thoughtline.replay.rules import Case, check
from thoughtline.values.destination import Destination
from thoughtline.values.options import Effort, Thinking
from thoughtline.verify.asking import Answer, Asker, BudgetSpent
from thoughtline.verify.dialogue import (
    QUESTION,
    Ask,
    Step,
    altered,
    body_of,
    has_reasoning,
    reasoning_last,
    text_of,
    with_reasoning,
    without_reasoning,
)

Verdict = Literal["agrees", "differs", "unknown"]
ACCEPTED, REFUSED = "accepted", "refused"
EITHER = "accepted or refused"
YES_OR_NO = "yes or no"
"""Where pages and recordings differ, and where a host passes on the rules of the provider behind it."""

_READ_TOKENS_PER_CHAR = 0.75 / 4
"""Reasoning that is read is billed as input: nearly all of its tokens, of about four characters."""

_ASIDE = "Is Paris north of Rome? Answer yes or no."
"""A question outside the conversation: an answer without thinking to the same question could be taken for its turn."""


class ProviderRefusal(NamedTuple):
    """An error in the provider's words; `is_known` if the gateway would know it for what it is."""

    status: int
    words: bytes
    is_known: bool


class Result(NamedTuple):
    """One fact: what is believed, what was seen. `change` are members of the contract that would say what was seen."""

    fact: str
    believed: str
    seen: str
    verdict: Verdict
    refused: ProviderRefusal | None = None
    change: Mapping[str, Any] = MappingProxyType({})


def compared(fact: str, believed: str, seen: str, *, refused: ProviderRefusal | None = None, **change: Any) -> Result:
    """A result with its verdict; what would have to change only where they differ."""
    if not seen:
        return Result(fact, believed, "nothing", "unknown", refused)
    agrees = believed in (seen, EITHER, YES_OR_NO)
    return Result(
        fact, believed, seen, "agrees" if agrees else "differs", refused=refused, change={} if agrees else change
    )


class Subject(NamedTuple):
    """What is verified: a model at a provider, in one format, and what is believed of it."""

    row: ProviderRow
    target: Destination
    contract: Contract
    other: str = ""
    """Another model of the same maker, whose reasoning is sent to this one."""

    @property
    def knob(self) -> Knob:
        return knob_for(self.contract, self.target.model)

    @property
    def is_passed_on(self) -> bool:
        """Whether the server behind this host decides: its rule may be met, and may not."""
        return self.row.rules == "strict makers"

    @property
    def never_thinks(self) -> bool:
        return self.knob.style == "no_knob" and self.knob.can_be_off and bool(self.knob.models)

    @property
    def unbelieving(self) -> Contract:
        """The contract without what has settings left out beforehand: these are to be asked for."""
        return replace(self.contract, forces_no_tool_while_thinking=False, forces_any="", sampling=Sampling())


class Verification:
    """One model in one format, asked until every fact is seen or the budget is spent."""

    def __init__(self, subject: Subject, asker: Asker) -> None:
        self._subject = subject
        self._asker = asker
        self._ask = Ask()
        self._demands: dict[str, bool] = {}
        self.results: list[Result] = []

    async def run(self) -> list[Result]:
        """Every fact that can be seen. Raises `Declined` where the provider gives no answer at all."""
        try:
            first = await self._first()
            if first is not None:
                await self._demanded(first)
                await self._settings()
        except BudgetSpent as error:
            self.results.append(Result("everything else", "", str(error), "unknown"))
        return self.results

    # --- the first answer: whether the model thinks, and where its reasoning comes ------------------------------------

    async def _first(self) -> Answer | None:
        """An answer with reasoning; None if there is none to be had."""
        contract = self._subject.contract
        door = next((one for one in self._subject.row.doors if self._is_through(one)), None)
        answer, body = await self._answer(())
        if not answer.is_accepted:
            fact = "takes tools in this format"
            believed = REFUSED if door is not None and (door.is_refused or not door.needs) else ACCEPTED
            self._add(fact, believed, answer, body)
            return None
        if door is not None and door.is_refused:
            self._add("takes tools in this format", REFUSED, answer, body)
        thinks = _thinks(answer)
        if contract.takes != "nothing":
            usually = contract.thinks_by_default and not self._subject.never_thinks
            self._compare("thinks unless told otherwise", usually, thinks, thinks_by_default=thinks)
        if not thinks:
            # Another question: an answer without thinking to the same one could be taken for its turn.
            self._ask = Ask(Thinking("on", self._least_effort()), question=f"{QUESTION} Be brief.")
            answer, body = await self._answer(())
            if not answer.is_accepted:
                self._add("thinks if asked", ACCEPTED, answer, body)
                return None
            can = _thinks(answer)
            self._compare("thinks if asked", not self._subject.never_thinks, can, never_thinks=not can)
        if answer.carriers:
            carrier, seen = contract.dialect.carrier, answer.carriers[0]
            self.results.append(compared("reasoning comes in", carrier, seen, dialect=_dialect_in(contract, seen)))
            if seen == carrier:
                streamed, _ = await self._answer((), replace_ask(self._ask, is_streaming=True))
                in_stream = streamed.carriers[0] if streamed.carriers else ""
                self.results.append(compared("reasoning comes in, streamed", carrier, in_stream))
        return answer if has_reasoning(answer.items) and Step(answer.items).calls else None

    def _is_through(self, door: Door) -> bool:
        target = self._subject.target
        return door.comes_in == target.format and door.is_for(target.model) and door.needs != "unsaid"

    def _least_effort(self) -> Effort:
        efforts = self._subject.knob.efforts
        return efforts[0] if efforts else "low"

    # --- what is demanded back ----------------------------------------------------------------------------------------

    async def _demanded(self, first: Answer) -> None:
        step = Step(first.items)
        whole, body = await self._answer((step,))
        self._add("its own reasoning, whole", REFUSED if self._is_forbidden() else ACCEPTED, whole, body)
        stripped = await self._variant("without it in a tool loop", (step._replace(change=without_reasoning),))
        if whole.is_accepted and stripped.is_accepted and (text := text_of(first.items)):
            billed = whole.usage.input - stripped.usage.input
            self._compare("it is read in a tool loop", self._is_read(), billed > len(text) * _READ_TOKENS_PER_CHAR)
        await self._variant("with it altered", (step._replace(change=altered),), believed=self._altered())
        if "not_last" in FORMATS[self._subject.target.format].quirks and reasoning_last(first.items) != first.items:
            await self._variant("behind what it led to", (step._replace(change=reasoning_last),))
        if self._subject.other and self._subject.contract.takes == "own":
            await self._foreign()
        if self._subject.contract.takes == "text":
            blank = not self._subject.contract.refuses_empty
            empty = step._replace(change=with_reasoning(""))
            await self._variant("with an empty text", (empty,), believed=blank, refuses_empty=True)
            await self._variant("with a blank", (step._replace(change=with_reasoning(" ")),), believed=True)
        if not whole.is_accepted or not whole.items:
            return
        steps = (step, Step(whole.items))
        bare = (step._replace(change=without_reasoning), Step(whole.items))
        await self._variant("without it in an earlier tool loop", bare)
        if has_reasoning(whole.items):
            last = (step, Step(whole.items, without_reasoning))
            await self._variant("without it in an earlier answer", last)
        wish = replace_ask(self._ask, question=f"{self._ask.question} Please.")
        binds, silently = self._subject.contract.binds_prefix, self._subject.contract.binds_silently
        edited = await self._variant(
            "behind an edited message", steps, wish, believed=not binds or silently, binds_prefix=not binds
        )
        if edited.is_accepted and self._subject.contract.kind == "authenticity":
            kept, _ = await self._answer(steps)
            # The edited message is longer: who is billed for less did not have all of the reasoning read.
            is_dropped = edited.usage.input < kept.usage.input or len(edited.usage.dropped) > len(kept.usage.dropped)
            self._compare("dropped behind an edited message", silently, is_dropped, binds_silently=is_dropped)
        self._settle_demands()

    async def _foreign(self) -> None:
        """What becomes of reasoning that another model of the maker has made. A model that is bound to its prefix drops
        what it does not read; of others, pages and reports differ."""
        subject, contract = self._subject, self._subject.contract
        other = replace(subject.target, model=subject.other)
        theirs = resolve(other)
        if theirs.dialect.reasoning_format != contract.dialect.reasoning_format:
            return
        body = body_of(other, theirs, (), Ask(Thinking("on", self._least_effort())))
        made = await self._asker.ask(other, body, theirs.dialect)
        if made.is_accepted and has_reasoning(made.items) and Step(made.items).calls:
            believed = REFUSED if contract.binds_model else ACCEPTED if contract.binds_prefix else EITHER
            answer, body = await self._answer((Step(made.items),))
            self._add("of another model", believed, answer, body, binds_model=not answer.is_accepted)

    def _is_read(self) -> bool:
        contract = self._subject.contract
        return contract.takes != "nothing" and "looped" not in contract.unread_turns

    def _is_forbidden(self) -> bool:
        """Whether reasoning is refused that stands where the provider itself wrote it."""
        contract = self._subject.contract
        return contract.kind == "forbidden" and contract.dialect.carrier != "none"

    def _altered(self) -> bool:
        return self._subject.contract.kind != "authenticity" and not self._is_forbidden()

    async def _variant(
        self, fact: str, steps: tuple[Step, ...], ask: Ask | None = None, *, believed: bool | None = None, **change: Any
    ) -> Answer:
        """A request of a client that did something to its history."""
        answer, body = await self._answer(steps, ask)
        foretold = self._foretold(body) if believed is None else ACCEPTED if believed else REFUSED
        self._demands[fact] = not answer.is_accepted
        self._add(fact, foretold, answer, body, **change)
        return answer

    def _foretold(self, body: bytes) -> str:
        """What the auditor says would become of this request."""
        target, contract = self._subject.target, self._subject.contract
        transcript = FORMATS[target.format].bodies.decode_request(body, contract.dialect)
        found = check(Case(transcript, contract, target))
        if any(finding.status for finding in found):
            return REFUSED
        return EITHER if contract.is_strict and any(finding.rule == "missing" for finding in found) else ACCEPTED

    def _settle_demands(self) -> None:
        """What the contract would have to be for all that was seen, on the first result that differs."""
        facts = ("without it in a tool loop", "without it in an earlier tool loop", "without it in an earlier answer")
        loop, earlier, answers = (self._demands.get(fact, False) for fact in facts)
        is_checked = self._demands.get("with it altered", False)
        contract = self._subject.contract
        scope = "all_with_tools" if answers else "calls" if earlier else "calls_after_user" if loop else "nowhere"
        if scope == "calls_after_user" and contract.scope in ("loop_head", "first_call_of_step"):
            scope = contract.scope
        kind = "authenticity" if is_checked else "presence" if scope != "nowhere" else "advisory"
        change = {"kind": kind, "scope": scope}
        for at, result in enumerate(self.results):
            if result.verdict == "differs" and result.fact in (*facts, "with it altered"):
                self.results[at] = result._replace(change=change)

    # --- settings -----------------------------------------------------------------------------------------------------

    async def _settings(self) -> None:
        knob, contract, model = self._subject.knob, self._subject.contract, self._subject.target.model.lower()
        if knob.can_be_off and knob.style != "no_knob":
            answer, body = await self._answer((), Ask(Thinking("off"), question=_ASIDE, has_tools=False))
            if answer.is_accepted:
                self._compare("thinking can be switched off", True, not _thinks(answer))
            else:
                self._add("thinking can be switched off", ACCEPTED, answer, body)
        for effort in knob.efforts:
            wish = Ask(Thinking("on", effort), question=_ASIDE, has_tools=False)
            answer, body = await self._answer((), wish)
            self._add(f"effort {effort}", ACCEPTED, answer, body)
        forced = replace_ask(self._ask, members={"tool_choice": "required"})
        answer, body = await self._answer((), forced)
        forces = not contract.forces_no_tool_while_thinking or re.search(contract.forces_any, model) is not None
        believed = ACCEPTED if forces else REFUSED
        self._add("a forced tool while it thinks", believed, answer, body, forces_no_tool_while_thinking=forces)
        warm = replace_ask(self._ask, members={"temperature": 0.5})
        answer, body = await self._answer((), warm)
        self._add("a temperature while it thinks", REFUSED if self._is_cold() else ACCEPTED, answer, body)

    def _is_cold(self) -> bool:
        """Whether a temperature of 0.5 is believed to be refused."""
        sampling, model = self._subject.contract.sampling, self._subject.target.model.lower()
        never = re.search(sampling.never, model) is not None and "temperature" in sampling.names
        return never or "temperature" in sampling.while_thinking or sampling.is_by_mode or sampling.least_top_p > 0

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _answer(self, steps: tuple[Step, ...], ask: Ask | None = None) -> tuple[Answer, bytes]:
        chosen, target = ask or self._ask, self._subject.target
        body = body_of(target, self._subject.unbelieving, steps, chosen)
        dialect = self._subject.contract.dialect
        return await self._asker.ask(target, body, dialect, is_streaming=chosen.is_streaming), body

    def _add(self, fact: str, believed: str, answer: Answer, body: bytes, **change: Any) -> None:
        seen = ACCEPTED if answer.is_accepted else REFUSED
        believed = EITHER if self._subject.is_passed_on else believed
        refused = None if answer.is_accepted else self._refused(answer, body)
        self.results.append(compared(fact, believed, seen, refused=refused, **change))

    def _compare(self, fact: str, believed: bool, seen: bool, **change: Any) -> None:
        known = YES_OR_NO if self._subject.is_passed_on else _yes(believed)
        self.results.append(compared(fact, known, _yes(seen), **change))

    def _refused(self, answer: Answer, body: bytes) -> ProviderRefusal:
        sent = Sent(body, self._subject.target, self._subject.contract, Policy(), None)
        is_known = classify(answer.status, answer.body) or fix_for(answer.status, answer.body, sent)
        return ProviderRefusal(answer.status, answer.body, is_known is not None)


def replace_ask(ask: Ask, **members: Any) -> Ask:
    return ask._replace(**members)


def _thinks(answer: Answer) -> bool:
    return has_reasoning(answer.items) or answer.usage.reasoning > 0


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _dialect_in(contract: Contract, carrier: str) -> str:
    """The name of a dialect with its reasoning in this member: the maker's own, where there is one."""
    every = facts().dialects.values()
    fitting = [one for one in every if one.carrier == carrier]
    own = [one for one in fitting if one.reasoning_format == contract.dialect.reasoning_format]
    return (own or fitting or [contract.dialect])[0].name
