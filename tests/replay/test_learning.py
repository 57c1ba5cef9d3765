"""A refusal changes the contract of exactly that target, for a limited time."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract
from thoughtline.replay.detection import resolve
from thoughtline.replay.learning import corrected
from thoughtline.replay.planner import needs, plan
from thoughtline.replay.refusals import Correction, classify, learn
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity

HOST = Destination("house", "https://llm.house", "house-1", "openai_chat")
DEEPSEEK = b'{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.",' + (
    b'"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}'
)
GROQ = (
    b"{\"error\":{\"message\":\"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : "
    b'property \'reasoning_content\' is unsupported)]","type":"invalid_request_error"}}'
)
LOST = {
    "tools": [{}],
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "go"},
    ],
}


def lesson(body: bytes, sent_filler: str | None = None, target: Destination = HOST) -> Correction:
    refusal = classify(400, body)
    assert refusal is not None
    found = learn(refusal, target.provider, target.endpoint, target.model, 10.0, 100.0, sent_filler)
    assert found is not None
    return found


def planned(contract: Contract) -> tuple[str | None, Contract]:
    """The reasoning that is sent for an unknown turn."""
    row = FORMATS["openai_chat"]
    request = row.bodies.decode_request(json.dumps(LOST).encode(), contract.dialect)
    issuer = Destination("house", "", "house-1", "openai_chat")
    found = plan(request, contract, needs(request, contract, Identity("t")), {}, issuer)
    body = json.loads(row.bodies.encode_request(found.apply(request), contract.dialect))
    return body["messages"][1].get(contract.dialect.carrier), contract


def test_an_unknown_strict_provider_is_known_after_one_refusal() -> None:
    """First nothing is invented; after the refusal the field is sent."""
    believed = resolve(HOST)
    assert planned(believed)[0] is None
    learned = corrected(believed, [lesson(DEEPSEEK)], HOST, 20.0)
    assert (learned.kind, learned.scope) == ("presence", "all_with_tools")
    assert planned(learned)[0] == " "


def test_a_refused_filler_gives_way_to_the_next() -> None:
    """The smallest accepted filler is found step by step; after the last there is none."""
    contract = corrected(resolve(HOST), [lesson(DEEPSEEK)], HOST, 20.0)
    assert corrected(contract, [lesson(DEEPSEEK, "")], HOST, 20.0).filler == " "
    more = corrected(contract, [lesson(DEEPSEEK, " ")], HOST, 20.0)
    assert more.filler == "."
    assert "blank" not in corrected(more, [lesson(DEEPSEEK, ".")], HOST, 20.0).ladder


def test_a_refused_field_is_written_elsewhere_and_then_not_at_all() -> None:
    """`reasoning_content` refused: the other name is tried; refused again, nothing is sent."""
    once = corrected(resolve(HOST), [lesson(GROQ)], HOST, 20.0)
    assert once.dialect.carrier == "reasoning"
    assert corrected(once, [lesson(GROQ)], HOST, 20.0) == once
    assert corrected(once, [lesson(GROQ.replace(b"reasoning_content", b"reasoning"))], HOST, 20.0).takes == "nothing"


@pytest.mark.parametrize("now", [5.0, 110.0, 500.0])
def test_a_lesson_holds_for_its_time_only(now: float) -> None:
    """Neither before it was learned nor after it expired."""
    assert corrected(resolve(HOST), [lesson(DEEPSEEK)], HOST, now) == resolve(HOST)


@pytest.mark.parametrize(
    "other", [replace(HOST, model="house-2"), replace(HOST, endpoint="https://b"), replace(HOST, provider="c")]
)
def test_a_lesson_is_about_its_target_only(other: Destination) -> None:
    """Another model, address or provider is not affected."""
    assert corrected(resolve(other), [lesson(DEEPSEEK)], other, 20.0) == resolve(other)
