"""The work that a body takes, estimated without decoding it."""

from __future__ import annotations

import json

import pytest

from thoughtline.formats import weighing
from thoughtline.formats.weighing import check_weight, decode_bounded, is_light
from thoughtline.providers import REASONING_CONTENT
from thoughtline.values.errors import LimitExceeded

START, END = b'{"model":"m","messages":[', b"0]}"
MANY = weighing.MAX_CONTAINERS + 1


def said(count: int) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}] * count}).encode()


@pytest.mark.parametrize(
    "body",
    [
        START + b"{}," * MANY + END,
        START + b"[]," * MANY + END,
        START + b"1," * (weighing.MAX_VALUES + 1) + END,
        START + b'"",' * (weighing.MAX_VALUES + 1) + END,
        START + b'"\\"\\\\",{},' * MANY + END,
        b"[" * MANY * 3,
        START + b'"' + b"\\n" * (weighing.MAX_ESCAPES + 1) + b'",' + END,
    ],
    ids=["objects", "arrays", "numbers", "strings", "behind escapes", "deep", "escapes"],
)
def test_more_values_than_are_read(body: bytes) -> None:
    """Whatever they are."""
    with pytest.raises(LimitExceeded):
        check_weight(body)


@pytest.mark.parametrize("text", ["{}[]," * 500_000, '\\"{' * 500_000, "\\" * 2**20, '"' * 2**20 + "{" * 2**20])
def test_the_content_of_strings_does_not_count(text: str) -> None:
    """Code and logs are full of braces; quotes and backslashes in them end no string, wherever the pieces are cut."""
    for shift in range(4):
        body = json.dumps({"x": "a" * shift, "messages": [{"role": "user", "content": text}]}).encode()
        check_weight(body)


def test_a_long_conversation_is_read_and_a_longer_one_is_not() -> None:
    """Ten thousand exchanges are within the bound."""
    assert len(decode_bounded(said(20_000), "openai_chat", REASONING_CONTENT).turns) == 20_000
    with pytest.raises(LimitExceeded):
        decode_bounded(said(weighing.MAX_TURNS + 1), "openai_chat", REASONING_CONTENT)


@pytest.mark.parametrize(
    ("body", "is_quick"),
    [(said(20), True), (said(400), True), (said(2_000), False), (said(1) + b" " * 2**20, False)],
)
def test_what_is_worked_on_at_once(body: bytes, is_quick: bool) -> None:
    """Few values in few bytes."""
    assert is_light(body) is is_quick
