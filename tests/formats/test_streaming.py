"""What all stream decoders share: errors after the events before them, items in the order of their index."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtline.formats import json_text
from thoughtline.formats.framing import Frame, Framing, JsonArray, JsonLines, ServerSentEvents
from thoughtline.formats.streaming import IndexOrder, PayloadStreamDecoder
from thoughtline.values.errors import DecodeError, Fault, LimitExceeded
from thoughtline.values.events import Event, ItemDone, Other, TextDelta, TurnDone
from thoughtline.values.items import Text


class Word(msgspec.Struct):
    word: str = ""


OWN_ERRORS = {
    "pointer": DecodeError("wrong", "/inner/0"),
    "byte": DecodeError("wrong", "byte 7"),
    "bare": DecodeError("wrong"),
    "bound": LimitExceeded("too much", "/inner"),
}


class Words(PayloadStreamDecoder):
    """A format of one word a payload. Some words are errors, `close` is one that only the end finds."""

    def __init__(self, framing: Framing | None = None) -> None:
        super().__init__(framing or JsonLines())
        self._last = ""

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        self._last = msgspec.json.decode(payload, type=Word).word
        if self._last == "place":
            json_text.decode(msgspec.json.Decoder(int), b'"no number"', "/inner/3")
        if self._last in OWN_ERRORS:
            raise OWN_ERRORS[self._last]
        events.append(TextDelta(0, 0, self._last))

    def _close(self, events: list[Event]) -> None:
        if self._last == "close":
            raise DecodeError("wrong in the end", "/inner")
        events.append(TurnDone(0, None))


class Whole:
    """What comes in one piece is one event."""

    def feed(self, data: bytes) -> list[Frame]:
        return [Frame(payload=data)]

    def finish(self) -> list[Frame]:
        return []

    def rest(self) -> bytes:
        return b""


def line(word: str) -> bytes:
    return msgspec.json.encode({"word": word}) + b"\n"


def said(events: list[Event]) -> list[str]:
    return [event.text if isinstance(event, TextDelta) else type(event).__name__ for event in events]


def read_until_error(*pieces: bytes, framing: Framing | None = None) -> tuple[list[str], str]:
    """What was said before an error, and the error, whether it comes while feeding or at the end."""
    decoder = Words(framing)
    heard: list[str] = []
    try:
        for piece in pieces:
            heard += said(decoder.feed(piece))
        heard += said(decoder.finish())
    except DecodeError as error:
        return heard, str(error)
    return heard, ""


# --- errors ----------------------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[bytes, type[DecodeError], str]] = {
    "no JSON": (b'{"word":}\n', DecodeError, "stream"),
    "a wrong type": (b'{"word":1}\n', DecodeError, "stream"),
    "bytes that are no UTF-8": (b'{"word":"\xff"}\n', DecodeError, "stream"),
    "nesting without end": (b'{"other":' + b"[" * 100_000 + b"\n", LimitExceeded, "stream"),
    "an error with a pointer": (line("pointer"), DecodeError, "stream/inner/0"),
    "an error found by its decoder": (line("place"), DecodeError, "stream/inner/3"),
    "an error at a byte": (line("byte"), DecodeError, "stream byte 7"),
    "an error without a place": (line("bare"), DecodeError, "stream"),
    "a bound": (line("bound"), LimitExceeded, "stream"),
}
failures = pytest.mark.parametrize("name", FAILURES)


@failures
def test_a_failing_payload_is_a_named_error(name: str) -> None:
    """With its kind and its place, and the upstream's fault."""
    payload, kind, place = FAILURES[name]
    with pytest.raises(DecodeError) as wrong:
        Words().feed(payload)
    assert type(wrong.value) is kind
    assert wrong.value.place == place
    assert (wrong.value.fault, wrong.value.status) == (Fault.UPSTREAM, 502)


@failures
def test_events_before_a_failing_payload_come_first(name: str) -> None:
    """They are given, the error comes with the next call, and what follows the failing payload is not read."""
    payload, kind, _ = FAILURES[name]
    decoder = Words()
    assert said(decoder.feed(line("a") + line("b") + payload + line("c"))) == ["a", "b"]
    with pytest.raises(kind):
        decoder.feed(b"")


@failures
def test_a_decoder_that_has_failed_stays_failed(name: str) -> None:
    """With the same error, for whatever follows, and at the end."""
    payload, _, _ = FAILURES[name]
    decoder = Words()
    with pytest.raises(DecodeError) as first:
        decoder.feed(payload)
    for data in (line("a"), b""):
        with pytest.raises(DecodeError) as later:
            decoder.feed(data)
        assert later.value is first.value
    with pytest.raises(DecodeError) as last:
        decoder.finish()
    assert last.value is first.value


def test_an_error_after_the_last_events_comes_at_the_end() -> None:
    """A reader that feeds no more learns of it when it finishes."""
    decoder = Words()
    assert said(decoder.feed(line("a") + line("pointer"))) == ["a"]
    with pytest.raises(DecodeError, match="wrong"):
        decoder.finish()


@failures
def test_a_failing_stream_cut_anywhere_says_the_same(name: str) -> None:
    """The same events and the same error, whichever byte it is cut at."""
    payload, _, _ = FAILURES[name]
    data = line("a") + line("b") + payload + line("c")
    whole = read_until_error(data)
    assert whole[0] == ["a", "b"]
    for at in range(0, len(data) + 1, max(1, len(data) // 200)):
        assert read_until_error(data[:at], data[at:]) == whole


FRAMINGS: dict[str, tuple[Callable[[int], Framing], bytes, bytes, bytes]] = {
    "server-sent events": (ServerSentEvents, b"", b"data: ", b"\n"),
    "lines of JSON": (JsonLines, b"", b"", b""),
    "JSON array": (JsonArray, b"[", b"", b","),
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_events_before_one_beyond_the_bound_come_first(name: str) -> None:
    """Also where the framing fails and not a payload, however the bytes are cut, and whatever follows."""
    make, head, start, end = FRAMINGS[name]
    good = head + b"".join(start + line(word) + end for word in ("a", "b"))
    endless = start + b'{"word":"' + b"x" * 100
    refused = (["a", "b"], "an event is longer than 64 bytes (at stream)")
    assert read_until_error(good, endless, framing=make(64)) == refused
    assert read_until_error(good + endless, framing=make(64)) == refused
    assert read_until_error(good + endless, start + line("c") + end, framing=make(64)) == refused


# --- the end ---------------------------------------------------------------------------------------------------------


def test_the_end_closes_what_is_open() -> None:
    """Also where nothing came."""
    assert read_until_error(line("a")) == (["a", "TurnDone"], "")
    assert read_until_error() == (["TurnDone"], "")


def test_a_last_payload_without_its_end_mark_counts() -> None:
    """If it is whole."""
    assert read_until_error(line("a") + line("b")[:-1]) == (["a", "b", "TurnDone"], "")


@failures
def test_a_last_payload_that_was_cut_is_no_error(name: str) -> None:
    """The missing finish says that the stream was cut."""
    payload, _, _ = FAILURES[name]
    assert read_until_error(line("a") + payload[:-1]) == (["a", "TurnDone"], "")


def test_an_error_in_closing_is_named() -> None:
    """As any other: by its place in the stream."""
    decoder = Words()
    decoder.feed(line("close"))
    with pytest.raises(DecodeError) as wrong:
        decoder.finish()
    assert (wrong.value.place, wrong.value.fault) == ("stream/inner", Fault.UPSTREAM)


@pytest.mark.parametrize(
    ("payload", "is_end"),
    [
        (b"[DONE]", True),
        (b" [DONE]\r", True),
        (b"", True),
        (b" \n", True),
        (b"[done]", False),
        (b"[]", False),
        (b"DONE", False),
        (b"[DONE] x", False),
    ],
)
def test_end_marks(payload: bytes, is_end: bool) -> None:
    """`[DONE]` and nothing, with or without white space."""
    decoder = Words(Whole())
    if is_end:
        assert decoder.feed(payload) == []
    else:
        with pytest.raises(DecodeError):
            decoder.feed(payload)


# --- the order of items ----------------------------------------------------------------------------------------------


def done(name: str) -> list[ItemDone]:
    """The items of an index: one for each letter."""
    return [ItemDone(0, 0, Text(letter)) for letter in name]


def names(events: list[Event]) -> str:
    return "".join(event.item.text for event in events if isinstance(event, ItemDone) and isinstance(event.item, Text))


ORDERS: dict[str, tuple[list[tuple[int, str]], list[str], str]] = {
    "in order": ([(0, "a"), (1, "b"), (2, "c")], ["a", "b", "c"], ""),
    "backwards": ([(2, "c"), (1, "b"), (0, "a")], ["", "", "abc"], ""),
    "a later one first": ([(1, "b"), (0, "a"), (2, "c")], ["", "ab", "c"], ""),
    "an index that never comes": ([(0, "a"), (3, "d"), (2, "c")], ["a", "", ""], "cd"),
    "no first index": ([(2, "c"), (1, "b")], ["", ""], "bc"),
    "several items of an index": ([(1, "cd"), (0, "ab")], ["", "abcd"], ""),
    "an index without items": ([(1, "b"), (0, ""), (2, "c")], ["", "b", "c"], ""),
    "an index again": ([(0, "a"), (0, "b"), (1, "c")], ["a", "b", "c"], ""),
    "an index again before its turn": ([(1, "b"), (1, "c"), (0, "a")], ["", "", "abc"], ""),
    "nothing": ([], [], ""),
}


@pytest.mark.parametrize("name", ORDERS)
def test_items_in_the_order_of_their_index(name: str) -> None:
    """Each as soon as all before it have been given; the rest in the end."""
    steps, given_at_once, given_in_the_end = ORDERS[name]
    order = IndexOrder()
    heard = []
    for index, items in steps:
        events: list[Event] = []
        order.done(index, done(items), events)
        heard.append(names(events))
    rest: list[Event] = []
    order.flush(rest)
    assert (heard, names(rest)) == (given_at_once, given_in_the_end)


def test_events_that_are_there_already_stay() -> None:
    """Items are appended to what a payload has said before."""
    events: list[Event] = [Other(msgspec.Raw(b"{}"))]
    order = IndexOrder()
    order.done(0, done("a"), events)
    order.flush(events)
    assert events == [Other(msgspec.Raw(b"{}")), *done("a")]


def test_what_was_given_in_the_end_is_not_given_again() -> None:
    """A second end brings nothing."""
    order = IndexOrder()
    order.done(4, done("a"), [])
    order.flush([])
    events: list[Event] = []
    order.flush(events)
    assert events == []


@pytest.mark.parametrize("index", [0, 3], ids=["already given", "still waiting"])
def test_an_index_that_comes_again_takes_nothing_away(index: int) -> None:
    """A host may use one index for several items: each is given once, in the order in which they came."""
    order = IndexOrder()
    events: list[Event] = []
    for name in "abc":
        order.done(index, done(name), events)
    order.flush(events)
    assert names(events) == "abc"


@settings(max_examples=100, deadline=None)
@given(indexes=st.permutations(range(8)), missing=st.sets(st.integers(0, 7), max_size=2))
def test_any_order_of_indexes(indexes: list[int], missing: set[int]) -> None:
    """Whatever comes when, and whatever never comes: the items are in the order of their indexes."""
    order = IndexOrder()
    events: list[Event] = []
    for index in indexes:
        if index not in missing:
            order.done(index, done("abcdefgh"[index]), events)
    order.flush(events)
    assert names(events) == "".join("abcdefgh"[index] for index in range(8) if index not in missing)
