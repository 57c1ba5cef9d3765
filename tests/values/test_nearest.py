"""The word that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from thoughtline.values.nearest import did_you_mean, nearest, nearest_value, next_word


@pytest.mark.parametrize(
    ("word", "found"),
    [("depseek", "deepseek"), ("DEEPSEEK", "deepseek"), ("kimmi", "Kimi"), ("zzz", None), ("", None)],
)
def test_the_nearest_word(word: str, found: str | None) -> None:
    """In the case it is known in; none where none is near."""
    assert nearest(word, ["openai", "deepseek", "Kimi"]) == found


def test_what_to_write_instead() -> None:
    """The nearest, else all there are, as they came."""
    assert did_you_mean("depseek", (name for name in ("openai", "deepseek"))) == "did you mean deepseek?"
    assert did_you_mean("zzz", (name for name in ("openai", "deepseek"))) == "known: openai, deepseek"
    assert did_you_mean("zzz", []) == "known: none"


@pytest.mark.parametrize(
    ("value", "legal", "expected"),
    [
        ("none", ["low", "high"], "low"),
        ("high", ["xhigh", "medium", "low"], "xhigh"),
        ("minimal", ["none", "low"], "low"),
        ("high", ["none", "default"], "default"),
        ("ultra", ["low", "max"], "max"),
        (5, [1, 10], 1),
        ("flex", ["auto", "priority"], "auto"),
        ("odd", ["even"], "even"),
        ("odd", ["this", "that"], None),
        (True, ["low"], None),
    ],
)
def test_the_nearest_legal_value(value: Any, legal: list[Any], expected: Any) -> None:
    """By how much a word asks for; up where two are as near, and never from on to off."""
    assert nearest_value(value, legal) == expected


def test_the_next_word() -> None:
    """Up from the least, down from the most, in its case."""
    assert [next_word(word) for word in ("MINIMAL", "max", "xhigh", "none")] == ["LOW", "xhigh", "high", "low"]
