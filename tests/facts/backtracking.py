"""How many steps a pattern takes on a text: a matcher that goes back as `re` does, and counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as codes
from re import _parser as parser
from typing import Any


class TooManySteps(Exception):
    """The pattern is slow."""


class Counter:
    """The steps of searching a text from its start, and from each later place."""

    def __init__(self, text: str, most: int) -> None:
        self._text = text
        self._most = most
        self.steps = 0

    def search(self, pattern: str) -> int:
        """How many steps it takes; raises `TooManySteps` beyond the most."""
        tree = list(parser.parse(pattern))
        for start in range(len(self._text) + 1):
            if any(True for _ in self._ends(tree, start)):
                break
        return self.steps

    def _ends(self, tree: list[Any], at: int) -> Iterator[int]:
        """Each place where a match of these parts that begins here may end, in the order of `re`."""
        self.steps += 1
        if self.steps > self._most:
            raise TooManySteps
        if not tree:
            yield at
            return
        for end in self._ends_of(tree[0], at):
            yield from self._ends(tree[1:], end)

    def _ends_of(self, part: Any, at: int) -> Iterator[int]:
        code, value = part
        if code is codes.BRANCH:
            for one in value[1]:
                yield from self._ends(list(one), at)
        elif code is codes.SUBPATTERN:
            yield from self._ends(list(value[3]), at)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            yield from self._repeats(list(value[2]), value[0], value[1], at)
        elif code is codes.AT:
            yield from [at] if at == {codes.AT_BEGINNING: 0, codes.AT_END: len(self._text)}[value] else []
        elif at < len(self._text) and _takes(part, self._text[at]):
            yield at + 1

    def _repeats(self, tree: list[Any], least: int, most: int, at: int) -> Iterator[int]:
        if most > 0:
            for end in self._ends(tree, at):
                if end > at:
                    yield from self._repeats(tree, max(least - 1, 0), most - 1, end)
        if least == 0:
            yield at


def _takes(part: Any, letter: str) -> bool:
    """Whether a part that stands for one letter stands for this one."""
    code, value = part
    match code:
        case codes.LITERAL:
            return bool(ord(letter) == value)
        case codes.NOT_LITERAL:
            return bool(ord(letter) != value)
        case codes.ANY:
            return letter != "\n"
        case codes.IN:
            return any(_is_in(one, letter) for one in value)
    raise AssertionError(f"no pattern of these tests has {code}")


def _is_in(one: Any, letter: str) -> bool:
    code, value = one
    if code is codes.CATEGORY:
        return re.match({codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_WORD: r"\w"}[value], letter) is not None
    first, last = value if code is codes.RANGE else (value, value)
    return bool(first <= ord(letter) <= last)
