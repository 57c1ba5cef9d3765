"""A watch on a stream: it may put off reading, and nobody can tell."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.wire_cases import STREAMS, WireCase, name_of
from thoughtline.events import TurnDone
from thoughtline.records import Outcome, Record
from thoughtline.replay.contracts import BY_NAME
from thoughtline.replay.keys import Identity
from thoughtline.replayer import Destination, Prepared
from thoughtline.turns import Transcript
from thoughtline.watching import PUT_OFF_BYTES, StreamWatch

WATCHED = [case for case in STREAMS if case.format.bodies is not None]


def watch_of(case: WireCase) -> StreamWatch:
    where = Destination("some", "https://some.example", "account", "model", case.format.name)
    contract = replace(BY_NAME["deepseek"], dialect=case.dialect)
    return StreamWatch(Prepared(where, Identity("tenant"), b"", contract, transcript=Transcript(case.format.name, ())))


def ends(case: WireCase, pieces: list[bytes]) -> list[bool]:
    """Whether a turn has ended, after each piece and at the end, for one who reads everything at once."""
    decoder = case.format.stream_decoder(case.dialect)
    has_ended, seen = False, []
    for piece in pieces:
        has_ended = any(isinstance(event, TurnDone) for event in decoder.feed(piece)) or has_ended
        seen.append(has_ended)
    return [*seen, any(isinstance(event, TurnDone) for event in decoder.finish()) or has_ended]


def watched(case: WireCase, pieces: list[bytes]) -> tuple[list[bool], tuple[Record, ...]]:
    watch = watch_of(case)
    seen = [watch.feed(piece) for piece in pieces] + [watch.finish()]
    return seen, watch.take(1.0, Outcome())


def by_line_ends(data: bytes, mark: bytes) -> list[bytes]:
    pieces = [piece + mark for piece in data.split(mark)]
    return [*pieces[:-1], *([pieces[-1][: -len(mark)]] if pieces[-1] != mark else [])]


@pytest.mark.parametrize("mark", [b"\n\n", b"\n", b'"', b":"], ids=["events", "lines", "quotes", "colons"])
@pytest.mark.parametrize("case", WATCHED, ids=name_of)
def test_the_piece_that_ends_a_turn_is_known_when_it_comes(case: WireCase, mark: bytes) -> None:
    """However the stream is cut: before that piece goes on to the client, the record is to be saved."""
    data = case.stream or b""
    pieces = by_line_ends(data, mark)
    assert b"".join(pieces) == data
    seen, records = watched(case, pieces)
    assert seen == ends(case, pieces)
    assert records == watched(case, [data])[1]


@settings(max_examples=200, deadline=None)
@given(case=st.sampled_from(WATCHED), cuts=st.lists(st.integers(0, 4000), max_size=30))
def test_cut_anywhere(case: WireCase, cuts: list[int]) -> None:
    """The same, at random."""
    data = case.stream or b""
    marks = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(marks)]
    seen, records = watched(case, pieces)
    assert seen == ends(case, pieces)
    assert records == watched(case, [data])[1]


def test_what_waits_is_bounded() -> None:
    """A long stream is read as it goes: what waits never grows beyond its bound, and nothing of it is lost."""
    case = next(case for case in WATCHED if case.format.name == "openai_chat")
    event = b'data: {"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
    count = 4 * PUT_OFF_BYTES // len(event)
    watch, most = watch_of(case), 0
    for _ in range(count):
        assert not watch.feed(event)
        most = max(most, watch.waiting_bytes)
    assert 0 < most <= PUT_OFF_BYTES
    assert watch.finish()
    (record,) = watch.take(1.0, Outcome())
    assert [getattr(item, "text", "") for item in record.items] == ["word " * count]


def test_what_is_put_off_is_still_read() -> None:
    """Rubbish among what waits is found by whoever reads on, and ends the watch as it would have at once."""
    case = next(case for case in WATCHED if case.format.name == "openai_chat")
    watch = watch_of(case)
    for piece in (b'data: {"choices":[]}\n\n', b'data: {"choices":[]}\n\n', b"data: {rubbish\n\n"):
        assert not watch.feed(piece)
    assert not watch.finish()
    assert watch.problem is not None


def test_blank_lines_inside_an_array_end_no_event() -> None:
    """Gemini's array may be written with blank lines anywhere; only its brackets say where an element ends."""
    case = next(case for case in WATCHED if case.format.name == "gemini_generate")
    first = b'[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},\n\n'
    pieces = [first, b'{"candidates":[{"finishReason":"STOP"\n\n', b"\n\n", b"}]}\n\n", b"]"]
    assert watched(case, pieces)[0] == ends(case, pieces) == [False, False, False, True, True, True]
