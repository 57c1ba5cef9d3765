"""The library's door: prepare a request, heal a refused one, save what the response said.

    prepare(body, destination, identity)   what to send, and why
    heal(prepared, status, body)           what to send instead, if the provider refused the reasoning of it
    save(records)                          what a `Watch` of the response has taken (`watching.py`)

What can't be read is sent as it came: the provider will say what is wrong with it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from thoughtline.formats import FORMATS
from thoughtline.formats.leaving_out import without_members
from thoughtline.formats.lone_surrogates import peek
from thoughtline.formats.weighing import decode_bounded, is_light, is_light_conversation
from thoughtline.healing import Healed, Sent, heal
from thoughtline.lessons import TTL_SECONDS, Lessons
from thoughtline.providers import CONTRACTS, UNKNOWN, Contract, Dialect, Rung
from thoughtline.replay.carrying import NOTHING_CARRIED, Carried, HandsOver, Quotes
from thoughtline.replay.detection import as_asked, host_of, resolve, with_tools
from thoughtline.replay.findings import Finding
from thoughtline.replay.inherit import inheriting
from thoughtline.replay.keys import walk
from thoughtline.replay.known import known_steps, needs_of_all
from thoughtline.replay.learning import learned_from_answer
from thoughtline.replay.matching import Found
from thoughtline.replay.planner import Needs, Plan, Policy, needs, plan
from thoughtline.replay.refusals import Correction
from thoughtline.stores import Clock, Saved, Store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError, LimitExceeded, StoreError
from thoughtline.values.identity import Identity
from thoughtline.values.outcome import Counts, Outcome
from thoughtline.values.records import Key, Record
from thoughtline.values.turn_notes import is_missed
from thoughtline.values.turns import FormatName, Transcript
from thoughtline.working import Work, at_once

MOST_HEALINGS = 2
_MAX_RESOLVED = 4096
_KEYS_AT_ONCE = 500
"""Looked for in one go: a store that answers on the loop takes a few milliseconds for so many."""
MAX_FINDINGS = 64
"""As many as are told of one exchange."""
_MODEL = re.compile(rb'\A\s*\{\s*"model"\s*:\s*"([^"\\]{1,200})"')


MemberEdits: TypeAlias = tuple[tuple[str, bytes], ...]


class ContractBook:
    """Which contract holds where: built-in rows, what settings change of them, and what was learned."""

    def __init__(
        self,
        lessons: Lessons,
        overrides: dict[str, Contract] | None = None,
        fixed: dict[str, Contract] | None = None,
        on_miss: dict[str, tuple[Rung, ...]] | None = None,
        dialects: dict[str, Dialect] | None = None,
        *,
        inherits: bool = False,
    ) -> None:
        self._lessons = lessons
        self._overrides = overrides or {}
        self._fixed = fixed or {}
        self._on_miss = on_miss or {}
        self._dialects = dialects or {}
        self._inherits = inherits
        self._resolved: dict[tuple[str, str, str, FormatName], Contract] = {}

    def contract_for(self, target: Destination) -> Contract:
        key = (target.provider, target.endpoint, target.model, target.format)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolve(target)
            if len(self._resolved) >= _MAX_RESOLVED:
                self._resolved.clear()
            self._resolved[key] = found
        return self._lessons.apply(found, target)

    def _resolve(self, target: Destination) -> Contract:
        """A contract that settings give a provider is of one format; in its others detection decides."""
        fixed = self._fixed.get(target.provider)
        found = resolve(target)
        if fixed is not None and fixed.format == target.format:
            found = with_tools(fixed, host_of(target))
        found = _changed(found, self._overrides.get(found.name))
        dialect = self._dialects.get(target.provider)
        if dialect is None or "dialects" not in FORMATS[target.format].quirks:
            return found
        may_seal = found.name == UNKNOWN.name  # where a person says which member it is, nothing else is guessed
        return replace(found, dialect=dialect, follows_answers=False, may_seal=may_seal)

    def policy_for(self, contract: Contract) -> Policy:
        ladder = self._on_miss.get(contract.name)
        if ladder is None and self._inherits and contract.takes == "text":
            ladder = inheriting(contract.ladder)
        return Policy(ladder, self._lessons.refused)


def _changed(found: Contract, override: Contract | None) -> Contract:
    """What settings change of a row, and nothing else: detection has made the row fit its host."""
    if override is None:
        return found
    row = CONTRACTS[found.name]
    return replace(found, **{name: value for name, value in asdict(override).items() if value != getattr(row, name)})


class Recalls(Protocol):
    """Fetches what other models thought, for a request whose records were found."""

    def __call__(self, needed: Needs, found: Found, transcript: Transcript, *, work: Work) -> Awaitable[HandsOver]: ...


class Prepared(Struct, frozen=True, gc=False):
    """A request on its way. Without a `transcript` its body could not be read and goes out as it came."""

    destination: Destination
    identity: Identity
    body: bytes
    contract: Contract
    policy: Policy = Policy()
    transcript: Transcript | None = None
    needed: Needs | None = None
    found: Found = {}
    plan: Plan | None = None
    healings: int = 0
    corrections: tuple[Correction, ...] = ()
    problem: DecodeError | EncodeError | None = None
    carried: Carried = NOTHING_CARRIED
    handover: HandsOver | None = None
    quotation: Quotes | None = None

    @property
    def counts(self) -> Counts:
        return self.plan.counts if self.plan else Counts()

    @property
    def missed(self) -> int:
        """How many turns needed reasoning and did not get their own back."""
        done = self.counts
        if self.plan is None or not (done.blank or done.missing or done.inherited):
            return 0
        return sum(map(is_missed, self.plan.notes))

    @property
    def summary(self) -> Prepared:
        """What there is to tell of it, without what was said in it: that may be long, and is sent."""
        plan = replace(self.plan, edits=(), member_edits=()) if self.plan else None
        carried = Carried(findings=self.carried.findings)
        return replace(
            self, body=b"", transcript=None, needed=None, found={}, plan=plan, carried=carried, handover=None
        )

    @property
    def outcome(self) -> Outcome:
        planned = self.plan.findings if self.plan else ()
        quotation = self.quotation
        findings = (*self.carried.findings, *planned, *(quotation.findings if quotation else ()))
        quotes = len(quotation.quotes) if quotation else 0
        done = {**self.counts.counted, "healed": 1 if self.healings else 0, "checkpoints": quotes}
        return Outcome(
            **done,
            added_chars=len(quotation.text) if quotation else 0,
            findings=tuple((finding.rule, finding.place) for finding in findings[:MAX_FINDINGS]),
        )


def first_model(body: bytes) -> str:
    """The model that a body asks for, if it stands first, as most clients write it."""
    found = _MODEL.match(body, 0, 256)
    return found[1].decode("utf-8", "replace") if found is not None else ""


def guess_model(body: bytes) -> str:
    """The model that a body asks for, wherever it stands."""
    if first := first_model(body):
        return first
    named = peek(_named, body)
    return named.model if named is not None else ""


class _Named(Struct, gc=False):
    model: str = ""


_named = msgspec.json.Decoder(_Named)


class Replayer:
    """Requests and responses in, a store behind. `work` is how what takes long is done."""

    def __init__(self, store: Store, lessons: Lessons, book: ContractBook, clock: Clock, work: Work = at_once) -> None:
        self._store = store
        self._lessons = lessons
        self._book = book
        self._clock = clock
        self._work = work

    def contract_for(self, destination: Destination) -> Contract:
        return self._book.contract_for(destination)

    async def prepare(
        self,
        body: bytes,
        destination: Destination,
        identity: Identity,
        model: str = "",
        edits: MemberEdits = (),
        recall: Recalls | None = None,
        carried: Carried = NOTHING_CARRIED,
    ) -> Prepared:
        """What to send for a request. `model` stands in for the one that the body names, `edits` for other members.

        With `recall`, what other models thought is quoted where this one can't take it natively.
        """
        contract = self._book.contract_for(destination)
        try:
            contract, transcript = await self.work_for(body)(partial(_read, body, destination.format, contract))
        except DecodeError as problem:
            is_changed = edits or (model and model != first_model(body))
            if is_changed and isinstance(problem, LimitExceeded):
                raise  # what is not read can't be changed
            return Prepared(destination, identity, body, contract, problem=problem)
        if model and model != transcript.model:
            transcript = transcript.with_member("model", msgspec.json.encode(model))
        for name, value in edits:
            transcript = transcript.with_member(name, value)
        return await self.prepare_decoded(
            transcript, destination, identity, contract=contract, carried=carried, recall=recall
        )

    async def prepare_decoded(
        self,
        transcript: Transcript,
        destination: Destination,
        identity: Identity,
        contract: Contract | None = None,
        carried: Carried = NOTHING_CARRIED,
        recall: Recalls | None = None,
    ) -> Prepared:
        """What to send for a request that was read already, or written by us. `carried` is what the client brought."""
        contract = contract or self._book.contract_for(destination)
        work = self._work_for(transcript)
        wanted = needs if recall is None else needs_of_all
        needed, found = await self._found(partial(wanted, transcript, contract, identity), work, carried)
        if carried.call_ids is not None:
            transcript = await work(partial(carried.named, transcript, found))
        prepared = Prepared(
            destination,
            identity,
            b"",
            contract=contract,
            policy=self._book.policy_for(contract),
            transcript=transcript,
            needed=needed,
            found=found,
            carried=carried,
        )
        if recall is not None:
            prepared = replace(prepared, handover=await recall(needed, found, transcript, work=work))
        try:
            prepared = await work(partial(_planned, prepared))
        except EncodeError as problem:  # what was planned can't be written: better nothing than no request
            body = FORMATS[transcript.format].bodies.encode_request(transcript, contract.dialect)
            return replace(prepared, body=body, problem=problem)
        self._store.counters.tell(prepared.counts.restored, prepared.missed)
        return prepared

    async def latest(self, transcript: Transcript, identity: Identity) -> Record | None:
        """The record of the model's last turn in a request of any format, whoever made it."""
        work = self._work_for(transcript)
        known = known_steps(*await self._found(partial(_last_step, transcript, identity), work))
        return known[-1].record if known else None

    async def heal(self, prepared: Prepared, status: int, answer: bytes) -> Prepared | None:
        """The request as it should have been, by what the refusal says; None if it is not ours to heal."""
        if prepared.transcript is None or prepared.healings >= MOST_HEALINGS:
            return None
        try:
            healed = heal(status, answer, _sent(prepared), self._clock())
            if healed is None:
                return None
            amended = await self._amended(prepared, healed)
            again = await self._work_for(prepared.transcript)(partial(_planned, amended))
        except (DecodeError, EncodeError):
            return None
        return None if again.body == prepared.body else again

    async def keep_lessons(self, prepared: Prepared) -> None:
        """The healed request went through: what healed it is worth knowing."""
        refused = prepared.policy.refused - self._lessons.refused
        if prepared.corrections or len(refused) == 1:
            await self._lessons.keep(prepared.corrections, refused if len(refused) == 1 else frozenset())

    async def save(self, records: Sequence[Record], *, learns: bool = False) -> Saved | None:
        """None where the store could not even remember it for now. `learns`: also what answers say of their server."""
        if learns:
            await self._learn_from(records)
        try:
            return await self._store.save(records)
        except StoreError:
            return None

    async def _learn_from(self, records: Sequence[Record]) -> None:
        now = self._clock()
        for record in records:
            made = record.provenance
            target = Destination(made.provider, made.endpoint, made.model_asked, made.format)
            lesson = learned_from_answer(record, self._book.contract_for(target), now, TTL_SECONDS)
            if lesson is not None:
                await self._lessons.keep((lesson,), frozenset())

    def work_for(self, body: bytes) -> Work:
        """How to do what takes as long as a body is."""
        return at_once if is_light(body) else self._work

    def _work_for(self, transcript: Transcript) -> Work:
        return at_once if is_light_conversation(transcript) else self._work

    async def _found(
        self, wanted: Callable[[], Needs], work: Work, carried: Carried = NOTHING_CARRIED
    ) -> tuple[Needs, Found]:
        """By lineage first, which is one key a step and nearly always enough; the other keys for what is left."""
        needed, first = await work(partial(_first, wanted))
        if not needed.steps:
            return needed, carried.added_to({})
        tenant = needed.identity.tenant
        found = await self._find_all(tenant, first)
        settled, rest = await work(partial(_settled, needed, found))
        if rest:
            found = {**found, **await self._find_all(tenant, rest)}
        return (needed, carried.added_to(found)) if carried.records else (settled, found)

    async def _find_all(self, tenant: str, keys: Sequence[Key]) -> Found:
        """In slices, with others let in between them."""
        found = dict(await self._find(tenant, keys[:_KEYS_AT_ONCE]))
        for start in range(_KEYS_AT_ONCE, len(keys), _KEYS_AT_ONCE):
            await asyncio.sleep(0)
            found |= await self._find(tenant, keys[start : start + _KEYS_AT_ONCE])
        return found

    async def _find(self, tenant: str, keys: Sequence[Key]) -> Found:
        if not keys:
            return {}
        try:
            return await self._store.find(tenant, keys)
        except StoreError:
            return {}  # counted and shown by the store itself: a failing store never fails a request

    async def _amended(self, prepared: Prepared, healed: Healed) -> Prepared:
        """The same request under the contract and policy that the refusal teaches."""
        changed = replace(
            prepared,
            contract=healed.contract,
            policy=healed.policy,
            corrections=(*prepared.corrections, *healed.corrections),
            healings=prepared.healings + 1,
        )
        return await self._needing(changed)

    async def _needing(self, prepared: Prepared) -> Prepared:
        """With the records that the corrected contract needs, and the body read in its dialect."""
        assert prepared.transcript is not None
        work = self._work_for(prepared.transcript)
        transcript = await work(partial(_read_again, prepared.transcript, prepared.contract.dialect))
        wanted = needs if prepared.handover is None else needs_of_all
        wanting = partial(wanted, transcript, prepared.contract, prepared.identity)
        needed, found = await self._found(wanting, work, prepared.carried)
        return replace(prepared, transcript=transcript, needed=needed, found=found)


def _read(body: bytes, format: FormatName, contract: Contract) -> tuple[Contract, Transcript]:
    contract = as_asked(contract, body)
    return contract, decode_bounded(body, format, contract.dialect)


def _first(wanted: Callable[[], Needs]) -> tuple[Needs, tuple[Key, ...]]:
    needed = wanted()
    return needed, needed.first


def _settled(needed: Needs, found: Found) -> tuple[Needs, tuple[Key, ...]]:
    settled = needed._replace(settled=needed.by_lineage(found))
    return settled, settled.rest(found)


def _last_step(transcript: Transcript, identity: Identity) -> Needs:
    steps, end = walk(transcript, identity)
    return Needs(identity, steps[-1:], end)


def _read_again(transcript: Transcript, dialect: Dialect) -> Transcript:
    bodies = FORMATS[transcript.format].bodies
    return bodies.decode_request(bodies.encode_request(transcript, dialect), dialect)


def _planned(prepared: Prepared) -> Prepared:
    """With its plan made and carried out."""
    transcript, needed = prepared.transcript, prepared.needed
    assert transcript is not None
    assert needed is not None
    contract, found, policy = prepared.contract, prepared.found, prepared.policy
    planned = plan(transcript, contract, needed, found=found, issuer=prepared.destination, policy=policy)
    applied, quotation = planned.apply(transcript), None
    if prepared.handover is not None:
        applied, quotation = prepared.handover.carry_on(applied, prepared.contract)
    body = FORMATS[transcript.format].bodies.encode_request(applied, prepared.contract.dialect)
    body, refused = without_members(body, (*prepared.contract.drops, *prepared.policy.drops))
    if refused:
        dropped = tuple(Finding("forbidden", one, "a member that this provider refuses", "") for one in refused)
        planned = replace(planned, findings=(*planned.findings, *dropped))
    return replace(prepared, plan=planned, body=body, quotation=quotation)


def _sent(prepared: Prepared) -> Sent:
    filler = prepared.plan.filler if prepared.plan else None
    return Sent(prepared.body, prepared.destination, prepared.contract, prepared.policy, filler)
