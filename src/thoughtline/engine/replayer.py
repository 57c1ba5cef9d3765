"""The engine's interface: prepare a request, heal a refused one, save the turns of a response.

    prepare(body, destination, identity)   what to send, and why
    heal(prepared, status, body)           what to send instead if the provider refused its reasoning
    save(records)                          the records that a `Watch` of the response made (`capture.py`)

A request that can't be read is forwarded unchanged: the provider reports what is wrong with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
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

MAX_HEALINGS = 2
MAX_SETTLED = 4
"""Maximum number of corrections that change only settings: servers refuse them one by one, and each is lasting."""

REMEMBERED_BYTES = 64 * 2**20
"""Memory budget for recent conversations."""

PASSAGES_SHARE = 4
"""Translated passages may use this fraction of the budget in addition."""

_KEYS_AT_ONCE = 500
"""Keys per lookup: a store that answers on the event loop needs a few milliseconds for this many."""


Whole: TypeAlias = Callable[[], Awaitable[Prepared]]
"""Processes all of a request."""


class Recalls(Protocol):
    """Fetches other models' reasoning for a request whose records were found."""

    def __call__(self, needed: Needs, found: Found, transcript: Transcript, *, work: Work) -> Awaitable[HandsOver]: ...


class Timed(Protocol):
    """A request whose look-ups are timed."""

    look_up_seconds: float


timing: ContextVar[Timed | None] = ContextVar("timing", default=None)
"""The request that the current task prepares, if it wants to know."""


class Replayer:
    """Prepares requests and saves turns, with a store. `work` runs what takes long."""

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
        """Return the identity, with everything else that identifies a turn."""
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
        """Return what to send for a request. `model` replaces the one in the body, `edits` other members.

        With `recall`, other models' reasoning is quoted if this one can't accept it natively. `cuts` are the body's, if
        they were already found.
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
        """Translate a request. Only what is new of its conversation is translated."""
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
        """Return what to send for a request that came in another format. `carried` is what its client sent along."""
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
        """Resume from a recent request if this one starts with it."""
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
        """Memory used by recent conversations and translated passages, in bytes."""
        return self._conversations.size + self._passages.size

    def forget_conversations(self) -> None:
        """Drop the cached conversations after a deletion, so that deleted content does not stay in memory."""
        self._conversations.clear()
        self._passages.clear()

    def cuts(self, body: bytes, format: FormatName, tenant: str) -> tuple[Cut, ...]:
        """Return cuts of a body that begins like recent requests, the longest first."""
        return self._conversations.cuts(body, format, tenant)

    def cut_for(self, cuts: Sequence[Cut], destination: Destination, identity: Identity) -> Cut | None:
        """Return the first of them with the same destination, caller, session and contract."""
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
        """Process only the new messages. Returns None if they are not enough to decide what to send."""
        work, now = self.work_for(cut.short), self._clock()
        names = cut.names_to_ask(now)
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
        self._conversations.go_on(cut, segments, now, prepared.begun)
        self._store.counters.add(prepared.counts.restored, prepared.missed)
        return prepared

    async def _remember(self, prepared: Prepared, body: bytes) -> None:
        """Cache a request that was processed in full: the next one may begin with it."""
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
        """Return what to send for a request that is already decoded, or written by us. `carried` is what its client
        sent along."""
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
        except EncodeError as problem:  # the plan can't be encoded: send the request without it
            body = FORMATS[transcript.format].bodies.encode_request(transcript, contract.dialect)
            return replace(prepared, body=body, problem=problem.to_keep())
        self._store.counters.add(prepared.counts.restored, prepared.missed)
        return prepared

    async def latest(self, transcript: Transcript, identity: Identity) -> Record | None:
        """Return the record of the model's last turn in a request of any format, from any maker."""
        work = self._work_for(transcript)
        identity = replace(identity, any_frame=self._any_frame)
        known = known_steps(*await self._found(partial(_last_step, transcript, identity), work))
        return known[-1].record if known else None

    async def heal(self, prepared: Prepared, status: int, answer: bytes) -> Prepared | None:
        """Return the corrected request after a refusal; None if we can't heal it."""
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
        """Return what an error is about, for display."""
        return read_refusal(status, answer, _sent(prepared))

    def doors_named(
        self, prepared: Prepared, status: int, answer: bytes
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return the endpoints that a refusal offers, and those that it rules out."""
        return doors_named(status, answer, _sent(prepared))

    async def learn_door(self, destination: Destination, format: FormatName, *, with_tools: bool) -> None:
        """Learn that requests to this model go to another endpoint: it answered there, and refused here."""
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
        """Return the valid corrections for a model at its address."""
        known = self._lessons.by_target.get((destination.provider, destination.endpoint, destination.model), ())
        now = self._clock()
        return tuple(one for one in known if one.holds_at(now)) if known else ()

    async def keep_lessons(self, prepared: Prepared) -> None:
        """Keep the lessons of a healed request that was accepted."""
        account = prepared.destination.account
        refused = prepared.policy.refused - self._lessons.refused_for(account)
        if prepared.corrections or len(refused) == 1:
            kept = [Key(f"{seal}@{account}") for seal in refused] if len(refused) == 1 else ()
            await self._lessons.keep(prepared.corrections, frozenset(kept))

    async def save(self, records: Sequence[Record], *, learns: bool = False) -> Saved | None:
        """Save records. Returns None if the store could not even hold them in memory. `learns`: also learn from the
        answers."""
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
        """Return how to run work whose time depends on a body's size."""
        return at_once if is_light(body) else self._work

    def _work_for(self, transcript: Transcript) -> Work:
        return at_once if is_light_conversation(transcript) else self._work

    async def _found(
        self, wanted: Callable[[], Needs], work: Work, carried: Carried = NOTHING_CARRIED
    ) -> tuple[Needs, Found]:
        """Look up lineages first, one key per step, which is nearly always enough; then other keys for the rest."""
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
        """Look up further keys for what lineages did not settle, until there are none."""
        while True:
            needed, keys = await work(partial(wanting, needed, found))
            more = await self._find_all(needed.identity.tenant, keys) if keys else {}
            if not more:
                return needed, found
            found = {**found, **more}

    async def _find_all(self, tenant: str, keys: Sequence[Key]) -> Found:
        """Look up keys in slices, letting other tasks run in between. A failing store never fails a request: it counts
        and reports its failures itself."""
        found: dict[Key, Sequence[Record]] = {}
        began = time.perf_counter()
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            try:
                found.update(await self._store.find(tenant, keys[start : start + _KEYS_AT_ONCE]))
            except StoreError:
                continue
        if (timed := timing.get()) is not None:
            timed.look_up_seconds += time.perf_counter() - began
        return found

    async def _amended(self, prepared: Prepared, healed: Healed) -> Prepared:
        """Return the same request with the corrected contract and policy."""
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
        """Return it with the records that the corrected contract needs, and the body decoded in its dialect."""
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
        return prepared.settled < MAX_SETTLED
    return prepared.healings - prepared.settled < MAX_HEALINGS


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
