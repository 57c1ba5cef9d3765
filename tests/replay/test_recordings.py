"""Laws 8 and 9 over real conversations: what was captured comes back in its place, then there is no more to do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from tests.formats.test_recordings import decode_reply, decode_request, facts
from tests.recordings import LEFT_OUT, SUPPORTED, Exchange, Recording, name_of, needs_recordings
from thoughtline.items import REASONING_KINDS, Item, Unknown
from thoughtline.records import Key, Record
from thoughtline.replay.capture import capture
from thoughtline.replay.contracts import Contract
from thoughtline.replay.detection import Target, resolve
from thoughtline.replay.keys import Identity
from thoughtline.replay.planner import Issuer, may_restore, needs, plan
from thoughtline.replay.rules import Case, check
from thoughtline.replay.weaving import without_reasoning
from thoughtline.turns import Provenance, Transcript

pytestmark = needs_recordings
PAIRED = [recording for recording in SUPPORTED if recording.pairs]
WHO = Identity("tenant")
CHANGED_TURNS = {
    "native-zen-tool-loop": "the recorder blanked an argument of the call: another call, so no seal",
    "native-openai-oauth-tool-loop": "the recorder blanked an argument of the call: another call, so no seal",
    "thinking-with-modified-history": "the client rewrote the answer: no longer the turn that was captured",
}


def model_of(exchange: Exchange) -> str:
    request = exchange.recorded.get("request") or {}
    named = request.get("model") if isinstance(request, dict) else ""
    path = str(exchange.recorded.get("path", ""))
    return str(named or (path.split("/models/")[-1].split(":")[0] if "/models/" in path else ""))


def issuer_of(exchange: Exchange) -> Issuer:
    return Issuer(str(exchange.recorded["provider"]), "host", "account", model_of(exchange))


def contract_of(exchange: Exchange) -> Contract:
    """The contract of the provider, in the dialect that was recorded."""
    target = Target(str(exchange.recorded["provider"]), "", model_of(exchange), exchange.format.name)
    return replace(resolve(target), dialect=exchange.dialect)


def captured(exchange: Exchange, request: Transcript) -> tuple[Record, ...]:
    reply = decode_reply(exchange)
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
    """The request as a client that keeps nothing sends it."""
    bodies = exchange.format.bodies
    assert bodies is not None
    bare = [
        turn.with_items(without_reasoning(turn.items)) if turn.role == "assistant" else turn for turn in request.turns
    ]
    body = bodies.encode_request(replace(request, turns=tuple(bare)), exchange.dialect)
    return bodies.decode_request(body, exchange.dialect)


def ids_of(records: Iterable[Record]) -> set[str]:
    """Ids come back only where all partners still have theirs."""
    items = (item for record in records for item in record.items)
    return {item.id for item in items if isinstance(item, REASONING_KINDS) and item.id}


def assistant_items(request: Transcript) -> tuple[Item, ...]:
    """What the model said, but for compactions: those are history, not reasoning."""
    items = (item for turn in request.turns if turn.role == "assistant" for item in turn.items)
    return tuple(item for item in items if not (isinstance(item, Unknown) and item.kind == "compaction"))


@pytest.mark.parametrize("recording", PAIRED, ids=name_of)
def test_what_was_captured_comes_back(recording: Recording) -> None:
    """Capture each response, strip all reasoning from the later request, plan: it is back, equal and in its place."""
    if any(part in recording.id for part in CHANGED_TURNS):
        return
    exchanges = recording.exchanges
    for came, went in recording.pairs:
        earlier, later = exchanges[came], exchanges[went]
        if earlier.family in LEFT_OUT or later.family in LEFT_OUT or earlier.family != later.family:
            continue
        first, second = decode_request(earlier), decode_request(later)
        if first is None or second is None or later.format.bodies is None:
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
    """A call or an answer that is not what the model gave is another one: nothing sealed is put on it."""
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
