"""Laws 8 and 9 over real conversations: captured reasoning is restored in its place, and then nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.formats.test_recordings import decode_reply, decode_request, facts
from tests.recordings import LEFT_OUT, SUPPORTED, Exchange, Recording, name_of, needs_recordings
from thoughtline.engine.capture import capture
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.known import known_steps
from thoughtline.replay.matching import thought_of
from thoughtline.replay.planner import may_restore, needs, plan
from thoughtline.replay.rules import Case, check
from thoughtline.replay.weaving import without_reasoning
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Unknown, plain_token, seal_of
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Provenance, Transcript
from tools.listed_changes import CHANGED_TURNS, PLANNED

pytestmark = needs_recordings
PAIRED = [recording for recording in SUPPORTED if recording.pairs]
WHO = Identity("tenant")


def model_of(exchange: Exchange) -> str:
    request = exchange.recorded.get("request") or {}
    named = request.get("model") if isinstance(request, dict) else ""
    path = str(exchange.recorded.get("path", ""))
    return str(named or (path.split("/models/")[-1].split(":")[0] if "/models/" in path else ""))


def issuer_of(exchange: Exchange) -> Destination:
    return Destination(str(exchange.recorded["provider"]), "host", model_of(exchange), exchange.format.name, "account")


def contract_of(exchange: Exchange) -> Contract:
    """The contract of the provider, in the recorded dialect."""
    target = Destination(str(exchange.recorded["provider"]), "", model_of(exchange), exchange.format.name)
    return replace(resolve(target), dialect=exchange.dialect)


def captured(exchange: Exchange, request: Transcript, dialect: Dialect | None = None) -> tuple[Record, ...]:
    reply = decode_reply(exchange, dialect)
    if reply is None:
        return ()
    issuer = issuer_of(exchange)
    where = Provenance(
        *("tenant", issuer.provider, issuer.endpoint, issuer.account, issuer.model, reply.model or issuer.model),
        exchange.format.name,
        exchange.dialect.name,
    )
    return capture(request, reply, where, 1.0)


def index_of(records: Iterable[Record]) -> dict[Key, list[Record]]:
    index: dict[Key, list[Record]] = {}
    for record in records:
        for key in record.keys:
            index.setdefault(key, []).append(record)
    return index


def stripped(exchange: Exchange, request: Transcript) -> Transcript:
    """The request from a client that keeps no reasoning."""
    bodies = exchange.format.bodies
    bare = [
        turn.with_items(without_reasoning(turn.items)) if turn.role == "assistant" else turn for turn in request.turns
    ]
    body = bodies.encode_request(replace(request, turns=tuple(bare)), exchange.dialect)
    return bodies.decode_request(body, exchange.dialect)


def ids_of(records: Iterable[Record]) -> set[str]:
    """Ids are restored only if all partners still have theirs."""
    items = (item for record in records for item in record.items)
    return {item.id for item in items if isinstance(item, REASONING_KINDS) and item.id}


def assistant_items(request: Transcript) -> tuple[Item, ...]:
    """The model's items, except compactions: those are history, not reasoning."""
    items = (item for turn in request.turns if turn.role == "assistant" for item in turn.items)
    return tuple(item for item in items if not (isinstance(item, Unknown) and item.kind == "compaction"))


@pytest.mark.parametrize("recording", PAIRED, ids=name_of)
def test_what_was_captured_comes_back(recording: Recording) -> None:
    """Capture each response, strip all reasoning from the later request, plan: it is restored, equal and in its
    place."""
    if any(part in recording.id for part in CHANGED_TURNS):
        return
    exchanges = recording.exchanges
    for came, went in recording.pairs:
        earlier, later = exchanges[came], exchanges[went]
        if earlier.family in LEFT_OUT or later.family in LEFT_OUT or earlier.family != later.family:
            continue
        first, second = decode_request(earlier), decode_request(later)
        if first is None or second is None:
            continue
        records = captured(earlier, first)
        sent = facts(tuple(item for record in records for item in record.items))
        expected = sent & facts(assistant_items(second))
        if not expected:
            continue  # quoted inside other text: visible text by then, not reasoning
        contract = contract_of(later)
        if not may_restore(second, contract):
            continue  # a request that switches thinking off gets none back, though this client sent it
        lost = stripped(later, second)
        assert not facts(assistant_items(lost))
        needed = needs(lost, contract, WHO)
        planned = plan(lost, contract, needed, index_of(records), issuer_of(later))
        body = later.format.bodies.encode_request(planned.apply(lost), contract.dialect)
        again = later.format.bodies.decode_request(body, contract.dialect)
        assert expected - ids_of(records) <= facts(assistant_items(again)), (came, went)
        second_plan = plan(again, contract, needs(again, contract, WHO), index_of(records), issuer_of(later))
        assert second_plan.edits == ()
        refused = [one for one in check(Case(again, contract, issuer_of(later))) if one.status]
        assert not refused or recording.entry["sanitized"]  # placeholders are no whole seals


@pytest.mark.parametrize(
    "recording", [one for one in PAIRED if any(part in one.id for part in CHANGED_TURNS)], ids=name_of
)
def test_a_turn_that_was_changed_gets_nothing(recording: Recording) -> None:
    """A call or an answer that differs from the model's is another one: it gets nothing sealed."""
    exchanges = recording.exchanges
    came, went = recording.pairs[0]
    first, second = decode_request(exchanges[came]), decode_request(exchanges[went])
    assert first is not None
    assert second is not None
    lost = stripped(exchanges[went], second)
    contract = contract_of(exchanges[went])
    records = captured(exchanges[came], first)
    planned = plan(lost, contract, needs(lost, contract, WHO), index_of(records), issuer_of(exchanges[went]))
    assert planned.counts.restored == 0


def as_spoken(exchange: Exchange) -> Contract:
    """The contract as the gateway resolves it, in the recorded dialect if a recording shows one."""
    target = Destination(str(exchange.recorded["provider"]), "", model_of(exchange), exchange.format.name)
    contract = resolve(target)
    is_told = exchange.dialect is not exchange.format.dialect
    return replace(contract, dialect=exchange.dialect) if is_told else contract


def thoughts(request: Transcript) -> set[tuple[str, str]]:
    """All reasoning of a request, whatever its JSON and base64 alphabet."""
    items = [item for turn in request.turns for item in turn.items]
    seals = {("seal", plain_token(seal.data)) for item in items if (seal := seal_of(item)) is not None and seal.data}
    told = {("thought", thought) for item in items if (thought := "".join(thought_of((item,)).split()))}
    names = {("id", name) for item in items if isinstance(item, REASONING_KINDS) and (name := item.id)}
    return seals | told | names


class Kept(NamedTuple):
    """The result for one request that follows captured answers."""

    name: str
    is_changed: bool
    is_restored: bool


def follow_ups(recording: Recording) -> Iterator[Kept]:
    """Each request after the first, planned with everything captured before it."""
    records: list[Record] = []
    for number, exchange in enumerate(recording.exchanges):
        if exchange.family in LEFT_OUT or exchange.request is None:
            continue
        bodies = exchange.format.bodies
        contract = as_spoken(exchange)
        request = bodies.decode_request(exchange.request, contract.dialect)
        if records and any(turn.role == "assistant" for turn in request.turns):
            planned = plan(request, contract, needs(request, contract, WHO), index_of(records), issuer_of(exchange))
            body = bodies.encode_request(planned.apply(request), contract.dialect)
            after = bodies.decode_request(body, contract.dialect)
            is_restored = bool(thoughts(after) - thoughts(request))
            yield Kept(f"{recording.id} #{number}", body != exchange.request, is_restored)
        records += captured(exchange, request, contract.dialect)


@pytest.mark.parametrize("recording", SUPPORTED, ids=name_of)
def test_a_request_that_lost_nothing_is_sent_unchanged(recording: Recording) -> None:
    """Every request that follows captured answers and kept their reasoning is forwarded byte for byte."""
    changed = [one.name for one in follow_ups(recording) if one.is_changed and not one.is_restored]
    assert not changed or any(part in recording.id for part in PLANNED)


@pytest.mark.parametrize("part", PLANNED)
def test_a_listed_exception_is_one(part: str) -> None:
    """The list of requests that are changed without a loss has no unnecessary entry."""
    named = [recording for recording in SUPPORTED if part in recording.id]
    assert any(one.is_changed and not one.is_restored for recording in named for one in follow_ups(recording))


def audited(exchange: Exchange, records: Iterable[Record]) -> list[Finding]:
    """The refusals that the auditor predicts for a request, given the answers before it."""
    contract = as_spoken(exchange)
    assert exchange.request is not None
    request = exchange.format.bodies.decode_request(exchange.request, contract.dialect)
    known = known_steps(needs(request, contract, WHO), index_of(records))
    return [one for one in check(Case(request, contract, issuer_of(exchange), tuple(known))) if one.status]


@pytest.mark.parametrize("recording", SUPPORTED, ids=name_of)
def test_the_auditor_raises_no_false_alarm(recording: Recording) -> None:
    """No refusal is predicted for a request that its provider accepted."""
    records: list[Record] = []
    for exchange in recording.exchanges:
        if exchange.family in LEFT_OUT or exchange.request is None:
            continue
        if exchange.recorded["status"] < 400:
            assert audited(exchange, records) == []
            request = exchange.format.bodies.decode_request(exchange.request, as_spoken(exchange).dialect)
            records += captured(exchange, request, as_spoken(exchange).dialect)


NAMED = {
    "thinking-with-modified-history": "unpaired",
    "explicit-error-rejects-a-stale-thinking-block": "bound-prefix-changed",
    "forced-tool-choice-under-thinking": "setting",
    "functiontoolswithreasoningeffortparam-chat": "door",
    "text-encoded-thoughts-openai-responses": "setting",
    "xai--xai--req-llm--reasoning-basic": "setting",
}
"""Recorded refusals of reasoning and its settings, by a part of the recording's name, and the rule that predicts
each."""
OTHERS = (
    "multimodal-tool-return",  # files and addresses that can't be read
    "tool-use-failed-error",  # the model's own call was wrong
    "req-llm--tool-round-trip",  # a message in a role that the format does not have
)
"""Recorded refusals about something else."""


@pytest.mark.parametrize("part", NAMED)
def test_the_auditor_names_a_recorded_refusal(part: str) -> None:
    """The refused request has a finding with the status of the refusal."""
    named = [recording for recording in SUPPORTED if part in recording.id]
    assert named
    for recording in named:
        records: list[Record] = []
        for exchange in recording.exchanges:
            if exchange.recorded["status"] >= 400:
                assert (NAMED[part], 400) in [(one.rule, one.status) for one in audited(exchange, records)]
                continue
            assert exchange.request is not None
            dialect = as_spoken(exchange).dialect
            records += captured(exchange, exchange.format.bodies.decode_request(exchange.request, dialect), dialect)


def test_every_recorded_refusal_is_judged() -> None:
    """Each is predicted by a rule, or is about something else."""
    refused = [one.id for one in SUPPORTED if any(each.recorded["status"] >= 400 for each in one.exchanges)]
    assert [name for name in refused if not any(part in name for part in (*NAMED, *OTHERS))] == []
