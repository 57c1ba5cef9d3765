"""Errors: whose fault, which status, where, and never what was said."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw

from thoughtline.formats import json_text
from thoughtline.formats.aws_event_stream import EventStream, encode_message
from thoughtline.formats.framing import JsonLines, ServerSentEvents
from thoughtline.formats.gemini_generate.partial_arguments import PartialArguments
from thoughtline.formats.reasoning_details import decode_detail, encode_detail
from thoughtline.values.errors import (
    AddressError,
    AddressRefused,
    Declined,
    DecodeError,
    EncodeError,
    Fault,
    ForeignSeal,
    InputProblem,
    LimitExceeded,
    NewerStore,
    SettingsError,
    StoreDamaged,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    ThoughtlineError,
    Untranslatable,
    WrongKey,
)
from thoughtline.values.items import Text

ERRORS: dict[str, tuple[ThoughtlineError, Fault, int]] = {
    "base": (ThoughtlineError("x"), Fault.OURS, 500),
    "decode": (DecodeError("x"), Fault.CLIENT, 400),
    "decode, of an upstream": (DecodeError("x").from_upstream(), Fault.UPSTREAM, 502),
    "limit": (LimitExceeded("x"), Fault.CLIENT, 413),
    "limit, of an upstream": (LimitExceeded("x").from_upstream(), Fault.UPSTREAM, 502),
    "untranslatable": (Untranslatable("x", "/tools/0", "y"), Fault.CLIENT, 400),
    "encode": (EncodeError("x"), Fault.OURS, 500),
    "foreign seal": (ForeignSeal("x"), Fault.OURS, 500),
    "declined": (Declined(404, "unknown_model", "x"), Fault.CLIENT, 404),
    "declined, of an upstream": (Declined(502, "upstream_failed", "x"), Fault.UPSTREAM, 502),
    "declined, of ours": (Declined(503, "busy", "x"), Fault.OURS, 503),
    "address": (AddressError("x"), Fault.OURS, 500),
    "address, refused": (AddressRefused("x"), Fault.CLIENT, 400),
    "settings": (SettingsError([InputProblem("f:1", "a.b", "x", "y")]), Fault.OURS, 500),
    "store": (StoreError("x"), Fault.OURS, 503),
    "store unavailable": (StoreUnavailable("x"), Fault.OURS, 503),
    "store damaged": (StoreDamaged("x"), Fault.OURS, 503),
    "store refused": (StoreRefused("x"), Fault.OURS, 503),
    "newer store": (NewerStore("x"), Fault.OURS, 503),
    "wrong key": (WrongKey("x"), Fault.OURS, 503),
}


def kinds_of(kind: type[ThoughtlineError]) -> set[type[ThoughtlineError]]:
    return {kind}.union(*map(kinds_of, kind.__subclasses__()))


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_says_whose_fault_it_is(name: str) -> None:
    """And which HTTP status tells a client the same thing."""
    error, fault, status = ERRORS[name]
    assert (error.fault, error.status) == (fault, status)


def test_every_error_is_in_the_table() -> None:
    """A new kind of error needs a row above."""
    assert {type(error) for error, _, _ in ERRORS.values()} == kinds_of(ThoughtlineError)


def test_the_tree() -> None:
    """As in the diagram: input beyond a bound can't be decoded, a foreign seal can't be encoded."""
    assert LimitExceeded.__mro__[1:3] == (DecodeError, ThoughtlineError)
    assert ForeignSeal.__mro__[1:3] == (EncodeError, ThoughtlineError)


# --- places ----------------------------------------------------------------------------------------------------------


def test_a_message_names_problem_and_place() -> None:
    """Both can be had by themselves as well."""
    error = DecodeError("wrong", "/a/0")
    assert (str(error), error.problem, error.place) == ("wrong (at /a/0)", "wrong", "/a/0")
    assert (str(DecodeError("wrong")), DecodeError("wrong").place) == ("wrong", "")


@pytest.mark.parametrize(
    ("place", "prefix", "outer"),
    [
        pytest.param("/text", "/content/0", "/content/0/text", id="a member"),
        pytest.param("", "/content/0", "/content/0", id="no place"),
        pytest.param("/text", "", "/text", id="no prefix"),
        pytest.param("/", "/content/0", "/content/0", id="the value itself"),
        pytest.param("byte 7", "/content/0", "/content/0 byte 7", id="a byte"),
    ],
)
def test_a_place_seen_from_further_out(place: str, prefix: str, outer: str) -> None:
    """The same problem; the place is a pointer from the outer value."""
    error = DecodeError("wrong", place).within(prefix)
    assert (error.problem, error.place) == ("wrong", outer)


@pytest.mark.parametrize("kind", [DecodeError, LimitExceeded])
def test_an_error_keeps_kind_and_fault_further_out(kind: type[DecodeError]) -> None:
    """In either order of the two."""
    for error in (kind("x", "/b").from_upstream().within("/a"), kind("x", "/b").within("/a").from_upstream()):
        assert type(error) is kind
        assert (error.place, error.fault) == ("/a/b", Fault.UPSTREAM)
    assert kind("x", "/b").within("/a").fault is Fault.CLIENT


def test_further_out_is_another_error() -> None:
    """The inner one keeps its place."""
    inner = DecodeError("x", "/b")
    inner.within("/a")
    assert inner.place == "/b"


def test_one_error_of_an_upstream_does_not_change_the_others() -> None:
    """The fault is the error's own, not its kind's."""
    DecodeError("x").from_upstream()
    assert DecodeError("x").fault is Fault.CLIENT


# --- content ---------------------------------------------------------------------------------------------------------

SECRET = "c2VjcmV0LXNpZ25hdHVyZQ"
SPELLED = json.dumps(SECRET).encode()
number = msgspec.json.Decoder(dict[str, int])


def _arguments(*pieces: dict[str, str]) -> None:
    arguments = PartialArguments()
    for piece in pieces:
        arguments.add(Raw(json.dumps(piece).encode()))


REVEALING: dict[str, Callable[[], object]] = {
    "a wrong type": lambda: json_text.decode(number, b'{"a":' + SPELLED + b"}"),
    "a wrong type under a secret name": lambda: json_text.decode(number, b"{" + SPELLED + b':"x"}'),
    "text behind the value": lambda: json_text.decode(number, b"{}" + SPELLED),
    "no JSON": lambda: json_text.decode(number, b'{"a":' + SECRET.encode()),
    "no UTF-8": lambda: json_text.decode(msgspec.json.Decoder(str), b'"' + SECRET.encode() + b'\xff"'),
    "wrong content": lambda: json_text.decode_content(Raw(b'{"a":' + SPELLED + b"}")),
    "arguments that are no JSON": lambda: json_text.arguments_object(SECRET),
    "a wrong entry": lambda: decode_detail(Raw(b'{"type":"reasoning.text","text":[' + SPELLED + b"]}")),
    "an item that is no entry": lambda: encode_detail(Text(SECRET)),
    "an event that is too long": lambda: ServerSentEvents(8).feed(SECRET.encode()),
    "a line that is too long": lambda: JsonLines(8).feed(SECRET.encode()),
    "a damaged message": lambda: EventStream().feed(encode_message({SECRET: SECRET}, SPELLED)[:-1] + b"?"),
    "arguments that do not fit": lambda: _arguments(
        {"jsonPath": "$.a", "stringValue": SECRET}, {"jsonPath": f"$.a.{SECRET}", "stringValue": SECRET}
    ),
}


@pytest.mark.parametrize("name", REVEALING)
def test_a_message_never_tells_the_content(name: str) -> None:
    """Neither in the message nor in the place, whatever was wrong with it."""
    with pytest.raises(ThoughtlineError) as refused:
        REVEALING[name]()
    error = refused.value
    assert SECRET not in "".join((str(error), repr(error), getattr(error, "place", ""), getattr(error, "problem", "")))
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
