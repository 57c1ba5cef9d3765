"""What a document says after an addition."""

from __future__ import annotations

from typing import Any

import pytest

from thoughtline.commands.file_edits.merging import lines_in, merged


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"thoughtline": {"old": 1}}, {"thoughtline": {"new": 2}}, {"thoughtline": {"new": 2}}),
        ([{"name": "x"}, {"name": "y", "old": 1}], [{"name": "y"}], [{"name": "x"}, {"name": "y"}]),
        ([{"name": "x"}], [{"name": "y"}, {"model_name": "z"}], [{"name": "y"}, {"model_name": "z"}, {"name": "x"}]),
        ([1, {"other": 2}], [{"name": "y"}], [{"name": "y"}, 1, {"other": 2}]),
        ([1], [2, {"name": "y"}], [2, {"name": "y"}]),
        ([{"name": 3}], [{"name": 4}], [{"name": 4}]),
        ([1], [], []),
        (None, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
    ids=[
        "objects by key",
        "a value replaces an object",
        "what is ours is replaced whole",
        "a named object where it stood",
        "new named objects come first",
        "beside items without a name",
        "a list with an item that has no name",
        "a number is no name",
        "an empty list",
        "into nothing",
    ],
)
def test_what_is_said_then(old: Any, new: Any, result: Any) -> None:
    """Objects are merged, lists of named objects by name; anything else is replaced."""
    assert merged(old, new) == result


def test_lines_end_with_a_line_feed_alone() -> None:
    """Strings may contain other separators; the lines together are the text."""
    text = "a\r\nb\u2028c\x0b\n\nd"
    assert lines_in(text) == ["a\r\n", "b\u2028c\x0b\n", "\n", "d"]
