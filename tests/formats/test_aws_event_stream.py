"""Amazon's binary framing: messages as they were sent, and a named error for whatever is none."""

from __future__ import annotations

import struct
from binascii import crc32
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtline.formats.aws_event_stream import EventStream, encode_message
from thoughtline.values.errors import DecodeError, LimitExceeded

TYPED = {":message-type": "event", ":event-type": "contentBlockDelta", "é": ""}
GOOD = encode_message(TYPED, b'{"a":1}')


def prelude_of(total: int, headers: int) -> bytes:
    sizes = struct.pack(">II", total, headers)
    return sizes + struct.pack(">I", crc32(sizes))


def framed(headers: bytes, payload: bytes = b"{}") -> bytes:
    """One message with these header bytes, whatever they are, and checksums that hold."""
    message = prelude_of(16 + len(headers) + len(payload), len(headers)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name.encode())]) + name.encode() + bytes([kind]) + value


def text_header(name: str, value: str) -> bytes:
    return header(name, 7, struct.pack(">H", len(value.encode())) + value.encode())


class Message(NamedTuple):
    headers: dict[str, str]
    payload: bytes


def messages_of(*pieces: bytes) -> list[Message]:
    """What the frames say. One behind the other they are the bytes that came."""
    stream = EventStream()
    frames = [frame for piece in pieces for frame in stream.feed(piece)]
    assert b"".join(frame.raw for frame in frames) + stream.rest() == b"".join(pieces)
    return [Message(dict(frame.headers), frame.payload) for frame in frames]


# --- messages --------------------------------------------------------------------------------------------------------

# The test vectors of awslabs/aws-c-event-stream, read 2026-11.
VECTORS: dict[str, tuple[str, Message]] = {
    "empty message": ("000000100000000005c248eb7d98c8ff", Message({}, b"")),
    "payload without headers": (
        "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936",
        Message({}, b"{'foo':'bar'}"),
    ),
    "payload and one header": (
        "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e"
        "7b27666f6f273a27626172277d8d9c08b1",
        Message({"content-type": "application/json"}, b"{'foo':'bar'}"),
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_known_messages_in_both_directions(name: str) -> None:
    """Bytes that others wrote are read, and what we write are those bytes."""
    data, message = VECTORS[name]
    assert messages_of(bytes.fromhex(data)) == [message]
    assert encode_message(*message).hex() == data


def test_several_messages_in_one_piece() -> None:
    """All of them, in their order."""
    assert messages_of(GOOD + encode_message({}, b"") + GOOD) == [
        Message(TYPED, b'{"a":1}'),
        Message({}, b""),
        Message(TYPED, b'{"a":1}'),
    ]


def test_messages_cut_at_every_byte() -> None:
    """In two pieces at any byte, and byte by byte."""
    data = GOOD + encode_message({}, b"") + GOOD
    whole = messages_of(data)
    for at in range(len(data) + 1):
        assert messages_of(data[:at], b"", data[at:]) == whole
    assert messages_of(*(data[at : at + 1] for at in range(len(data)))) == whole


def test_what_is_left_of_a_cut_message_can_be_had() -> None:
    """Between messages that is nothing."""
    for left in (b"", GOOD[:1], GOOD[:5], GOOD[:-1]):
        stream = EventStream()
        assert len(stream.feed(GOOD + left)) == 1
        assert (stream.finish(), stream.rest()) == ([], left)


header_names = st.text(min_size=1, max_size=20)
any_message = st.builds(
    Message, st.dictionaries(header_names, st.text(max_size=40), max_size=5), st.binary(max_size=200)
)


@settings(max_examples=150, deadline=None)
@given(messages=st.lists(any_message, max_size=4), cuts=st.lists(st.integers(0, 600), max_size=8))
def test_any_messages_cut_anywhere(messages: list[Message], cuts: list[int]) -> None:
    """What was written is read, in the order of messages and headers."""
    data = b"".join(encode_message(*message) for message in messages)
    marks = sorted({min(mark, len(data)) for mark in cuts} | {0, len(data)})
    read = messages_of(*(data[start:end] for start, end in pairwise(marks)))
    assert read == messages
    assert [list(message.headers) for message in read] == [list(message.headers) for message in messages]


# --- headers ---------------------------------------------------------------------------------------------------------

HEADER_TYPES = {
    "true": (0, b""),
    "false": (1, b""),
    "byte": (2, b"\x07"),
    "short": (3, b"\x07" * 2),
    "integer": (4, b"\x07" * 4),
    "long": (5, b"\x07" * 8),
    "bytes": (6, b"\x00\x03\x07\x07\x07"),
    "no bytes": (6, b"\x00\x00"),
    "timestamp": (8, b"\x07" * 8),
    "uuid": (9, b"\x07" * 16),
}


@pytest.mark.parametrize("name", HEADER_TYPES)
def test_headers_that_are_no_text_are_stepped_over(name: str) -> None:
    """Each by its own size: the text headers around it are read."""
    kind, value = HEADER_TYPES[name]
    headers = text_header("a", "1") + header("between", kind, value) + text_header("b", "2") + header("c", kind, value)
    assert messages_of(framed(headers)) == [Message({"a": "1", "b": "2"}, b"{}")]


def test_of_two_headers_with_one_name_the_last_counts() -> None:
    """A message has one value for a name."""
    assert messages_of(framed(text_header("a", "1") + text_header("a", "2")))[0].headers == {"a": "2"}


def test_the_longest_text_header() -> None:
    """A name may have 255 bytes, a value 65,535."""
    headers = {"n" * 255: "v" * 65_535}
    assert messages_of(encode_message(headers, b"")) == [Message(headers, b"")]


UNREADABLE = {
    "unknown type": header("a", 10, b"\x00"),
    "type 255": header("a", 255, b""),
    "name longer than the headers": b"\x09abc",
    "no type after the name": b"\x01a",
    "name that is no UTF-8": b"\x01\xff\x00",
    "text that is no UTF-8": header("a", 7, b"\x00\x01\xff"),
    "text without a length": header("a", 7, b""),
    "text with half a length": header("a", 7, b"\x00"),
    "text longer than the headers": header("a", 7, b"\x00\x05xy"),
    "bytes longer than the headers": header("a", 6, b"\x00\x05xy"),
    "integer longer than the headers": header("a", 4, b"\x00\x00"),
    "a good header before a truncated one": text_header("a", "1") + header("b", 7, b"\x00\x02x"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_headers_are_refused(name: str) -> None:
    """Even where every checksum holds, headers that run out or are of no known type are an error."""
    with pytest.raises(DecodeError, match="header"):
        messages_of(framed(UNREADABLE[name]))


# --- invalid messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(12))
def test_a_damaged_prelude_is_refused_at_once(at: int) -> None:
    """The first twelve bytes have a checksum of their own: a wrong length is never believed."""
    damaged = bytearray(GOOD[:12])
    damaged[at] ^= 0x10
    with pytest.raises(DecodeError, match="prelude fails its checksum"):
        messages_of(bytes(damaged))


@pytest.mark.parametrize("at", [12, 40, len(GOOD) - 5, len(GOOD) - 4, len(GOOD) - 1])
def test_a_damaged_message_is_refused(at: int) -> None:
    """In its headers, its payload, or the checksum itself."""
    damaged = bytearray(GOOD)
    damaged[at] ^= 0x10
    with pytest.raises(DecodeError, match="message fails its checksum"):
        messages_of(bytes(damaged))


@settings(max_examples=150, deadline=None)
@given(message=any_message, data=st.data())
def test_any_flipped_bit_is_found(message: Message, data: st.DataObject) -> None:
    """One wrong bit anywhere is an error, never another message."""
    damaged = bytearray(encode_message(*message))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DecodeError):
        messages_of(bytes(damaged))


@pytest.mark.parametrize(
    ("total", "headers"), [(0, 0), (15, 0), (16, 1), (20, 5), (16, 0xFFFFFFFF)], ids=lambda size: str(size)
)
def test_a_message_shorter_than_its_parts_is_refused(total: int, headers: int) -> None:
    """Before it is waited for."""
    with pytest.raises(DecodeError, match="shorter than its headers"):
        messages_of(prelude_of(total, headers))


def test_a_message_beyond_the_bound_is_refused_at_its_head() -> None:
    """One of exactly that length is read, one byte more is too much."""
    assert len(EventStream(len(GOOD)).feed(GOOD)) == 1
    with pytest.raises(LimitExceeded, match=f"longer than {len(GOOD) - 1} bytes"):
        EventStream(len(GOOD) - 1).feed(GOOD[:12])


def test_the_bound_is_on_a_message_and_not_on_a_piece() -> None:
    """A piece may bring many."""
    assert len(EventStream(len(GOOD)).feed(GOOD * 20)) == 20


def read_until_error(*pieces: bytes) -> tuple[list[Message], str]:
    """The messages before an error, and the error. Asks once more, should it come late."""
    stream = EventStream()
    messages: list[Message] = []
    try:
        for piece in (*pieces, b""):
            messages += [Message(dict(frame.headers), frame.payload) for frame in stream.feed(piece)]
    except DecodeError as error:
        return messages, str(error)
    return messages, ""


BROKEN = {
    "damaged prelude": b"\x00" * 11 + b"\x01",
    "damaged message": GOOD[:-1] + b"\x00",
    "unreadable headers": framed(b"\x09abc"),
    "too long": prelude_of(0x7FFFFFFF, 0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_messages_before_a_broken_one_are_given(name: str) -> None:
    """However the bytes are cut, the same messages come before the same error."""
    cut_between = read_until_error(GOOD, GOOD, BROKEN[name])
    assert cut_between[0] == messages_of(GOOD + GOOD)
    assert cut_between[1]
    assert read_until_error(GOOD + GOOD + BROKEN[name]) == cut_between


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_that_has_failed_stays_failed(name: str) -> None:
    """Nothing after a broken message is believed."""
    stream = EventStream()
    for piece in (BROKEN[name], GOOD):
        with pytest.raises(DecodeError):
            stream.feed(piece)
