"""Patterns that overlays bring."""

from __future__ import annotations

import pytest

from tests.facts.backtracking import Counter, TooManySteps
from thoughtline.facts.patterns import wrong_with, wrong_with_template, wrong_within

SLOW = [
    "(a+)+$",
    "(a|a)*b",
    "(?:x*)*",
    ".*.*x",
    "a+b+",
    ".{0,999}.*",
    r"(a)\1",
    "(?P<n>a)(?P=n)",
    "(a)?(?(1)b|c)",
    "(x{1,9}){10}",
]
FAST = ["", "kimi", r"^(?:gpt|o\d)", "k[3-9]|opus.*-7", r"[*+]+", r"\*\+", "(ab)?", "x{2}", "a.*|b.*|c.*", r"[]*]x*"]


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_can_be_slow_are_refused(pattern: str) -> None:
    """By their form alone: nobody waits for them."""
    assert wrong_with(pattern)


@pytest.mark.parametrize("pattern", FAST)
def test_plain_patterns_are_taken(pattern: str) -> None:
    """Alternatives, classes, one open repeat in each alternative."""
    assert wrong_with(pattern) is None


LENGTH = 64


def steps(pattern: str, length: int) -> int:
    """The most that any of these texts takes, the end of which nothing matches."""
    letters = ("a", "x", "*", "ab", "opus", "k9-", "kimi")
    texts = [(letter * length)[:length] + "\x00" for letter in letters]
    return max(Counter(text, 200_000).search(pattern) for text in texts)


def is_slow(pattern: str) -> bool:
    """Whether twice the text takes more than four times the steps: each place is begun at, and read to the end once."""
    try:
        return steps(pattern, 2 * LENGTH) > 4.2 * steps(pattern, LENGTH)
    except TooManySteps:
        return True


@pytest.mark.parametrize("pattern", FAST)
def test_what_is_taken_is_never_slow(pattern: str) -> None:
    """By the steps of a matcher that goes back as `re` does."""
    assert not is_slow(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(?:a*)*b", ".*.*.*b", "(a{1,9}){10}b"])
def test_what_is_refused_is_slow(pattern: str) -> None:
    """The same count finds them."""
    assert wrong_with(pattern)
    assert is_slow(pattern)


def test_patterns_are_found_however_deep_they_stand() -> None:
    """In tables, in lists, and before what a program adds to a request."""
    assert wrong_within("models", "(")
    assert wrong_within("sampling", {"never": "("})
    assert wrong_within("knobs", [{"models": "("}])
    assert wrong_within("asks", [["(", {"thinking": {}}]])
    assert wrong_within("sampling", {"names": ["("]}) is None
    assert wrong_within("filler", "(") is None


def test_templates() -> None:
    """Blanks must be known, expressions plain."""
    assert wrong_with_template("you forgot the `<field:reasoning>` of message {index}…") is None
    assert wrong_with_template("{no such blank}")
    assert wrong_with_template("a <(b+)+>")
    assert wrong_with_template("long " * 5000)
