"""Input that nobody should send: a named error with its place, never a traceback, never unbounded memory."""

from __future__ import annotations

import json
import struct
import tracemalloc
from binascii import crc32
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.descriptions import json_of
from tests.wire_cases import REQUESTS, RESPONSES, STREAMS, WireCase
from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.aws_event_stream import EventStream
from thoughtline.formats.framing import JsonArray, JsonLines, ServerSentEvents
from thoughtline.values.errors import DecodeError, Fault, LimitExceeded
from thoughtline.values.items import Item, Text, Unknown
from thoughtline.values.turns import FormatName

ROWS = list(FORMATS.values())


def by_name(row: Wire) -> str:
    return row.name


def read_body(row: Wire, body: bytes) -> None:
    """Read a body as request and as response: it comes back byte for byte, or is refused by name and place."""
    codec = row.bodies
    with refused_by_name(Fault.CLIENT):
        assert codec.encode_request(codec.decode_request(body, row.dialect), row.dialect) == body
    with refused_by_name(Fault.UPSTREAM):
        assert codec.encode_response(codec.decode_response(body, row.dialect), row.dialect) == body


@contextmanager
def refused_by_name(fault: Fault) -> Iterator[None]:
    """The only way to fail is a named error with a place."""
    try:
        yield
    except DecodeError as error:
        assert error.place
        assert error.fault is fault
        assert error.status in (400, 413, 502)


def read_stream(row: Wire, data: bytes) -> None:
    decoder = row.stream_decoder(row.dialect)
    with refused_by_name(Fault.UPSTREAM):
        decoder.feed(data)
        decoder.finish()


NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "truncated": b'{"messages":[{"role":"user","content":"h',
    "truncated escape": b'{"messages":[{"role":"user","content":"\\u12',
    "trailing": b'{"messages":[],"contents":[],"input":[]} x',
    "NUL": b'{"messages":[{"role":"user","content":"a\x00b"}]}',
    "only NUL": b"\x00" * 64,
    "invalid UTF-8": b'{"messages":[{"role":"user","content":"\xff\xfe"}],"input":"\xff","contents":[]}',
    "invalid UTF-8 in a system instruction": b'{"contents":[],"systemInstruction":"\xed\xa0\x80"}',
    "lone surrogate": b'{"messages":[{"role":"user","content":"\\ud800"}],"input":"\\ud800"}',
    "NaN": b'{"messages":NaN}',
    "a number": b"17",
    "an array": b"[1,2,3]",
    "a string": b'"messages"',
    "nested 200 deep": b'{"messages":' + b"[" * 200 + b"]" * 200 + b"}",
    "nested 100,000 deep": b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "unknown member nested 100,000 deep": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"messages":[]}',
}


@pytest.mark.parametrize("problem", NOT_JSON)
@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_bodies_that_are_none(row: Wire, problem: str) -> None:
    """Bytes that are no body of this format give a named error with its place."""
    read_body(row, NOT_JSON[problem])


@pytest.mark.parametrize("problem", ["truncated", "truncated escape", "trailing", "NUL", "NaN", "nothing"])
@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_what_is_no_json_names_the_byte(row: Wire, problem: str) -> None:
    """The place of bytes that are no JSON is a byte offset."""
    with pytest.raises(DecodeError) as wrong:
        row.bodies.decode_request(NOT_JSON[problem], row.dialect)
    assert wrong.value.place.startswith("byte ")


@pytest.mark.parametrize("problem", NOT_JSON)
@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_streams_that_are_none(row: Wire, problem: str) -> None:
    """The same bytes as a stream and as an event of a stream."""
    read_stream(row, NOT_JSON[problem])
    read_stream(row, b"data: " + NOT_JSON[problem] + b"\n\n")
    read_stream(row, NOT_JSON[problem] + b"\n")


def test_an_error_names_the_place_inside_the_body() -> None:
    """A wrong type deep inside is found by its JSON pointer."""
    bodies = FORMATS["openai_chat"].bodies
    body = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","reasoning_content":["no"]}]}'
    with pytest.raises(DecodeError) as wrong:
        bodies.decode_request(body, FORMATS["openai_chat"].dialect)
    assert wrong.value.place == "/messages/1/reasoning_content"


@pytest.mark.parametrize("member", ["text", "call_id", "name"])
def test_a_content_of_interactions_is_known_by_its_type(member: str) -> None:
    """A picture may have members of our names with values of other types: it passes as it is."""
    row = FORMATS["gemini_interactions"]
    body = json.dumps({"input": [{"type": "image", member: 5}]}).encode()
    transcript = row.bodies.decode_request(body, row.dialect)
    assert [item.kind for item in transcript.turns[0].items if isinstance(item, Unknown)] == ["image"]
    assert row.bodies.encode_request(transcript, row.dialect) == body
    edited = transcript.with_items(0, (Text("a"), *transcript.turns[0].items))
    written = json_of(row.bodies.encode_request(edited, row.dialect))
    assert written == {"input": [{"type": "text", "text": "a"}, {"type": "image", member: 5}]}


@pytest.mark.parametrize(
    ("items", "content"), [((Text("a"),), b'{"parts":[{"text":"a"}]}'), ((), b"null")], ids=["words", "nothing"]
)
@pytest.mark.parametrize("format", ["gemini_generate", "gemini_code_assist"])
def test_an_edit_of_a_candidate_whose_content_is_null(
    format: FormatName, items: tuple[Item, ...], content: bytes
) -> None:
    """It is written like one without a content; all else keeps its bytes."""
    row = FORMATS[format]
    before = b'{"candidates":[{"content":null,"finishReason":"SAFETY"}]}'
    body = b'{"response":' + before + b"}" if format == "gemini_code_assist" else before
    reply = row.bodies.decode_response(body, row.dialect)
    first = reply.candidates[0]
    edited = replace(reply, candidates=(replace(first, turn=first.turn.with_items(items)),))
    assert row.bodies.encode_response(edited, row.dialect) == body.replace(b"null", content)


WRONG: list[Any] = [0, -1.5, True, "text", [], [[]], {}, {"a": {}}, None, [None], 10**40]


def spoiled(value: Any) -> list[Any]:
    """Every value that differs from this one in one place, where something of another type stands."""
    others = [wrong for wrong in WRONG if type(wrong) is not type(value)]
    inner: list[Any] = []
    match value:
        case dict():
            inner = [{**value, key: bad} for key, child in value.items() for bad in spoiled(child)]
        case list():
            inner = [[*value[:at], bad, *value[at + 1 :]] for at, child in enumerate(value) for bad in spoiled(child)]
        case _:
            pass
    return others + inner


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.name)
def test_wrong_types_in_every_place_of_a_request(case: WireCase) -> None:
    """Whatever is replaced by something else: it is read, or refused by name."""
    for body in spoiled(json_of(case.bytes_of("request.json") or b"")):
        read_body(case.format, json.dumps(body).encode())


@pytest.mark.parametrize("case", RESPONSES, ids=lambda case: case.name)
def test_wrong_types_in_every_place_of_a_response(case: WireCase) -> None:
    """Likewise in a response."""
    for body in spoiled(json_of(case.bytes_of("response.json") or b"")):
        read_body(case.format, json.dumps(body).encode())


@pytest.mark.parametrize("case", [*REQUESTS, *RESPONSES], ids=lambda case: case.name)
def test_a_byte_that_is_no_utf8_in_every_string(case: WireCase) -> None:
    """In names as in values: it is read and comes back, or is refused by name."""
    body = case.bytes_of("request.json") or case.bytes_of("response.json") or b""
    for at in range(len(body)):
        if body[at : at + 1] == b'"':
            read_body(case.format, body[: at + 1] + b"\xff" + body[at + 1 :])


def _payloads(case: WireCase) -> list[bytes]:
    lines = (case.stream or b"").replace(b"\r", b"\n").split(b"\n")
    payloads = [line.removeprefix(b"data:").strip() for line in lines if line.startswith((b"data:", b"{"))]
    return [payload for payload in payloads if payload.startswith(b"{")]


@pytest.mark.parametrize("case", [case for case in STREAMS if _payloads(case)], ids=lambda case: case.name)
def test_wrong_types_in_every_place_of_a_stream(case: WireCase) -> None:
    """Likewise in each event of a stream, after the events before it."""
    start, end = (b"", b"\n") if case.format.name == "ollama_chat" else (b"data: ", b"\n\n")
    payloads = _payloads(case)
    for at, payload in enumerate(payloads[:40]):
        head = b"".join(start + before + end for before in payloads[:at])
        try:
            values = spoiled(json.loads(payload))
        except ValueError:
            continue  # a case may be about an event that is no JSON
        for value in values[:120]:
            read_stream(case.format, head + start + json.dumps(value).encode() + end)


@pytest.mark.parametrize("row", ROWS, ids=by_name)
@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300))
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_as_a_body(row: Wire, data: bytes) -> None:
    """Fuzz: only named errors."""
    read_body(row, data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        *("type", "role", "content", "text", "thinking", "signature", "reasoning_content", "reasoning_details"),
        *("tool_calls", "function", "arguments", "parts", "functionCall", "thoughtSignature", "thought", "candidates"),
        *("choices", "delta", "index", "finish_reason", "message", "output", "input", "summary", "encrypted_content"),
        *("item", "output_index", "response", "id", "providerMetadata", "contentBlockDelta", "reasoningContent"),
    ]
)
likely_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=5) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("row", ROWS, ids=by_name)
@settings(max_examples=200, deadline=None)
@given(
    value=st.fixed_dictionaries({}, optional=dict.fromkeys(("messages", "contents", "input", "choices"), likely_values))
    | likely_values
    | json_values
)
def test_any_json_as_a_body(row: Wire, value: Any) -> None:
    """Fuzz with names that we read: only named errors."""
    read_body(row, json.dumps(value).encode())


@pytest.mark.parametrize("row", ROWS, ids=by_name)
@settings(max_examples=200, deadline=None)
@given(values=st.lists(likely_values | json_values, max_size=4), noise=st.binary(max_size=20))
def test_any_events_in_a_stream(row: Wire, values: list[Any], noise: bytes) -> None:
    """Fuzz: events of any shape, with noise between them."""
    data = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" + noise for value in values)
    read_stream(row, data)
    read_stream(row, data.replace(b"data: ", b"").replace(b"\n\n", b"\n"))


@pytest.mark.parametrize("row", ROWS, ids=by_name)
@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_as_a_stream(row: Wire, data: bytes) -> None:
    """Fuzz: only named errors."""
    read_stream(row, data)


@pytest.mark.parametrize("framing", [ServerSentEvents, JsonLines, JsonArray])
def test_a_line_that_never_ends_is_refused_at_the_bound(framing: type[Any]) -> None:
    """64 MB without an end of the event: a named error at the bound, and memory no larger than that."""
    limit = 4 * 1024 * 1024
    decoder = framing(limit)
    piece = b"[{" + b"x" * 65_534
    tracemalloc.start()
    with pytest.raises(LimitExceeded):
        list(map(decoder.feed, [piece] * 1024))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * limit


def test_a_binary_message_that_never_ends_is_refused_at_its_head() -> None:
    """The length stands in the first bytes: a message beyond the bound is refused before it is taken in."""
    prelude = struct.pack(">II", 0x7FFFFFFF, 0)
    with pytest.raises(LimitExceeded):
        EventStream().feed(prelude + crc32(prelude).to_bytes(4, "big"))


@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_a_body_of_64_megabytes_in_one_line(row: Wire) -> None:
    """A huge body is read, or refused by name; memory stays a small multiple of it."""
    body = b'{"messages":[{"role":"user","content":"' + b"a" * (64 * 1024 * 1024) + b'"}],"contents":[],"input":[]}'
    tracemalloc.start()
    read_body(row, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(body)


@pytest.mark.parametrize("index", [-1, 128, 10**9])
def test_choice_indexes_are_bounded(index: int) -> None:
    """An index from outside never makes room for that many."""
    chat, gemini = FORMATS["openai_chat"], FORMATS["gemini_generate"]
    for row, name in ((chat, "choices"), (gemini, "candidates")):
        event = json.dumps({name: [{"index": index, "delta": {"content": "a"}, "content": {"parts": []}}]})
        decoder = row.stream_decoder(row.dialect)
        with pytest.raises(LimitExceeded):
            decoder.feed(b"data: " + event.encode() + b"\n\n") and decoder.finish()


def test_a_broken_event_does_not_swallow_the_ones_before_it() -> None:
    """What came before an error is given first; then the decoder stays failed."""
    row = FORMATS["openai_chat"]
    decoder = row.stream_decoder(row.dialect)
    good = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    assert len(decoder.feed(good + b"data: {broken\n\n" + good)) == 2
    for _ in range(2):
        with pytest.raises(DecodeError):
            decoder.feed(good)
