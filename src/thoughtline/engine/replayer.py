"""The library's door: prepare a request, heal a refused one, save what the response said.

    prepare(body, destination, identity)   what to send, and why
    heal(prepared, status, body)           what to send instead, if the provider refused the reasoning of it
    save(records)                          what a `Watch` of the response has taken (`capture.py`)

What can't be read is sent as it came: the provider will say what is wrong with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from thoughtline.engine.contracts import ContractBook
from thoughtline.engine.heal import Healed, Sent, doors_named, heal, read_refusal
from thoughtline.engine.learned import TTL_SECONDS, Lessons
from thoughtline.engine.request import (
    NOTHING_CARRIED,
    Carried,
    HandsOver,
    MemberEdits,
    Original,
    Prepared,
    edited,
    planned,
)
from thoughtline.engine.resume import begun, conversation, gone_on, is_worth_remembering
from thoughtline.engine.sessions import first_model
from thoughtline.engine.threads import Work, at_once
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import decode_bounded, is_light, is_light_conversation
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.chains import wanting
from thoughtline.replay.detection import as_asked
from thoughtline.replay.keys import walk
from thoughtline.replay.known import known_steps, needs_of_all
from thoughtline.replay.learning import learned_from_answer
from thoughtline.replay.planner import Needs, needs
from thoughtline.replay.plans import Found
from thoughtline.replay.refusals import Correction, Evidence, Refusal
from thoughtline.replay.remembering import Conversations, Cut, premises_of, still_holds
from thoughtline.stores import Clock, Saved, Store
from thoughtline.translation.passages import Direction, Made, Passages, Translates, Written
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError, LimitExceeded, StoreError
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import FormatName, Transcript

MOST_HEALINGS = 2
MOST_SETTLED = 4
"""Corrections of settings alone: servers refuse them one by one, and each that is corrected stays so."""

REMEMBERED_BYTES = 64 * 2**20
"""What the conversations of late may take in memory."""

PASSAGES_SHARE = 4
"""Translated passages may take this part of as much again."""

_KEYS_AT_ONCE = 500
"""Looked for in one go: a store that answers on the loop takes a few milliseconds for so many."""


Whole: TypeAlias = Callable[[], Awaitable[Prepared]]
"""Works through all of a request."""


class Recalls(Protocol):
    """Fetches what other models thought, for a request whose records were found."""

    def __call__(self, needed: Needs, found: Found, transcript: Transcript, *, work: Work) -> Awaitable[HandsOver]: ...


class Replayer:
    """Requests and responses in, a store behind. `work` is how what takes long is done."""

    def __init__(
        self,
        store: Store,
        lessons: Lessons,
        book: ContractBook,
        clock: Clock,
        work: Work = at_once,
        remembered_bytes: int = REMEMBERED_BYTES,
        any_frame: bool = False,
    ) -> None:
        self._store = store
        self._lessons = lessons
        self._book = book
        self._clock = clock
        self._work = work
        self._conversations = Conversations(remembered_bytes)
        self._passages = Passages(remembered_bytes // PASSAGES_SHARE)
        self._any_frame = any_frame

    def _who_asks(self, identity: Identity, destination: Destination) -> Identity:
        """Who asks, with what else tells whether a turn is the same."""
        return replace(identity, model=destination.model, any_frame=self._any_frame)

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
        cuts: Sequence[Cut] | None = None,
    ) -> Prepared:
        """What to send for a request. `model` stands in for the one that the body names, `edits` for other members.

        With `recall`, what other models thought is quoted where this one can't take it natively. `cuts` are the body's,
        where they were looked for already.
        """
        identity = self._who_asks(identity, destination)
        original = Original(body, destination, identity, model=model, edits=edits, carried=carried)
        whole = partial(self._whole, original, recall)
        if recall is not None or not self._conversations.are_kept:
            return await whole()
        cuts = self.cuts(body, destination.format, identity.tenant) if cuts is None else cuts
        cut = self.cut_for(cuts, destination, identity) if cuts else None
        return await self._going_on(original, whole, cut)

    async def translated(self, body: bytes, direction: Direction, translate: Translates) -> Made:
        """A request in another format. Only what is new of its conversation is translated."""
        shortened = self._passages.shortened(body, direction)
        made = await self.work_for(shortened.short)(partial(shortened.translated, translate))
        if made is None:
            made = await self.work_for(body)(partial(shortened.whole.translated, translate))
        assert made is not None
        self._passages.keep(made)
        return made

    async def prepare_translated(
        self,
        written: Written,
        destination: Destination,
        identity: Identity,
        *,
        contract: Contract,
        carried: Carried,
        recall: Recalls | None = None,
    ) -> Prepared:
        """What to send for a request that came in another format. `carried` is what its client brought."""
        identity, work = self._who_asks(identity, destination), self.work_for(written.body)

        async def whole() -> Prepared:
            transcript = await work(written.read)
            opened = await work(carried.all_opened)
            return await self.prepare_decoded(
                transcript, destination, identity, contract=contract, carried=opened, recall=recall
            )

        if recall is not None or not self._conversations.are_kept:
            return await whole()
        if not written.is_joined and carried.renames(written.read()):
            return await whole()
        original = Original(written.body, destination, identity, model="", edits=(), carried=carried, user=written.user)
        cuts = self.cuts(original.body, written.format, identity.tenant)
        cut = self._cut_by(cuts, destination, identity, contract) if cuts else None
        return await self._going_on(original, whole, cut)

    async def _going_on(self, original: Original, whole: Whole, cut: Cut | None) -> Prepared:
        """From where a request of late ended, if this one begins as that did."""
        if cut is not None and (resumed := await self._resumed(original, cut)) is not None:
            return replace(resumed, whole=whole)
        prepared = await whole()
        if is_worth_remembering(prepared):
            await self._remember(prepared, original.body)
        return prepared

    async def _whole(self, original: Original, recall: Recalls | None = None) -> Prepared:
        body, destination, identity = original[:3]
        contract = self._book.contract_for(destination)
        try:
            contract, transcript = await self.work_for(body)(partial(_read, body, destination.format, contract))
        except DecodeError as problem:
            is_changed = original.edits or (original.model and original.model != first_model(body))
            if is_changed and isinstance(problem, LimitExceeded):
                raise  # what is not read can't be changed
            return Prepared(destination, identity, body, contract, problem=problem.to_keep())
        return await self.prepare_decoded(
            edited(transcript, original),
            destination,
            identity,
            contract=contract,
            carried=original.carried,
            recall=recall,
        )

    @property
    def remembered_size(self) -> int:
        """What the conversations of late take in memory, in bytes."""
        return self._conversations.size + self._passages.size

    def forget_conversations(self) -> None:
        """Something was deleted: what was made of it need not stay in memory until somebody asks for it again."""
        self._conversations.clear()
        self._passages.clear()

    def cuts(self, body: bytes, format: FormatName, tenant: str) -> tuple[Cut, ...]:
        """Where a body begins as requests of late did, the longest beginning first."""
        return self._conversations.cuts(body, format, tenant)

    def cut_for(self, cuts: Sequence[Cut], destination: Destination, identity: Identity) -> Cut | None:
        """The one of them that was prepared for the same destination, caller and session, by the same rules."""
        who = self._who_asks(identity, destination)
        return self._cut_by(cuts, destination, who, self._book.contract_for(destination))

    def _cut_by(
        self, cuts: Sequence[Cut], destination: Destination, identity: Identity, contract: Contract
    ) -> Cut | None:
        policy = self._book.policy_for(contract, destination.account)
        for cut in cuts:
            premises = premises_of(destination, identity, as_asked(contract, cut.short), policy)
            if cut.conversation.premises == premises:
                return cut
        return None

    async def _resumed(self, original: Original, cut: Cut) -> Prepared | None:
        """With only what is new worked through; None where that is not enough to know what to send."""
        work, names = self.work_for(cut.short), cut.new_names
        short = await work(partial(begun, original, cut))
        if short is None:
            return None
        prepared, cut = short
        if prepared.needed is None:
            return None
        known = [*cut.looked_up, *names]
        needed, tenant = prepared.needed, original.identity.tenant
        found = await self._find_all(tenant, [*[one.key for one in known], *needed.first])
        if not still_holds(known, found):
            self._conversations.drop(cut.conversation)
            return None
        needed, found = await self._rest(needed, found, work)
        carried = original.carried
        if carried.adds_to(found) or (carried.opened is not None and not _knows_all(cut, needed, found)):
            return None
        done = await work(partial(gone_on, replace(prepared, needed=needed, found=found), cut, original.body))
        if done is None:
            return None
        prepared, segments = done
        self._conversations.go_on(cut, segments, self._clock())
        self._store.counters.tell(prepared.counts.restored, prepared.missed)
        return prepared

    async def _remember(self, prepared: Prepared, body: bytes) -> None:
        """A request that was worked through as a whole: the next one may begin as it does."""
        kept = await self.work_for(body)(partial(conversation, prepared, body))
        if kept is not None:
            self._conversations.begin(kept, body, self._clock())

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
        identity = self._who_asks(identity, destination)
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
            policy=self._book.policy_for(contract, destination.account),
            transcript=transcript,
            needed=needed,
            found=found,
            carried=carried,
        )
        if recall is not None:
            prepared = replace(prepared, handover=await recall(needed, found, transcript, work=work))
        try:
            prepared = await work(partial(planned, prepared))
        except EncodeError as problem:  # what was planned can't be written: better nothing than no request
            body = FORMATS[transcript.format].bodies.encode_request(transcript, contract.dialect)
            return replace(prepared, body=body, problem=problem.to_keep())
        self._store.counters.tell(prepared.counts.restored, prepared.missed)
        return prepared

    async def latest(self, transcript: Transcript, identity: Identity) -> Record | None:
        """The record of the model's last turn in a request of any format, whoever made it."""
        work = self._work_for(transcript)
        identity = replace(identity, any_frame=self._any_frame)
        known = known_steps(*await self._found(partial(_last_step, transcript, identity), work))
        return known[-1].record if known else None

    async def heal(self, prepared: Prepared, status: int, answer: bytes) -> Prepared | None:
        """The request as it should have been, by what the refusal says; None if it is not ours to heal."""
        if prepared.transcript is None:
            return None
        try:
            healed = heal(status, answer, _sent(prepared), self._clock())
            if healed is None or not _may_try(prepared, healed):
                return None
            prepared = await prepared.whole() if prepared.whole is not None else prepared
            amended = await self._amended(prepared, healed)
            again = await self.work_for(prepared.body)(partial(planned, amended))
        except (DecodeError, EncodeError):
            return None
        is_same = again.body == prepared.body and again.refused_betas == prepared.refused_betas
        return None if is_same else again

    def read_refusal(self, prepared: Prepared, status: int, answer: bytes) -> Refusal | None:
        """What an error is about, for people."""
        return read_refusal(status, answer, _sent(prepared))

    def doors_named(
        self, prepared: Prepared, status: int, answer: bytes
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Endpoints that a refusal offers, and those that it closes."""
        return doors_named(status, answer, _sent(prepared))

    async def learn_door(self, destination: Destination, format: FormatName, *, with_tools: bool) -> None:
        """Requests to this model go to another endpoint: it has answered there, and refused here."""
        now = self._clock()
        lesson = Correction(
            destination.provider,
            destination.endpoint,
            destination.model,
            change="opens",
            field=format,
            evidence=Evidence(400, "", ""),
            learned_at=now,
            expires_at=now + TTL_SECONDS,
            scope="all_with_tools" if with_tools else "",
        )
        await self._lessons.keep((lesson,), frozenset())

    def lessons_of(self, destination: Destination) -> tuple[Correction, ...]:
        """What is known of a model at its address, and still holds."""
        known = self._lessons.by_target.get((destination.provider, destination.endpoint, destination.model), ())
        now = self._clock()
        return tuple(one for one in known if one.holds_at(now)) if known else ()

    async def keep_lessons(self, prepared: Prepared) -> None:
        """The healed request went through: what healed it is worth knowing."""
        account = prepared.destination.account
        refused = prepared.policy.refused - self._lessons.refused_for(account)
        if prepared.corrections or len(refused) == 1:
            kept = [Key(f"{seal}@{account}") for seal in refused] if len(refused) == 1 else ()
            await self._lessons.keep(prepared.corrections, frozenset(kept))

    async def save(self, records: Sequence[Record], *, learns: bool = False) -> Saved | None:
        """None where the store could not even remember it for now. `learns`: also what answers say of their server."""
        if learns:
            await self._learn_from(records)
        self._conversations.doubt(records)
        try:
            return await self._store.save(records)
        except StoreError:
            return None

    async def _learn_from(self, records: Sequence[Record]) -> None:
        now = self._clock()
        for record in records:
            made = record.provenance
            target = Destination(made.provider, made.endpoint, made.model_asked, made.format)
            contract = self._book.contract_for(target)
            lesson = learned_from_answer(record, contract, now, TTL_SECONDS) if contract.follows_answers else None
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
        needed = await work(wanted)
        if not needed.steps:
            return needed, carried.added_to({})
        tenant = needed.identity.tenant
        found = await self._find_all(tenant, needed.first)
        settled, found = await self._rest(needed, found, work)
        if carried.records and carried.adds_to(found):
            return needed, carried.added_to(found)
        return settled, found

    async def _rest(self, needed: Needs, found: Found, work: Work) -> tuple[Needs, Found]:
        """What the lineages did not settle is looked for by other keys, as long as there are any."""
        while True:
            needed, keys = await work(partial(wanting, needed, found))
            more = await self._find_all(needed.identity.tenant, keys) if keys else {}
            if not more:
                return needed, found
            found = {**found, **more}

    async def _find_all(self, tenant: str, keys: Sequence[Key]) -> Found:
        """In slices, with others let in between them. A failing store never fails a request: it counts and shows its
        failures itself."""
        found: dict[Key, Sequence[Record]] = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            try:
                found.update(await self._store.find(tenant, keys[start : start + _KEYS_AT_ONCE]))
            except StoreError:
                continue
        return found

    async def _amended(self, prepared: Prepared, healed: Healed) -> Prepared:
        """The same request under the contract and policy that the refusal teaches."""
        changed = replace(
            prepared,
            contract=healed.contract,
            policy=healed.policy,
            corrections=(*prepared.corrections, *healed.corrections),
            healings=prepared.healings + 1,
            settled=prepared.settled + healed.is_setting,
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
    if contract.when_split is not None:
        contract = as_asked(contract, body)
    return contract, decode_bounded(body, format, contract.dialect)


def _knows_all(cut: Cut, needed: Needs, found: Found) -> bool:
    """Whether a store has a record of every step, found by its lineage: then no envelope adds to it."""
    unknown = [one for one in cut.looked_up if one.names or not one.ids]
    return not unknown and all(step.lineage is not None and found.get(step.lineage) for step in needed.steps)


def _last_step(transcript: Transcript, identity: Identity) -> Needs:
    steps, end = walk(transcript, identity)
    return Needs(identity, steps[-1:], end)


def _read_again(transcript: Transcript, dialect: Dialect) -> Transcript:
    bodies = FORMATS[transcript.format].bodies
    again = bodies.decode_request(bodies.encode_request(transcript, dialect), dialect)
    return replace(again, user=transcript.user)


def _may_try(prepared: Prepared, healed: Healed) -> bool:
    """Whether a request may be sent once more."""
    if healed.is_setting:
        return prepared.settled < MOST_SETTLED
    return prepared.healings - prepared.settled < MOST_HEALINGS


def _sent(prepared: Prepared) -> Sent:
    filler = prepared.plan.filler if prepared.plan else None
    contract, transcript = prepared.contract, prepared.transcript
    sent = Sent(prepared.body, prepared.destination, contract, prepared.policy, filler)
    if transcript is None:
        return sent
    switch = contract.switch(transcript)
    off = tuple(name for name, word in transcript.switches if word == "off")
    return sent._replace(
        said_off=(off or ("*",)) if switch == "off" else (),
        says_thinking=switch not in ("unsaid", "off"),
        thinks=contract.thinks(transcript),
    )
