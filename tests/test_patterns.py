"""No regular expression of the package takes more than linear time, whatever the text."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.patterns import Attack, Use, attacks, uses

SIZE = 64 * 2**10
SMALLEST = 2 * 2**10
WORST = 3
"""So many texts of each expression are grown; all others are quicker when they are short."""
TINY_SIZES, TINY_SECONDS = (20, 24), 0.02
TRIES = 3
QUICK_SECONDS = 0.002
"""What takes less at some size is too short to be compared."""
SUSPICIOUS_SECONDS = 0.01
STUCK_SECONDS = 0.3
"""What grew too fast and takes as long is slow, and is not grown further."""
MAX_GROWTH = 3.0
"""Twice the text takes twice the time, where it is linear; four times where it is quadratic."""


def ask(pattern: re.Pattern[Any], method: str, text: str | bytes) -> None:
    empty = text[:0]
    match method:
        case "sub":
            pattern.sub(empty, text)
        case "finditer":
            for _ in pattern.finditer(text):
                pass
        case _:
            getattr(pattern, method)(text)


def seconds(pattern: re.Pattern[Any], method: str, attack: Attack, size: int, tries: int = TRIES) -> float:
    """The time that this process itself spends, at best."""
    text: str | bytes = attack.text(size)
    if isinstance(pattern.pattern, bytes):
        text = str(text).encode("latin-1", "replace")
    best = float("inf")
    for _ in range(tries):
        began = time.thread_time()
        ask(pattern, method, text)
        best = min(best, time.thread_time() - began)
        if best < QUICK_SECONDS:
            break
    return best


def slowness(pattern: re.Pattern[Any], method: str, attack: Attack) -> float:
    """How much longer twice the text takes, if it takes too long at two doublings in a row; else 0."""
    if any(seconds(pattern, method, attack, size) > TINY_SECONDS for size in TINY_SIZES):
        return float("inf")  # exponential: it must not be doubled
    size, before, grown = SMALLEST, seconds(pattern, method, attack, SMALLEST), 0
    while size < SIZE:
        size *= 2
        after = seconds(pattern, method, attack, size)
        growth = after / before if before > 0 and after > QUICK_SECONDS else 0.0
        grown = grown + 1 if growth > MAX_GROWTH else 0
        if grown == 2 or (grown and after > STUCK_SECONDS):
            return growth
        before = after
    return 0.0


def slowest(pattern: re.Pattern[Any], method: str) -> list[Attack]:
    """The texts that are worth growing: one that is slow already, or the slowest of all."""
    tried = attacks(pattern)
    took: list[float] = []
    for attack in tried:
        for size in (*TINY_SIZES, SMALLEST):
            last = seconds(pattern, method, attack, size, tries=1)
            if last > SUSPICIOUS_SECONDS:
                return [attack]
        took.append(last)
    return [tried[at] for at in sorted(range(len(tried)), key=took.__getitem__)[-WORST:]]


EVERY = uses()
# Numbered, not spelled: the order of some alternatives is that of a set, and differs from process to process.
NAMES = [f"{number} {use.place}" for number, use in enumerate(EVERY)]


@pytest.mark.parametrize("use", EVERY, ids=NAMES)
def test_every_expression_is_linear(use: Use) -> None:
    """On 64 KiB of its own alphabet, asked as the package asks it: time grows with the text and no faster."""
    for method in use.methods:
        for attack in slowest(use.pattern, method):
            growth = slowness(use.pattern, method, attack)
            assert growth == 0.0, (method, attack, growth)


@pytest.mark.parametrize(
    ("written", "method"),
    [
        (r"(?:/[\w.~-]+)*?/models/[^/]+(?:/[^/]+)*:generate", "fullmatch"),
        (r"^([\s>#*_-]*(?:user|host)[\s*_]*):", "search"),
        (r"\s+$", "search"),
        (r"(a+)+b", "match"),
        (r"\w+\s*=\s*\w+;", "sub"),
    ],
)
def test_a_careless_expression_is_seen(written: str, method: str) -> None:
    """The texts that are tried are bad enough."""
    pattern = re.compile(written, re.MULTILINE)
    assert any(slowness(pattern, method, attack) for attack in slowest(pattern, method))
