"""Thinking tags in visible text: which characters are markers, and which stand between them.

Tags are `think`, `thinking`, `thought`, `reasoning` and `analysis`, opening, closing or both at once, in any case, with
attributes. In fences of code and in inline code they are words like any other. A scanner decides about each character
once, in order, whatever pieces the text comes in; it waits only while the end of what came could still become a tag.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

TagMode = Literal["off", "markers", "lift"]
Verdict = Literal["keep", "drop", "lift"]
"""Of a character: it stays where it is, it is part of a marker, or it is reasoning to be moved."""

MOST_TAG_CHARS = 256
"""A longer one is text: whoever opens a tag and never closes it must not hold up a stream."""

_NAMES = ("think", "thinking", "thought", "reasoning", "analysis")
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_PART_OF_NAME = "|".join(sorted({name[:size] for name in _NAMES for size in range(1, len(name) + 1)}, key=len)[::-1])
_ATTRIBUTE = r"""\s+[\w:.-]+(?:\s*=\s*(?:"[^"<>`]*"|'[^'<>`]*'|[^\s"'<>=`/]+))?"""
_PART_OF_ATTRIBUTE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"<>`]*|'[^'<>`]*)?"""
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_NAME})(?:{_ATTRIBUTE})*\s*(?P<empty>/?)>", re.IGNORECASE)
_COULD_BE = re.compile(
    rf"</?(?:{_PART_OF_NAME})?|</?(?:{_NAME})(?:{_ATTRIBUTE})*(?:{_PART_OF_ATTRIBUTE}|\s*/?)", re.IGNORECASE
)
_ENDS_CANDIDATE = re.compile(r"[<>`]")
_PARTS = re.compile(r"`+|~+|\n|[^`~\n]+")
_SPECIAL = re.compile(r"[`~\n]")
_HEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_LONGEST_HEAD = 200


class Run(NamedTuple):
    """So many characters with one verdict."""

    verdict: Verdict
    chars: int


class Code:
    """Where code stands in Markdown that comes piece by piece: fences, and inline code within a line."""

    def __init__(self) -> None:
        self._head: str | None = ""
        self._fence: tuple[str, int] | None = None
        self._opening: tuple[str, int] | None = None
        self._is_closing = False
        self._span = 0
        self._run = ("", 0)

    def hear(self, text: str) -> None:
        if not self._run[1] and _SPECIAL.search(text) is None:
            self._hear_words(text)
            return
        for part in _PARTS.findall(text):
            if part[0] in "`~":
                self._hear_run(part[0], len(part))
                continue
            self._end_run()
            if part == "\n":
                self._end_line()
            else:
                self._hear_words(part)

    def is_here(self) -> bool:
        """Whether a character that comes now, other than a backtick, stands in code."""
        self._end_run()
        return self._fence is not None or self._opening is not None or self._span > 0

    def _hear_run(self, char: str, count: int) -> None:
        known, so_far = self._run
        if known and known != char:
            self._end_run()
            so_far = 0
        self._run = (char, so_far + count)

    def _end_run(self) -> None:
        char, count = self._run
        if not count:
            return
        self._run = ("", 0)
        is_first = self._head is not None and _HEAD.fullmatch(self._head) is not None
        self._head = None
        if self._fence is not None:
            self._is_closing = is_first and char == self._fence[0] and count >= self._fence[1]
        elif self._opening is not None:
            self._end_opening(char, count)
        elif is_first and count >= 3:
            self._opening = (char, count)
        elif char == "`":
            self._span = count if not self._span else 0 if self._span == count else self._span

    def _end_opening(self, char: str, count: int) -> None:
        """Backticks in the line that opens a fence of backticks: it is inline code after all (CommonMark 0.31, 4.5)."""
        if self._opening is not None and char == "`" == self._opening[0]:
            self._span = 0 if count == self._opening[1] else self._opening[1]
            self._opening = None

    def _end_line(self) -> None:
        """Inline code ends with its line here: looking further ahead would hold up a stream for a paragraph."""
        if self._opening is not None:
            self._fence, self._opening = self._opening, None
        elif self._is_closing:
            self._fence = None
        self._is_closing = False
        self._span = 0
        self._head = ""

    def _hear_words(self, words: str) -> None:
        if self._is_closing and not words.isspace():
            self._is_closing = False
        if self._head is not None:
            head = self._head + words
            self._head = head if len(head) <= _LONGEST_HEAD else None


class Scanner:
    """Text in, verdicts out: as many as characters came, but for those at the end that could become a tag."""

    def __init__(self, mode: TagMode) -> None:
        self._lifts = mode == "lift"
        self._is_off = mode == "off"
        self._code = Code()
        self._outer = self._code
        self._candidate = ""
        self._inside = ""
        self._runs: list[Run] = []

    @property
    def waits(self) -> bool:
        """Whether characters are held back."""
        return bool(self._candidate)

    def feed(self, text: str) -> list[Run]:
        """The verdicts that this text makes possible, those on held characters first."""
        if self._is_off:
            return [Run("keep", len(text))] if text else []
        at = 0
        while at < len(text):
            at = self._grow(text, at) if self._candidate else self._pass(text, at)
        return self._taken()

    def finish(self) -> list[Run]:
        """Nothing more comes: what could have become a tag is text."""
        self._reject("")
        return self._taken()

    def _taken(self) -> list[Run]:
        runs, self._runs = self._runs, []
        return runs

    def _say(self, verdict: Verdict, count: int) -> None:
        if self._runs and self._runs[-1].verdict == verdict:
            count += self._runs.pop().chars
        if count:
            self._runs.append(Run(verdict, count))

    def _plain(self, text: str) -> None:
        if text:
            self._code.hear(text)
            self._say("lift" if self._inside else "keep", len(text))

    def _pass(self, text: str, at: int) -> int:
        """Text up to the next bracket that may open a tag."""
        found = text.find("<", at)
        self._plain(text[at:] if found < 0 else text[at:found])
        if found < 0:
            return len(text)
        if self._code.is_here():
            self._plain("<")
        else:
            self._candidate = "<"
        return found + 1

    def _grow(self, text: str, at: int) -> int:
        """More of what could be a tag: it is one, it is none, or it is still to be seen."""
        found = _ENDS_CANDIDATE.search(text, at)
        grown = self._candidate + text[at : found.start() if found else len(text)]
        if found is None:
            if len(grown) < MOST_TAG_CHARS and _COULD_BE.fullmatch(grown):
                self._candidate = grown
            else:
                self._reject(text[at:])
            return len(text)
        tag = _TAG.fullmatch(grown + ">") if found[0] == ">" and len(grown) < MOST_TAG_CHARS else None
        if tag is not None:
            self._take(tag)
            return found.end()
        self._reject(text[at : found.start()])
        return found.start() if found[0] != ">" else self._end_plain(found.end())

    def _end_plain(self, at: int) -> int:
        self._plain(">")
        return at

    def _reject(self, more: str) -> None:
        candidate, self._candidate = self._candidate, ""
        self._plain(candidate + more)

    def _take(self, tag: re.Match[str]) -> None:
        self._candidate = ""
        self._say("drop", len(tag[0]))
        if not self._lifts or tag["empty"]:
            return
        name = tag["name"].lower()
        if tag["close"]:
            if name == self._inside:
                self._inside, self._code = "", self._outer
        elif not self._inside:
            self._inside, self._code = name, Code()


class Split(NamedTuple):
    """A whole text: what is left of it, and what was lifted out of it."""

    visible: str
    lifted: str


def split(text: str, mode: TagMode) -> Split:
    """A text that is whole."""
    scanner = Scanner(mode)
    kept: dict[Verdict, list[str]] = {"keep": [], "drop": [], "lift": []}
    at = 0
    for verdict, count in (*scanner.feed(text), *scanner.finish()):
        kept[verdict].append(text[at : at + count])
        at += count
    return Split("".join(kept["keep"]), "".join(kept["lift"]))
