"""Laws 8 and 9 over real conversations: what was captured comes back in its place, then there is no more to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.formats.test_recordings import decode_reply, decode_request, facts
from tests.recordings import LEFT_OUT, SUPPORTED, Exchange, Recording, name_of, needs_recordings
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.detection import resolve
from thoughtline.replay.matching import thought_of
from thoughtline.replay.planner import may_restore, needs, plan
from thoughtline.replay.rules import Case, check
from thoughtline.replay.weaving import without_reasoning
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import REASONING_KINDS, Item, Unknown, plain_token, seal_of
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Provenance, Transcript
from thoughtline.watching import capture

pytestmark = needs_recordings
PAIRED = [recording for recording in SUPPORTED if recording.pairs]
WHO = Identity("tenant")
CHANGED_TURNS = {
    "native-zen-tool-loop": "the recorder blanked an argument of the call: another call, so no seal",
    "native-openai-oauth-tool-loop": "the recorder blanked an argument of the call: another call, so no seal",
    "thinking-with-modified-history": "the client rewrote the answer: no longer the turn that was captured",
}

REWRITTEN = {
    "fantasy--testazureresponsescommon-azure-o4-mini-tool-streaming": "nothing is stored: the ciphertext is asked for",
    "fantasy--testopenairesponsescommon-openai": "nothing is stored: the ciphertext is asked for",
    "thinking-with-modified-history": "the answer was rewritten: OpenAI refused the id of its reasoning, as recorded",
    "ruby-llm--chat-with-extended-thinking-gemini": "the client put the signature of the words on the thought",
    "ruby-llm--chat-with-extended-thinking-vertexai": "the client put the signature of the words on the thought",
    "ruby-llm--chat-with-schema-with-gemini": "the client put the signature of the words on a thought it made up",
    "ruby-llm--chat-with-schema-with-vertexai": "the client put the signature of the words on a thought it made up",
    "file-search-grounding-gemini-3-true": "the client joined the words and the signed part after them",
    "test-hf-model-thinking-part": "the client wrote a blank line into the thought",
    "prompt-caching-streaming-probe": "DeepSeek wants the field in every message beside tools, empty if need be",
}
"""Requests that lost no reasoning and are changed all the same, by a part of the recording's name, and why."""


def model_of(exchange: Exchange) -> str:
    request = exchange.recorded.get("request") or {}
    named = request.get("model") if isinstance(request, dict) else ""
    path = str(exchange.recorded.get("path", ""))
    return str(named or (path.split("/models/")[-1].split(":")[0] if "/models/" in path else ""))


def issuer_of(exchange: Exchange) -> Destination:
    return Destination(str(exchange.recorded["provider"]), "host", model_of(exchange), exchange.format.name, "account")


def contract_of(exchange: Exchange) -> Contract:
    """The contract of the provider, in the dialect that was recorded."""
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
    """The request as a client that keeps nothing sends it."""
    bodies = exchange.format.bodies
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


def as_spoken(exchange: Exchange) -> Contract:
    """The contract as the gateway resolves it, in the dialect that was recorded where a recording shows one."""
    target = Destination(str(exchange.recorded["provider"]), "", model_of(exchange), exchange.format.name)
    contract = resolve(target)
    is_told = exchange.dialect is not exchange.format.dialect
    return replace(contract, dialect=exchange.dialect) if is_told else contract


def thoughts(request: Transcript) -> set[tuple[str, str]]:
    """Everything of a request that is reasoning, however its JSON is cut and whichever alphabet spells a token."""
    items = [item for turn in request.turns for item in turn.items]
    seals = {("seal", plain_token(seal.data)) for item in items if (seal := seal_of(item)) is not None and seal.data}
    told = {("thought", thought) for item in items if (thought := "".join(thought_of((item,)).split()))}
    names = {("id", name) for item in items if isinstance(item, REASONING_KINDS) and (name := item.id)}
    return seals | told | names


class Kept(NamedTuple):
    """What became of one request that follows captured answers."""

    name: str
    is_changed: bool
    is_restored: bool


def follow_ups(recording: Recording) -> Iterator[Kept]:
    """Each request after the first, planned with all that was captured before it."""
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
def test_a_request_that_lost_nothing_goes_up_as_it_came(recording: Recording) -> None:
    """Every request that follows captured answers and kept their reasoning is forwarded byte for byte."""
    changed = [one.name for one in follow_ups(recording) if one.is_changed and not one.is_restored]
    assert not changed or any(part in recording.id for part in REWRITTEN)


@pytest.mark.parametrize("part", REWRITTEN)
def test_a_listed_exception_is_one(part: str) -> None:
    """The list of requests that are changed without a loss has no name that it could do without."""
    named = [recording for recording in SUPPORTED if part in recording.id]
    assert any(one.is_changed and not one.is_restored for recording in named for one in follow_ups(recording))
