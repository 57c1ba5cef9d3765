"""A request on its way: as it came, with what its client sent along, and as it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from typing import NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.leaving_out import without_members
from thoughtline.formats.mending import mended
from thoughtline.providers import Contract
from thoughtline.providers.betas import refused_betas
from thoughtline.replay.bounds import unattributed
from thoughtline.replay.chat_templates import unread_turns
from thoughtline.replay.findings import Finding
from thoughtline.replay.known import with_opened
from thoughtline.replay.links import last_block_of
from thoughtline.replay.planner import Needs, draft
from thoughtline.replay.plans import NO_PAST, Found, Past, Plan, Policy, Trace
from thoughtline.replay.refusals import Correction
from thoughtline.replay.settling import while_paused, while_thinking, with_settings
from thoughtline.replay.thinking import in_own_mode
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError
from thoughtline.values.identity import Identity
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1, Item
from thoughtline.values.outcome import Counts, Outcome
from thoughtline.values.records import Record
from thoughtline.values.turns import Transcript

MAX_FINDINGS = 64
"""The maximum number of findings reported for one exchange."""

MemberEdits: TypeAlias = tuple[tuple[str, bytes | None], ...]


class MapsCallIds(Protocol):
    """Maps call ids between two formats: those that an answer shows to its client, and those of their maker."""

    def shown(self, items: Iterable[Item], choice: int) -> tuple[Item, ...]: ...

    def restored(self, transcript: Transcript, records: Iterable[Record]) -> Transcript: ...

    def may_rename(self, transcript: Transcript) -> bool: ...


class Quotes(Protocol):
    """Other models' reasoning that is quoted in a request."""

    @property
    def quotes(self) -> Sized: ...

    @property
    def findings(self) -> tuple[Finding, ...]: ...

    @property
    def text(self) -> str: ...


class HandsOver(Protocol):
    """Reasoning of other models from before a request. `carry_on` is pure: planning again repeats it."""

    @property
    def session(self) -> str: ...

    def carry_on(self, planned: Transcript, contract: Contract) -> tuple[Transcript, Quotes]: ...


class Carried(Struct, frozen=True, gc=False):
    """What a client sent along that a store need not have: records in envelopes, and findings of the translation.

    `call_ids` maps ids of another format; None if the client speaks the provider's own. `opened` decodes envelopes that
    have not been opened yet.
    """

    records: tuple[Record, ...] = ()
    findings: tuple[Finding, ...] = ()
    call_ids: MapsCallIds | None = None
    opened: Callable[[], tuple[Record, ...]] | None = None

    def all_opened(self) -> Carried:
        """Return this with the records in all envelopes."""
        return self if self.opened is None else replace(self, records=(*self.records, *self.opened()), opened=None)

    def adds_to(self, found: Found) -> bool:
        """Whether it has a turn that a store did not find."""
        return any(not any(map(found.get, record.keys[:1])) for record in self.records)

    def added_to(self, found: Found) -> Found:
        """Add the records that a store did not find. The store's own record of a turn is better."""
        return with_opened(found, self.records) if self.records else found

    def renames(self, transcript: Transcript) -> bool:
        """Whether calls of a request may have other ids than those in its body."""
        return self.call_ids is not None and self.call_ids.may_rename(transcript)

    def named(self, transcript: Transcript, found: Found) -> Transcript:
        """Restore the ids that the calls were made under, if the client has only digests of them."""
        if self.call_ids is None:
            return transcript
        records: dict[str, Record] = {}
        for some in found.values():
            for record in some:
                records[record.id] = record
        return self.call_ids.restored(transcript, records.values())


NOTHING_CARRIED = Carried()


class Original(NamedTuple):
    """A request as it came. `model` replaces the one in the body, `edits` other members, `user` the end user of a
    translated body."""

    body: bytes
    destination: Destination
    identity: Identity
    model: str
    edits: MemberEdits
    carried: Carried
    user: str | None = None


class Prepared(Struct, frozen=True, gc=False):
    """A request on its way. Without a `transcript` (unreadable, or replay is off) it is forwarded unchanged, and its
    response is not captured.

    `healings` is how often it was corrected after a refusal, `settled` how often of these only in its settings. If its
    beginning was cached, `transcript` is the end of it, `begun` names the session if the client does not, and `whole`
    processes all of it. `trace` has the parts of its plan, if they can be cached.
    """

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
    settled: int = 0
    corrections: tuple[Correction, ...] = ()
    problem: DecodeError | EncodeError | None = None
    carried: Carried = NOTHING_CARRIED
    handover: HandsOver | None = None
    quotation: Quotes | None = None
    trace: Callable[[], Trace | None] | None = None
    begun: str = ""
    whole: Callable[[], Awaitable[Prepared]] | None = None

    @property
    def counts(self) -> Counts:
        return self.plan.counts if self.plan else Counts()

    @property
    def missed(self) -> int:
        """How many turns needed reasoning and did not get their own back."""
        notes = self.plan.notes if self.plan is not None else None
        return notes.missed if notes is not None else 0

    @property
    def refused_betas(self) -> frozenset[str]:
        """Values of `anthropic-beta` that its server is known to refuse."""
        return refused_betas(self.contract.settings) if self.contract.settings else frozenset()

    @property
    def outcome(self) -> Outcome:
        planned = self.plan.findings if self.plan else ()
        quotation = self.quotation
        findings = (*self.carried.findings, *planned, *(quotation.findings if quotation else ()))
        quotes = len(quotation.quotes) if quotation else 0
        counts = self.plan.counts.counted if self.plan else {}
        return Outcome(
            **{**counts, "healed": 1 if self.healings else 0, "checkpoints": quotes},
            added_chars=len(quotation.text) if quotation else 0,
            findings=_places_of(findings[:MAX_FINDINGS]) if findings else (),
        )


def _places_of(findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    return tuple([(finding.rule, finding.place) for finding in findings])


def edited(transcript: Transcript, original: Original) -> Transcript:
    """Apply the original's edits of members."""
    if original.model and original.model != transcript.model:
        transcript = transcript.with_member("model", msgspec.json.encode(original.model))
    for name, value in original.edits:
        transcript = transcript.with_member(name, value)
    return transcript


def as_signed(prepared: Prepared, body: bytes) -> Prepared:
    """Forward a request that its client signed unchanged, and report the changes that were not made."""
    if prepared.body == body:
        return prepared
    undone = ", ".join(f"{name}={count}" for name, count in prepared.counts.counted.items() if count)
    finding = Finding("signed-request", undone, "the client signed its body, which was not changed", "sign it here")
    return with_finding(replace(prepared, body=body, plan=None, trace=None, quotation=None), finding)


def with_finding(prepared: Prepared, finding: Finding) -> Prepared:
    """Add a finding."""
    carried = prepared.carried
    if finding in carried.findings:
        return prepared
    return replace(prepared, carried=replace(carried, findings=(*carried.findings, finding)))


def planned(prepared: Prepared, past: Past = NO_PAST) -> Prepared:
    """Plan the request, and apply the plan."""
    transcript, needed = prepared.transcript, prepared.needed
    assert transcript is not None
    assert needed is not None
    contract, found, policy = prepared.contract, prepared.found, prepared.policy
    wire, changed = FORMATS[transcript.format], tuple[Finding, ...]()
    model = prepared.destination.model
    if wire.thinking_modes is not None:
        transcript, changed = in_own_mode(transcript, contract, model)
    if "attribution" in wire.quirks and contract.dialect.reasoning_format != ANTHROPIC_CLAUDE_V1:
        transcript = unattributed(transcript)
    rules = contract.settings
    if changed and contract.thinks(transcript):
        rules = (*while_thinking(contract, model), *rules)
    transcript, settled = with_settings(transcript, rules, contract)
    work = draft(transcript, contract, needed, found=found, issuer=prepared.destination, policy=policy, past=past)
    made = work.done()
    applied, quotation = made.apply(transcript), None
    if work.is_paused:
        applied, more = with_settings(applied, while_paused(contract, model), contract)
        settled = (*settled, *more)
    unread = _unread(made, transcript, contract)
    if contract.keeping and made.counts.restored:
        applied, kept = with_settings(applied, contract.keeping, contract)
        settled = (*settled, *kept)
    if prepared.handover is not None:
        applied, quotation = prepared.handover.carry_on(applied, contract)
    body = wire.bodies.encode_request(applied, contract.dialect)
    body, refused = without_members(body, (*contract.drops, *policy.drops))
    if contract.binds_chain:
        made = replace(made, block=last_block_of(applied.turns, past.block))
    body, mends = mended(body, (*contract.mends, *policy.mends))
    if contract.never_thinks:
        why = "this model does not think: it is not asked to"
        settled = (*settled, *(Finding("setting", f"/{name}", why, "") for name, _ in made.member_edits))
    dropped = [Finding("forbidden", one, "a member that this provider refuses", "") for one in refused]
    dropped += [Finding("forbidden", wire.list_place, f"this server refuses {one}", "") for one in mends]
    if changed or settled or dropped or unread:
        made = replace(made, findings=(*made.findings, *changed, *settled, *dropped, *unread))
    is_whole = dropped or unread or (contract.keeping and made.counts.restored)
    trace = None if is_whole else work.trace
    return replace(prepared, plan=made, trace=trace, body=body, quotation=quotation)


def _unread(made: Plan, transcript: Transcript, contract: Contract) -> list[Finding]:
    """Return findings for restored turns whose reasoning the server's chat template omits."""
    if not contract.unread_turns or contract.keeping or not made.counts.restored:
        return []
    place, why = FORMATS[transcript.format].list_place, "the server's chat template leaves this reasoning out"
    return [Finding("dropped", f"{place}/{at}", why, "") for at in unread_turns(transcript, made.notes or (), contract)]
