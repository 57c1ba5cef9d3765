"""Real exchanges of real providers: all of them can be read, named item by item, and written back."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tests.descriptions import describe_reply, json_of, token
from tests.recordings import LEFT_OUT, SUPPORTED, Exchange, Recording, name_of, needs_recordings
from thoughtline.formats.openai_responses.bodies import decode_response
from thoughtline.providers import Dialect
from thoughtline.values.events import fold
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
    seal_of,
)
from thoughtline.values.turns import Reply, Transcript

pytestmark = needs_recordings
recordings = pytest.mark.parametrize("recording", SUPPORTED, ids=name_of)


def decode_request(exchange: Exchange) -> Transcript | None:
    if exchange.request is None:
        return None
    return exchange.format.bodies.decode_request(exchange.request, exchange.dialect)


def decode_reply(exchange: Exchange, dialect: Dialect | None = None) -> Reply | None:
    """The response, whole or streamed."""
    dialect = dialect or exchange.dialect
    if exchange.stream is not None:
        decoder = exchange.format.stream_decoder(dialect)
        return fold([*decoder.feed(exchange.stream), *decoder.finish()], exchange.format.name)
    if exchange.response is not None:
        return exchange.format.bodies.decode_response(exchange.response, dialect)
    return None


def answer_items(exchange: Exchange) -> tuple[Item, ...]:
    reply = decode_reply(exchange)
    return tuple(item for candidate in reply.candidates for item in candidate.turn.items) if reply else ()


def request_items(exchange: Exchange) -> tuple[Item, ...]:
    transcript = decode_request(exchange)
    return tuple(item for turn in transcript.turns for item in turn.items) if transcript else ()


def supported(recording: Recording) -> list[Exchange]:
    return [exchange for exchange in recording.exchanges if exchange.family not in LEFT_OUT]


@recordings
def test_requests_come_back_as_they_were(recording: Recording) -> None:
    """Unedited: the same bytes. Every turn encoded again from its items: the same JSON value, keys in
    the same order.
    """
    for exchange in supported(recording):
        transcript = decode_request(exchange)
        if transcript is None:
            continue
        encode = exchange.format.bodies.encode_request
        assert encode(transcript, exchange.dialect) == exchange.request
        touched = replace(transcript, turns=tuple(turn.with_items(turn.items) for turn in transcript.turns))
        assert json.dumps(json_of(encode(touched, exchange.dialect))) == json.dumps(json_of(exchange.request or b""))


@recordings
def test_responses_can_be_read(recording: Recording) -> None:
    """Every whole and streamed response decodes; one that succeeded has an answer that ended."""
    for exchange in supported(recording):
        reply = decode_reply(exchange)
        if reply is None:
            continue
        if exchange.recorded["status"] == 200 and reply.error is None:
            assert reply.candidates
            assert all(candidate.finish is not None for candidate in reply.candidates) or _is_cut(exchange)
        else:
            assert reply.error is not None


def _is_cut(exchange: Exchange) -> bool:
    """Streams that were recorded without their end."""
    return exchange.stream is not None and b"finish" not in exchange.stream and b"stop_reason" not in exchange.stream


@recordings
def test_whole_responses_come_back_as_they_were(recording: Recording) -> None:
    """A response encoded again from its items is the same JSON value."""
    for exchange in supported(recording):
        bodies = exchange.format.bodies
        if exchange.response is None:
            continue
        reply = bodies.decode_response(exchange.response, exchange.dialect)
        assert bodies.encode_response(reply, exchange.dialect) == exchange.response
        for position, candidate in enumerate(reply.candidates):
            reply = reply.with_items(position, candidate.turn.items)
        assert json_of(bodies.encode_response(reply, exchange.dialect)) == json_of(exchange.response)


@recordings
def test_every_kind_of_reasoning_is_found(recording: Recording) -> None:
    """What the index says is in the responses is in the typed items."""
    found = {kind for exchange in supported(recording) for item in answer_items(exchange) for kind in kinds(item)}
    assert set(recording.entry["reasoning_kinds"]) <= found


def kinds(item: Item) -> set[str]:
    """The names the index has for what an item is or carries."""
    match item:
        case ReasoningText():
            named = {"thinking" if item.text else "thinking(empty)", "thinking_chunk", "thought", "reasoningText"}
            named |= {"reasoning", "reasoning_content", "reasoning_text", "inline_think_tag"} if item.text else set()
            named |= {"reasoning_details:reasoning.text.text"} if item.raw else set()
            named |= {"interaction.thought(empty)"}  # even if a summary came in pieces as well
            if item.signature:
                named |= {"interaction.thought.signature"}
                named |= {"signature", "reasoningText.signature", "reasoning_details:reasoning.text.signature"}
            return named | ({"reasoning.id"} if item.id else set())
        case ReasoningSummary():
            named = {"summary", "reasoning", "reasoning_details:reasoning.summary.text"} if item.summary else set()
            return named | ({"reasoning.id"} if item.id else set())
        case ReasoningEncrypted():
            named = {"redacted_thinking", "redactedContent", "encrypted_content"}
            named |= {"reasoning_details:reasoning.encrypted.data"}
            if item.format == GOOGLE_GEMINI_V1 and not item.raw:
                named.add("message.extra_content.google.thought_signature")
            return named | ({"reasoning.id"} if item.id else set())
        case ToolCall() if item.seal:
            return {"thoughtSignature@functionCall"}
        case Text() if item.seal:
            return {"thoughtSignature@text" if item.text else "thoughtSignature@empty-text"}
        case Unknown() if item.seal:
            return {f"thoughtSignature@other:{item.kind}", f"{item.kind}.encrypted_content"}
        case _:
            return set()


SEVERAL_RESPONSES_IN_ONE_STREAM = (
    "openai--ai--openai-reasoning-encrypted-content",
    "azure--ai--azure-reasoning-encrypted-content",
)
NEW_IDS_IN_EVERY_EVENT = (
    "copilot--rig--reasoning-roundtrip-streaming",
    "test-openai-responses-raw-cot-stream-openrouter",
)


@recordings
def test_streams_agree_with_the_whole_they_end_in(recording: Recording) -> None:
    """A Responses stream ends with the whole response: folding the events before it gives the same turn."""
    if any(part in recording.id for part in SEVERAL_RESPONSES_IN_ONE_STREAM):
        return  # the steps of an agent, stored one after the other: no stream of a provider's
    masked = _but_for_ids if any(part in recording.id for part in NEW_IDS_IN_EVERY_EVENT) else _but_for_ciphertext
    for exchange in supported(recording):
        if exchange.format.name != "openai_responses" or exchange.stream is None:
            continue
        whole = [line for line in exchange.stream.split(b"\n") if b'"response.completed"' in line and b"data:" in line]
        for line in whole:
            response = json_of(line.removeprefix(b"data:").strip())["response"]
            reply = decode_response(json.dumps(response).encode(), exchange.dialect)
            folded = decode_reply(exchange)
            assert folded is not None
            if reply.candidates[0].turn.items:  # some hosts leave the output out of the last event
                assert masked(folded) == masked(reply)


def _but_for_ciphertext(reply: Reply) -> list[dict[str, object]]:
    """OpenAI encrypts again for the last event: two ciphertexts of one thought, both valid."""
    items = reply.candidates[0].turn.items
    masked = tuple(replace(item, data="…") if isinstance(item, ReasoningEncrypted) else item for item in items)
    return describe_reply(reply.with_items(0, masked))


def _but_for_ids(reply: Reply) -> list[dict[str, object]]:
    items = reply.candidates[0].turn.items
    return _but_for_ciphertext(reply.with_items(0, tuple(_without_id(item) for item in items)))


def _without_id(item: Item) -> Item:
    return replace(item, id=None) if isinstance(item, (Text, *REASONING_KINDS)) else item


@recordings
def test_replayed_reasoning_is_the_reasoning_that_came(recording: Recording) -> None:
    """Where a client sent reasoning back, what we read in its request is what we read in the response."""
    exchanges = recording.exchanges
    for came, went in recording.pairs:
        if exchanges[came].family in LEFT_OUT or exchanges[went].family in LEFT_OUT:
            continue
        sent = facts(answer_items(exchanges[came]))
        again = request_items(exchanges[went])
        back = facts(again) | referred_ids(again)
        is_in_text = any("~sub" in kind for kind in recording.entry["replay_kinds"])
        assert sent & back or is_in_text  # quoted inside other text it is visible text by then, not reasoning


def referred_ids(items: tuple[Item, ...]) -> set[str]:
    """A client of stored responses may send `item_reference`, the id alone, in place of the reasoning."""
    references = (item for item in items if isinstance(item, Unknown) and item.kind == "item_reference")
    return {str(json_of(bytes(item.raw))["id"]) for item in references}


def facts(items: tuple[Item, ...]) -> set[str]:
    """Texts, tokens and ids, each by itself and the texts joined: clients drop some, split some, keep others."""
    texts = [text for item in items if (text := readable(item))]
    found = {text.strip() for text in texts} | {"".join(texts).strip()}
    found |= {token(seal.data) for item in items if (seal := seal_of(item)) is not None}
    return (found | {item.id for item in items if isinstance(item, REASONING_KINDS) and item.id}) - {""}


def readable(item: Item) -> str:
    match item:
        case ReasoningText():
            return item.text
        case ReasoningSummary():
            return item.summary
        case _:
            return ""
