"""Framing: which payloads a stream of bytes has, and that no cut, line end or comment changes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thoughtline.formats.framing import (
    EventsOrArray,
    Frame,
    Framing,
    JsonArray,
    JsonLines,
    ServerSentEvents,
    one_line,
    sse,
)
from thoughtline.values.errors import LimitExceeded

BOM = b"\xef\xbb\xbf"


def frames_of(framing: Framing, *pieces: bytes) -> list[Frame]:
    return [frame for piece in pieces for frame in framing.feed(piece)] + framing.finish()


def payloads_of(framing: Framing, *pieces: bytes) -> list[bytes]:
    """What the frames say. One behind the other they are the bytes that came."""
    frames = frames_of(framing, *pieces)
    assert b"".join(frame.raw for frame in frames) + framing.rest() == b"".join(pieces)
    return said(frames)


def said(frames: list[Frame]) -> list[bytes]:
    return [frame.payload for frame in frames if frame.payload]


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """The same bytes in pieces."""
    marks = sorted({min(mark, len(data)) for mark in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(marks)]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


cut_places = st.lists(st.integers(0, 200), max_size=10)

# --- server-sent events ----------------------------------------------------------------------------------------------

EVENTS: dict[str, tuple[bytes, list[bytes]]] = {
    "one event": (b"data: {}\n\n", [b"{}"]),
    "two events": (b"data: 1\n\ndata: 2\n\n", [b"1", b"2"]),
    "CRLF": (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"]),
    "CR": (b"data: 1\r\rdata: 2\r\r", [b"1", b"2"]),
    "line ends of all kinds": (b"data: 1\r\n\ndata: 2\n\rdata: 3\r\r\ndata: 4\n\r\n", [b"1", b"2", b"3", b"4"]),
    "CR inside an event": (b"event: x\rdata: 1\rdata: 2\r\r", [b"1\n2"]),
    "CR between the lines of an event": (b"data: 1\rdata: 2\n\n", [b"1\n2"]),
    "no space after the colon": (b"data:1\n\ndata:{}\n\n", [b"1", b"{}"]),
    "only the first space goes": (b"data:  1 \n\n", [b" 1 "]),
    "a tab stays": (b"data:\t1\n\n", [b"\t1"]),
    "several data lines": (b"data: 1\ndata: 2\ndata:3\n\n", [b"1\n2\n3"]),
    "data lines apart": (b"data: 1\nid: 7\ndata: 2\n\n", [b"1\n2"]),
    "an empty data line among others": (b"data: 1\ndata:\ndata: 2\n\n", [b"1\n\n2"]),
    "event and id lines": (b"event: ping\nid: 7\nretry: 3\ndata: 1\n\n", [b"1"]),
    "event line after the data": (b"data: 1\nevent: ping\n\n", [b"1"]),
    "event without data": (b"event: ping\n\ndata: 1\n\n", [b"1"]),
    "comments": (b": OPENROUTER PROCESSING\n\ndata: 1\n: in between\n\n:\n\n", [b"1"]),
    "comment that looks like data": (b":data: 1\n\n", []),
    "many blank lines": (b"\n\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n\n\n", [b"1", b"2"]),
    "odd number of blank lines": (b"\ndata: 1\n\n\ndata: 2\n\n\n", [b"1", b"2"]),
    "no data at all": (b"data:\n\ndata: \n\n", []),
    "no data between events": (b"data: 1\n\ndata: \n\ndata: 2\n\n", [b"1", b"2"]),
    "names that start with data": (b"database: 1\n\ndata-x: 2\n\ndata : 3\n\ndata\n\n", []),
    "names in capitals": (b"Data: 1\n\nDATA: 2\n\n", []),
    "an indented line": (b" data: 1\n\n", []),
    "last event without a blank line": (b"data: 1\n\ndata: 2\n", [b"1", b"2"]),
    "last event without a line end": (b"data: 1\n\ndata: 2", [b"1", b"2"]),
    "last event ends in CR": (b"data: 1\r\rdata: 2\r", [b"1", b"2"]),
    "last line has one byte": (b"data: 1\n:", [b"1"]),
    "last line is a comment": (b"data: 1\n\n: bye", [b"1"]),
    "end mark": (b"data: {}\n\ndata: [DONE]\n\n", [b"{}", b"[DONE]"]),
    "colons in the data": (b"data: data: 1\n\n", [b"data: 1"]),
    "bytes that are no text": (b"data: \xff\x00\xfe\n\n", [b"\xff\x00\xfe"]),
    "nothing": (b"", []),
}
HEADS: dict[str, tuple[bytes, list[bytes]]] = {
    "mark": (BOM + b"data: 1\n\n", [b"1"]),
    "mark and CRLF": (BOM + b"data: 1\r\n\r\n", [b"1"]),
    "mark before a blank line": (BOM + b"\n\ndata: 1\n\n", [b"1"]),
    "two marks": (BOM + BOM + b"data: 1\n\ndata: 2\n\n", [b"2"]),
    "two thirds of a mark": (BOM[:2] + b"data: 1\n\ndata: 2\n\n", [b"2"]),
    "two thirds of a mark before one event": (BOM[:2] + b"data: 1\n\n", []),
    "a third of a mark": (BOM[:1] + b"\ndata: 1\n\n", [b"1"]),
    "mark alone": (BOM, []),
    "half a mark alone": (BOM[:2], []),
    "mark in mid-stream": (b"data: 1\n\n" + BOM + b"data: 2\n\n", [b"1"]),
}
ALL_EVENTS = EVENTS | HEADS


@pytest.mark.parametrize("name", ALL_EVENTS)
def test_events_of_a_whole_stream(name: str) -> None:
    """The data of each event, and of nothing else."""
    data, payloads = ALL_EVENTS[name]
    assert payloads_of(ServerSentEvents(), data) == payloads


@pytest.mark.parametrize("name", ALL_EVENTS)
def test_events_of_a_stream_cut_in_two(name: str) -> None:
    """Wherever it is cut, also between CR and LF and inside the byte-order mark."""
    data, payloads = ALL_EVENTS[name]
    for at in range(len(data) + 1):
        assert payloads_of(ServerSentEvents(), data[:at], b"", data[at:]) == payloads


@pytest.mark.parametrize("name", ALL_EVENTS)
def test_events_of_a_stream_byte_by_byte(name: str) -> None:
    """The worst case of cutting."""
    data, payloads = ALL_EVENTS[name]
    assert payloads_of(ServerSentEvents(), *single_bytes(data)) == payloads


@pytest.mark.parametrize("name", EVENTS)
def test_events_after_another_event(name: str) -> None:
    """A decoder that is between two events reads what follows as one that has just begun does."""
    data, payloads = EVENTS[name]
    assert payloads_of(ServerSentEvents(), b"data: 0\n\n", data) == [b"0", *payloads]


def test_an_event_is_given_as_soon_as_it_ends() -> None:
    """No event waits for the next one, whatever the line ends are."""
    for end in (b"\n\n", b"\r\n\r\n", b"\r\r"):
        assert said(ServerSentEvents().feed(b"data: 1" + end)) == [b"1"]


def test_the_line_feed_of_a_cut_line_end_starts_no_event() -> None:
    """CR, then LF in the next piece, is one line end; CR, then a line, is one as well."""
    events = ServerSentEvents()
    assert [said(events.feed(piece)) for piece in (b"data: 1\r", b"\ndata: 2\r\n\r", b"\ndata: 3\r", b"\r")] == [
        [],
        [b"1\n2"],
        [],
        [b"3"],
    ]


LINES = st.sampled_from(
    [
        b"",
        b"",
        b"data: 1",
        b"data:{}",
        b"data: ",
        b"data:",
        b"data",
        b"database: 2",
        b": comment",
        b"event: x",
        b"id: 3",
    ]
)
LINE_ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
blocks = st.lists(st.builds(lambda lines: b"".join(map(b"".join, lines)), st.lists(st.tuples(LINES, LINE_ENDS))))


def by_the_book(data: bytes) -> list[bytes]:
    """The same, read line by line as the specification tells it."""
    payloads: list[bytes] = []
    event: list[bytes] = []
    for line in [*re.split(rb"\r\n|\r|\n", data), b""]:
        if line.startswith(b"data:"):
            event.append(line[5:].removeprefix(b" "))
        elif not line:
            payloads += [b"\n".join(event)] if any(event) else []
            event = []
    return payloads


@settings(max_examples=150, deadline=None)
@given(pieces=blocks, cuts=cut_places)
@example(pieces=[b"data: 1\n\n", b"data: \n\n"], cuts=[])
@example(pieces=[b"data: 1\n\n", b"data: 2\nd", b"ata: 3\n\n"], cuts=[])
@example(pieces=[b"data: 1\r", b"\ndata: 2\n\n"], cuts=[])
def test_any_lines_cut_anywhere(pieces: list[bytes], cuts: list[int]) -> None:
    """Streams of any lines with any line ends, cut between lines and cut anywhere."""
    data = b"".join(pieces)
    assert payloads_of(ServerSentEvents(), data) == by_the_book(data)
    assert payloads_of(ServerSentEvents(), *pieces) == by_the_book(data)
    assert payloads_of(ServerSentEvents(), *cut(data, cuts)) == by_the_book(data)


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(list(ALL_EVENTS)), cuts=cut_places)
def test_any_case_cut_anywhere(name: str, cuts: list[int]) -> None:
    """Each stream of the tables, in any pieces."""
    data, payloads = ALL_EVENTS[name]
    assert payloads_of(ServerSentEvents(), *cut(data, cuts)) == payloads


# --- lines of JSON ---------------------------------------------------------------------------------------------------

JSON_LINES: dict[str, tuple[bytes, list[bytes]]] = {
    "two lines": (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    "CRLF": (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
    "blank lines": (b'\n\r\n{"a":1}\n\n  \n{"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
    "white space around": (b' {"a": 1}\t\n', [b'{"a": 1}']),
    "last line without an end": (b'{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
    "last line with a CR only": (b'{"a":1}\r', [b'{"a":1}']),
    "escaped line end in a string": (b'{"a":"x\\ny"}\n', [b'{"a":"x\\ny"}']),
    "only white space": (b" \r\n \n ", []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", JSON_LINES)
def test_lines_of_json_cut_in_two(name: str) -> None:
    """One payload a line, whichever byte the stream is cut at."""
    data, payloads = JSON_LINES[name]
    for at in range(len(data) + 1):
        assert payloads_of(JsonLines(), data[:at], b"", data[at:]) == payloads


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.sampled_from([b"{}", b" 1 ", b"", b"  ", b'"x y"'])), end=LINE_ENDS, cuts=cut_places)
def test_any_lines_of_json_cut_anywhere(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    """Blank lines and line ends never make or join a payload."""
    data = b"".join(line + end + b"\n" for line in lines)
    assert payloads_of(JsonLines(), *cut(data, cuts)) == [line.strip() for line in lines if line.strip()]


# --- a growing JSON array --------------------------------------------------------------------------------------------

ARRAYS: dict[str, tuple[bytes, list[bytes]]] = {
    "one element": (b'[{"a":1}]', [b'{"a":1}']),
    "two elements": (b'[{"a":1},{"b":2}]', [b'{"a":1}', b'{"b":2}']),
    "white space everywhere": (b' [\n{ "a" : 1 }\r\n,\t{"b":2} \n]\n', [b'{ "a" : 1 }', b'{"b":2}']),
    "brackets in a string": (b'[{"a":"}]{["},{"b":2}]', [b'{"a":"}]{["}', b'{"b":2}']),
    "quotes in a string": (b'[{"a":"\\"}"},{"b":2}]', [b'{"a":"\\"}"}', b'{"b":2}']),
    "backslash at the end of a string": (b'[{"a":"\\\\"},{"b":2}]', [b'{"a":"\\\\"}', b'{"b":2}']),
    "backslashes and a quote": (b'[{"a":"\\\\\\"]"},{"b":2}]', [b'{"a":"\\\\\\"]"}', b'{"b":2}']),
    "brackets in a key": (b'[{"}":{"]":1}}]', [b'{"}":{"]":1}}']),
    "nested arrays": (b'[{"a":[[1],[{"b":[]}]]},[[2]],[]]', [b'{"a":[[1],[{"b":[]}]]}', b"[[2]]", b"[]"]),
    "scalars are stepped over": (b'["}",1,{"a":1},"[",null,{}]', [b'{"a":1}', b"{}"]),
    "empty array": (b"[]", []),
    "empty array with white space": (b" [ \n ] ", []),
    "no end of the array": (b'[{"a":1},', [b'{"a":1}']),
    "cut in an element": (b'[{"a":1},{"b":', [b'{"a":1}', b'{"b":']),
    "cut in a string": (b'[{"a":"x]}', [b'{"a":"x]}']),
    "cut after a backslash": (b'[{"a":"\\', [b'{"a":"\\']),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_elements_of_an_array_cut_in_two(name: str) -> None:
    """Each element whole with its own bytes, whichever byte the stream is cut at."""
    data, payloads = ARRAYS[name]
    for at in range(len(data) + 1):
        assert payloads_of(JsonArray(), data[:at], b"", data[at:]) == payloads


@pytest.mark.parametrize("name", ARRAYS)
def test_elements_of_an_array_byte_by_byte(name: str) -> None:
    """The worst case of cutting."""
    data, payloads = ARRAYS[name]
    assert payloads_of(JsonArray(), *single_bytes(data)) == payloads


def test_an_element_is_given_as_soon_as_it_ends() -> None:
    """No element waits for the comma."""
    assert [said(JsonArray().feed(b'[{"a":1}')), said(JsonArray().feed(b"[[1]"))] == [[b'{"a":1}'], [b"[1]"]]


containers: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text('[]{}"\\,: é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a[]{}"\\', max_size=3), inner, max_size=3),
    max_leaves=6,
).filter(lambda value: isinstance(value, (list, dict)))


@settings(max_examples=150, deadline=None)
@given(values=st.lists(containers, max_size=4), indent=st.sampled_from([None, 0, 2]), cuts=cut_places)
def test_any_array_cut_anywhere(values: list[Any], indent: int | None, cuts: list[int]) -> None:
    """Whatever the elements hold and however they are spelled."""
    spelled = [json.dumps(value, indent=indent).encode() for value in values]
    data = b"[\n" + b" ,\r\n".join(spelled) + b"\n]\n"
    assert payloads_of(JsonArray(), *cut(data, cuts)) == spelled


# --- server-sent events, or an array ----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    case=st.sampled_from([case for case in (*EVENTS.values(), *ARRAYS.values()) if case[0][:1] != b" "]),
    white=st.sampled_from([b"", b"\n", b"\r\n "]),
    cuts=cut_places,
)
def test_the_first_byte_says_which_framing_it_is(
    case: tuple[bytes, list[bytes]], white: bytes, cuts: list[int]
) -> None:
    """Whatever white space precedes it, wherever the stream is split."""
    data, payloads = case
    assert payloads_of(EventsOrArray(), *cut(white + data, cuts)) == payloads


# --- the parts of a frame ---------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[Framing, bytes, bytes]] = {
    "one line": (ServerSentEvents(), b"data: {}\n\n", b"data: 1\n\n"),
    "no space": (ServerSentEvents(), b"data:{}\r\n\r\n", b"data:1\r\n\r\n"),
    "a name, CRLF": (ServerSentEvents(), b"event: x\r\ndata: {}\r\n\r\n", b"event: x\r\ndata: 1\r\n\r\n"),
    "lines behind it": (ServerSentEvents(), b"data: {}\n: c\nid: 2\n\n", b"data: 1\n: c\nid: 2\n\n"),
    "a byte-order mark": (ServerSentEvents(), BOM + b"data: {}\n\n", BOM + b"data: 1\n\n"),
    "several data lines": (ServerSentEvents(), b"event: x\ndata: {\ndata: }\n\n", b"event: x\ndata: 1\n\n"),
    "a line of JSON": (JsonLines(), b" {}\r\n", b" 1\r\n"),
    "an element": (JsonArray(), b"[ {}", b"[ 1"),
}


@pytest.mark.parametrize("name", PARTS)
def test_another_payload_keeps_the_bytes_around_it(name: str) -> None:
    """Byte for byte; only a payload that is spread over lines is written on one."""
    framing, data, changed = PARTS[name]
    frames = frames_of(framing, data)
    assert b"".join(frame.raw for frame in frames) == data
    assert b"".join(frame.with_payload(b"1") if frame.payload else frame.raw for frame in frames) == changed


# --- bounds ----------------------------------------------------------------------------------------------------------

LIMIT = 64
FRAMINGS: dict[str, tuple[Callable[[int], Framing], Callable[[bytes], bytes], bytes]] = {
    "server-sent events": (ServerSentEvents, lambda payload: b"data: " + payload + b"\n\n", b""),
    "lines of JSON": (JsonLines, lambda payload: payload + b"\n", b""),
    "JSON array": (JsonArray, lambda payload: payload + b",", b"["),
}
LONG = b'{"a":"' + b"x" * 2 * LIMIT + b'"}'
framings = pytest.mark.parametrize("name", FRAMINGS)


@framings
def test_an_event_beyond_the_bound_is_refused_in_pieces(name: str) -> None:
    """A named error, before the event has ended."""
    make, event, head = FRAMINGS[name]
    framing = make(LIMIT)
    unfinished = event(LONG)[: LIMIT + 20]
    with pytest.raises(LimitExceeded, match=f"longer than {LIMIT} bytes"):
        payloads_of(framing, head, *single_bytes(unfinished))


@framings
@pytest.mark.parametrize("before", [b"", b"{}"], ids=["first", "after another"])
def test_an_event_beyond_the_bound_is_refused_in_one_piece(name: str, before: bytes) -> None:
    """The bound is the same however the bytes were cut."""
    make, event, head = FRAMINGS[name]
    framing = make(LIMIT)
    framing.feed(head + (event(before) if before else b""))
    with pytest.raises(LimitExceeded, match=f"longer than {LIMIT} bytes"):
        payloads_of(framing, event(LONG))


@framings
def test_a_framing_that_has_failed_stays_failed(name: str) -> None:
    """Neither the rest of the event nor another one is given for what was refused."""
    make, event, head = FRAMINGS[name]
    framing = make(LIMIT)
    framing.feed(head)
    start, more, end = event(LONG)[:40], event(LONG)[40:80], event(LONG)[-4:]
    framing.feed(start)
    for piece in (more, end, event(b"{}")):
        with pytest.raises(LimitExceeded):
            framing.feed(piece)


@framings
def test_short_events_in_a_long_piece_are_not_refused(name: str) -> None:
    """The bound is on an event: a piece may bring many of them, also where it ends one that has begun."""
    make, event, head = FRAMINGS[name]
    data = event(b'{"a":1}') * LIMIT
    for at in (0, 1, 3):
        assert payloads_of(make(LIMIT), head + data[:at], data[at:]) == [b'{"a":1}'] * LIMIT


@framings
def test_events_in_a_long_stream_do_not_add_up(name: str) -> None:
    """What was given no longer counts."""
    make, event, head = FRAMINGS[name]
    data = event(b'{"a":1}') * LIMIT
    assert payloads_of(make(LIMIT), head, *single_bytes(data)) == [b'{"a":1}'] * LIMIT


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "name", "written"),
    [
        pytest.param(b"{}", "", b"data: {}\n\n", id="without a name"),
        pytest.param(b"{}", "ping", b"event: ping\ndata: {}\n\n", id="with a name"),
        pytest.param(b'{\n"a":1}', "", b'data: { "a":1}\n\n', id="on two lines"),
        pytest.param(b'{\r\n"a":\r1}', "", b'data: {  "a": 1}\n\n', id="with carriage returns"),
        pytest.param(b'{"a":"x\\ny"}', "", b'data: {"a":"x\\ny"}\n\n', id="with an escaped line end"),
    ],
)
def test_one_event_written(payload: bytes, name: str, written: bytes) -> None:
    """One event of one data line, whatever lines the payload had."""
    assert sse(payload, name) == written


@settings(max_examples=100, deadline=None)
@given(value=containers, indent=st.sampled_from([None, 0, 3]), end=LINE_ENDS)
def test_any_payload_written_and_read_again(value: Any, indent: int | None, end: bytes) -> None:
    """The same value on one line: as long, and nothing but line ends changed."""
    payload = json.dumps(value, indent=indent).encode().replace(b"\n", end)
    line = one_line(payload)
    assert payloads_of(ServerSentEvents(), sse(payload, "x"), sse(payload)) == [line, line]
    assert (json.loads(line), len(line)) == (value, len(payload))
