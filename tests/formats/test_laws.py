"""The laws that every format keeps, over every hand-made case."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tests.descriptions import describe_reply, json_of
from tests.wire_cases import REQUESTS, RESPONSES, STREAMS, WireCase, name_of
from thoughtline.formats import FORMATS, BodyCodec, Wire
from thoughtline.formats.json_text import span_at
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import Event, fold
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningFormat, ReasoningText, Seal, Text, ToolCall
from thoughtline.values.turns import Candidate, Finish, Reply, Transcript, Turn

requests = pytest.mark.parametrize("case", REQUESTS, ids=name_of)
responses = pytest.mark.parametrize("case", RESPONSES, ids=name_of)
streams = pytest.mark.parametrize("case", STREAMS, ids=name_of)

LIST_MEMBER = {
    "openai_responses": "input",
    "gemini_generate": "contents",
    "gemini_code_assist": "contents",
    "gemini_interactions": "input",
}
INSIDE = {"gemini_code_assist": "request", "command_code_generate": "params"}


def bodies_of(case: WireCase) -> BodyCodec:
    return case.format.bodies


def request_of(case: WireCase) -> tuple[bytes, Transcript]:
    body = case.bytes_of("request.json") or b""
    return body, bodies_of(case).decode_request(body, case.dialect)


def reply_of(case: WireCase) -> tuple[bytes, Reply]:
    body = case.bytes_of("response.json") or b""
    return body, bodies_of(case).decode_response(body, case.dialect)


def list_path(case: WireCase, body: bytes) -> tuple[str, ...]:
    """The position of the conversation in a body."""
    member, outer = LIST_MEMBER.get(case.format.name, "messages"), INSIDE.get(case.format.name, "")
    return (outer, member) if outer in json_of(body) else (member,)


def value_at(body: bytes, path: tuple[str, ...]) -> Any:
    value: Any = json_of(body)
    for step in path:
        value = value.get(step)
    return value


def touched(transcript: Transcript) -> Transcript:
    """Every turn encoded again from its own items."""
    return replace(transcript, turns=tuple(turn.with_items(turn.items) for turn in transcript.turns))


def touched_reply(reply: Reply) -> Reply:
    for position, candidate in enumerate(reply.candidates):
        reply = reply.with_items(position, candidate.turn.items)
    return reply


def events_of(case: WireCase, *pieces: bytes) -> list[Event]:
    decoder = case.format.stream_decoder(case.dialect)
    return [*(event for piece in pieces for event in decoder.feed(piece)), *decoder.finish()]


def ordered(body: bytes) -> str:
    """A JSON value with the order of its keys."""
    return json.dumps(json.loads(body, parse_float=str, parse_int=str))


# --- laws 1 and 2 ----------------------------------------------------------------------------------------------------


@requests
def test_unedited_request_keeps_its_bytes(case: WireCase) -> None:
    """Nothing edited: the client's own bytes."""
    body, transcript = request_of(case)
    assert bodies_of(case).encode_request(transcript, case.dialect) == body


@requests
def test_an_encoded_request_is_the_same_value(case: WireCase) -> None:
    """Encoding every turn from its items gives the same JSON value with its keys in the same order."""
    body, transcript = request_of(case)
    assert ordered(bodies_of(case).encode_request(touched(transcript), case.dialect)) == ordered(body)


@responses
def test_unedited_response_keeps_its_bytes(case: WireCase) -> None:
    """Nothing edited: the provider's own bytes."""
    body, reply = reply_of(case)
    assert bodies_of(case).encode_response(reply, case.dialect) == body


@responses
def test_an_encoded_response_is_the_same_value(case: WireCase) -> None:
    """Encoding every candidate from its items gives the same JSON value with its keys in the same order."""
    body, reply = reply_of(case)
    assert ordered(bodies_of(case).encode_response(touched_reply(reply), case.dialect)) == ordered(body)


@responses
def test_response_made_from_nothing_says_the_same(case: WireCase) -> None:
    """A body made from typed items alone decodes to the same items."""
    _, reply = reply_of(case)
    if reply.error is not None or len(reply.candidates) == 0:
        return
    fresh = bodies_of(case).encode_response(replace(reply, body=b""), case.dialect)
    again = bodies_of(case).decode_response(fresh, case.dialect)
    assert _said(again) == _said(reply)


# --- law 3 -----------------------------------------------------------------------------------------------------------


@requests
def test_an_edit_changes_its_turn_and_nothing_else(case: WireCase) -> None:
    """Text added to one assistant turn: every byte before and after that turn stays."""
    body, transcript = request_of(case)
    for position, turn in enumerate(transcript.turns):
        if turn.role != "assistant" or turn.at < 0:
            continue
        edited = transcript.with_items(position, (*turn.items, Text("added by the test")))
        encoded = bodies_of(case).encode_request(edited, case.dialect)
        path = list_path(case, body)
        first, last = span_at(body, (*path, turn.at)), span_at(body, (*path, turn.at + turn.spans - 1))
        assert first is not None
        assert last is not None
        assert encoded.startswith(body[: first[0]])
        assert encoded.endswith(body[last[1] :])
        assert b"added by the test" in encoded[first[0] :]


@requests
def test_a_turn_taken_out_leaves_the_others(case: WireCase) -> None:
    """Without one of its turns the request has all the other elements, each with its own bytes."""
    body, transcript = request_of(case)
    path = list_path(case, body)
    for position, turn in enumerate(transcript.turns):
        if turn.at < 0 or not isinstance(value_at(body, path), list):
            continue
        rest = transcript.with_turns(transcript.turns[:position] + transcript.turns[position + 1 :])
        encoded = bodies_of(case).encode_request(rest, case.dialect)
        before, after = value_at(body, path), value_at(encoded, path)
        assert after == before[: turn.at] + before[turn.at + turn.spans :]


# --- law 4 -----------------------------------------------------------------------------------------------------------


@streams
def test_a_stream_cut_in_two_gives_the_same_events(case: WireCase) -> None:
    """Whichever byte it is cut at."""
    data = case.stream or b""
    whole = events_of(case, data)
    step = max(1, len(data) // 400)
    for position in range(0, len(data) + 1, step):
        assert events_of(case, data[:position], data[position:]) == whole


@streams
def test_a_stream_byte_by_byte_gives_the_same_events(case: WireCase) -> None:
    """The worst case of cutting."""
    data = case.stream or b""
    assert events_of(case, *(data[at : at + 1] for at in range(len(data)))) == events_of(case, data)


@settings(max_examples=150, deadline=None)
@given(case=st.sampled_from(STREAMS), cuts=st.lists(st.integers(0, 4000), max_size=12))
def test_a_stream_cut_anywhere_gives_the_same_events(case: WireCase, cuts: list[int]) -> None:
    """Cut in as many places as there are."""
    data = case.stream or b""
    marks = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(marks)]
    assert events_of(case, *pieces) == events_of(case, data)


# --- law 5 -----------------------------------------------------------------------------------------------------------

BOTH = [case for case in STREAMS if case.bytes_of("response.json") is not None]


@pytest.mark.parametrize("case", BOTH, ids=name_of)
def test_folding_a_stream_gives_the_turn_of_the_whole_response(case: WireCase) -> None:
    """The same answer, once in pieces and once whole."""
    _, reply = reply_of(case)
    folded = fold(events_of(case, case.stream or b""), case.format.name)
    assert describe_reply(folded) == describe_reply(reply)


@streams
def test_an_encoded_stream_has_the_same_content(case: WireCase) -> None:
    """What a stream encoder writes of a stream's events folds to the same items."""
    events = events_of(case, case.stream or b"")
    encoder = case.format.stream_encoder(case.dialect)
    try:
        written = b"".join(map(encoder.encode, events)) + encoder.finish()
    except EncodeError:
        assert case.expected.get("unwritable"), "an encoder may only refuse what the case says it refuses"
        return
    if case.expected.get("unwritable"):
        return  # written, but in the order in which its deltas came
    decoder = case.format.stream_decoder(case.dialect)
    again = fold([*decoder.feed(written), *decoder.finish()], case.format.name)
    first = fold(events, case.format.name)
    if first.candidates and all(candidate.finish for candidate in first.candidates):
        assert _said(again) == _said(first)


def _said(reply: Reply) -> list[Any]:
    """The content, without the ids, indexes and unknown parts that an encoder generates or has no place for."""
    said = []
    for candidate in describe_reply(reply):
        items = []
        for item in candidate["items"]:
            ((kind, fields),) = item.items()
            if kind != "Unknown":
                made_up = ("item_id", "index") if kind == "ToolCall" else ("id", "item_id", "index")
                items.append((kind, {key: value for key, value in fields.items() if key not in made_up}))
        # few formats have a word for an end that is none of the usual ones
        finish = "stop" if candidate["finish"] == "other" else candidate["finish"]
        said.append((candidate["index"], items, finish))
    return said


# --- law 6 -----------------------------------------------------------------------------------------------------------

STRANGER = {"x_stranger": {"z": [1, {"deep": None}], "a": "é"}}


def with_strangers(value: Any, depth: int = 0) -> Any:
    """The same value with an unknown member in every object except tool arguments and results."""
    match value:
        case dict() if depth < 6:
            skip = ("arguments", "input", "args", "response", "parameters", "output", "json")
            grown = {
                key: inner if key in skip and depth > 1 else with_strangers(inner, depth + 1)
                for key, inner in value.items()
            }
            return {**grown, **STRANGER}
        case list():
            return [with_strangers(inner, depth + 1) for inner in value]
        case _:
            return value


@requests
def test_strangers_in_a_request_survive(case: WireCase) -> None:
    """Unknown members are still there after every turn has been encoded again."""
    body, _ = request_of(case)
    strange = json.dumps(with_strangers(json_of(body)), ensure_ascii=False).encode()
    codec = bodies_of(case)
    transcript = codec.decode_request(strange, case.dialect)
    assert codec.encode_request(transcript, case.dialect) == strange
    assert ordered(codec.encode_request(touched(transcript), case.dialect)) == ordered(strange)


@responses
def test_strangers_in_a_response_survive(case: WireCase) -> None:
    """Likewise in a response."""
    body, _ = reply_of(case)
    strange = json.dumps(with_strangers(json_of(body)), ensure_ascii=False).encode()
    codec = bodies_of(case)
    reply = codec.decode_response(strange, case.dialect)
    assert ordered(codec.encode_response(touched_reply(reply), case.dialect)) == ordered(strange)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(case=st.sampled_from(REQUESTS), key=st.text('xyz-_"\\é', min_size=2, max_size=8), value=json_values)
def test_any_stranger_survives_an_edit_elsewhere(case: WireCase, key: str, value: Any) -> None:
    """Whatever an unknown member holds and however its key is spelled, editing a turn does not touch it."""
    body = json_of(case.bytes_of("request.json") or b"")
    strange = {f"x_{key}": value, **body, f"y_{key}": value}
    codec = bodies_of(case)
    transcript = codec.decode_request(json.dumps(strange).encode(), case.dialect)
    assert json_of(codec.encode_request(touched(transcript), case.dialect)) == strange


# --- law 10 ----------------------------------------------------------------------------------------------------------

TOKEN = "c2VhbGVkLWVsc2V3aGVyZQ=="
ELSEWHERE = ReasoningFormat("made-elsewhere-v1")
SEALED: dict[str, Item] = {
    "signed text": ReasoningText("a thought", TOKEN, ELSEWHERE),
    "ciphertext": ReasoningEncrypted(TOKEN, ELSEWHERE),
    "seal on a call": ToolCall("look", "{}", "call_1", seal=Seal(TOKEN, ELSEWHERE)),
    "seal on text": Text("hello", Seal(TOKEN, ELSEWHERE)),
}
WITH_BODIES = list(FORMATS.values())


@pytest.mark.parametrize("kind", SEALED)
@pytest.mark.parametrize("row", WITH_BODIES, ids=lambda row: row.name)
def test_a_seal_of_one_provider_is_not_written_for_another(row: Wire, kind: str) -> None:
    """An encoder refuses a seal that its dialect's provider did not make; the token never reaches the wire."""
    turns = (Turn("user", (Text("hi"),)), Turn("assistant", (SEALED[kind],)))
    empty = Transcript(row.name, ()).with_turns(turns)
    with pytest.raises(EncodeError) as refused:
        row.bodies.encode_request(empty, row.dialect)
    assert TOKEN not in str(refused.value)
    reply = Reply(row.name, (Candidate(turns[1], 0, Finish("stop", "stop")),))
    with pytest.raises(EncodeError):
        row.bodies.encode_response(reply, row.dialect)


@pytest.mark.parametrize("kind", SEALED)
@pytest.mark.parametrize("row", WITH_BODIES, ids=lambda row: row.name)
def test_a_foreign_item_with_json_of_another_wire_is_not_passed_on(row: Wire, kind: str) -> None:
    """The raw JSON an item carries is used only on the wire it came from."""
    raw = Raw(json.dumps({"type": "elsewhere", "opaque": TOKEN}).encode())
    empty = Transcript(row.name, ()).with_turns((Turn("assistant", (replace(SEALED[kind], raw=raw),)),))
    with pytest.raises(EncodeError):
        row.bodies.encode_request(empty, row.dialect)
