"""How deep JSON nests: a bound that counts brackets, and so is the same with every interpreter."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import arguments_object, plain_value
from thoughtline.formats.nesting import MAX_NESTING, check_nesting, depth_of, outside_of_strings, steps_of
from thoughtline.values.errors import EncodeError, LimitExceeded

CHAT = FORMATS["openai_chat"]


@pytest.fixture(autouse=True)
def far_limit() -> Iterator[None]:
    """The interpreter's own bound is far away, as it is on Python 3.14."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * MAX_NESTING)
    yield
    sys.setrecursionlimit(before)


ENDINGS = {b"[": b"]", b'{"a":': b"}", b'[{},"]",': b"]"}


def nested(depth: int, opening: bytes = b"[") -> bytes:
    """Valid JSON of this depth."""
    return opening * depth + b"1" + ENDINGS[opening] * depth


@pytest.mark.parametrize("opening", ENDINGS, ids=["arrays", "objects", "beside others"])
def test_the_bound_is_the_same_for_every_shape(opening: bytes) -> None:
    """Up to it and not beyond it, at the beginning, in the middle and at the end of a long body."""
    text, deeper = nested(MAX_NESTING - 2, opening), b"[" + nested(MAX_NESTING, opening) + b"]"
    json.loads(nested(20, opening))  # what is counted is JSON
    for before, after in (
        (b"", b""),
        (b'{"a":"' + b"x" * 2**18 + b'","b":', b"}"),
        (b"[", b"," + b"{}," * 9_000 + b"0]"),
    ):
        check_nesting(before + text + after)
        with pytest.raises(LimitExceeded, match="nested too deeply"):
            check_nesting(before + deeper + after)


@pytest.mark.parametrize("text", ["[" * 9_000, '"[' * 9_000, "\\[" * 9_000, '\\"{' * 9_000 + "\\"])
def test_brackets_in_strings_do_not_nest(text: str) -> None:
    """Wherever the pieces are cut."""
    for shift in range(4):
        check_nesting(json.dumps({"x": "a" * (65_530 + shift), "y": [text, text]}).encode())


def test_brackets_in_strings_end_nothing() -> None:
    """A string with closing brackets hides no depth."""
    with pytest.raises(LimitExceeded):
        check_nesting(b'["]]]]]",' * (MAX_NESTING + 1) + b"0" + b"]" * (MAX_NESTING + 1))


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b"", 0),
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":[{}],"b":[]}', 3),
        (b"[" * 40 + b"]" * 40, 40),
        (b"]]]][[", 0),
        (b"[[[", 3),
    ],
)
def test_the_deepest_level(text: bytes, depth: int) -> None:
    assert depth_of(b"".join(steps_of(outside) for outside, _ in outside_of_strings(text))) == depth


def test_many_deep_values_are_within_the_bound() -> None:
    """Levels are not added up from one to the next."""
    check_nesting(b"[" + (nested(MAX_NESTING - 1) + b",") * 200 + b"0]")


def test_an_event_beyond_it_ends_what_is_read_of_a_stream() -> None:
    decoder = CHAT.stream_decoder(CHAT.dialect)
    with pytest.raises(LimitExceeded, match="nested too deeply"):
        decoder.feed(b'data: {"choices":[],"x":' + nested(MAX_NESTING + 1) + b"}\n\n")


def test_json_in_a_string_beyond_it_is_no_json() -> None:
    """Arguments of a call are not read with the body that they stand in."""
    deep = nested(MAX_NESTING + 1, b'{"a":')
    assert plain_value(deep) is None
    assert plain_value(nested(100)) is not None
    with pytest.raises(EncodeError):
        arguments_object(deep.decode())
