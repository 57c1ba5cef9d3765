"""Thinking tags in visible text: which characters are markers, and which are between them.

Tags are `think`, `thinking`, `thought`, `reasoning` and `analysis`, opening, closing or self-closing, in any case, with
attributes. In code fences and inline code they are ordinary text. A scanner decides about each character once, in
order, however the text is split; it waits only while the end of the text may still become a tag.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Literal, NamedTuple

from thoughtline.destinations.catalogue import TagMode as TagMode

Verdict = Literal["keep", "drop", "lift"]
"""What to do with a character: keep it, drop it as part of a marker, or lift it to reasoning."""

MAX_TAG_CHARS = 256
"""A longer one is text: a tag that is never closed must not hold up a stream."""

_NAMES = ("think", "thinking", "thought", "reasoning", "analysis")
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_PART_OF_NAME = "|".join(sorted({name[:size] for name in _NAMES for size in range(1, len(name) + 1)}, key=len)[::-1])
_ATTRIBUTE = r"""\s+[\w:.-]+(?:\s*=\s*(?:"[^"<>`]*"|'[^'<>`]*'|[^\s"'<>=`/]+))?"""
_PART_OF_ATTRIBUTE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"<>`]*|'[^'<>`]*)?"""
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>{_NAME})(?:{_ATTRIBUTE})*\s*(?P<empty>/?)>", re.IGNORECASE)
_COULD_BE = re.compile(
    rf"</?(?:{_PART_OF_NAME})?|</?(?:{_NAME})(?:{_ATTRIBUTE})*(?:{_PART_OF_ATTRIBUTE}|\s*/?)", re.IGNORECASE
)
_PARTS = re.compile(r"`+|~+|\n|[^`~\n]+")
_SPECIAL = re.compile(r"[`~\n]")
_HEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_LONGEST_HEAD = 200


class Run(NamedTuple):
    """Characters with one verdict."""

    verdict: Verdict
    text: str


class Code:
    """Where a piecewise Markdown text has code: fences, and inline code within a line."""

    def __init__(self) -> None:
        self._head: str | None = ""
        self._fence: tuple[str, int] | None = None
        self._opening: tuple[str, int] | None = None
        self._is_closing = False
        self._span = 0
        self._run = ("", 0)

    def feed(self, text: str) -> None:
        if not self._run[1] and _SPECIAL.search(text) is None:
            self._feed_words(text)
            return
        for part in _PARTS.findall(text):
            if part[0] in "`~":
                self._feed_run(part[0], len(part))
                continue
            self._end_run()
            if part == "\n":
                self._end_line()
            else:
                self._feed_words(part)

    def is_here(self) -> bool:
        """Whether the next character, unless it is a backtick, is in code."""
        self._end_run()
        return self._fence is not None or self._opening is not None or self._span > 0

    def _feed_run(self, char: str, count: int) -> None:
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
        """A backtick in the line that opens a fence of backticks: it is inline code after all (CommonMark
        0.31, 4.5).
        """
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

    def _feed_words(self, words: str) -> None:
        if self._is_closing and not words.isspace():
            self._is_closing = False
        if self._head is not None:
            head = self._head + words
            self._head = head if len(head) <= _LONGEST_HEAD else None


class Scanner:
    """Returns verdicts for the characters of a text, in order; characters at the end that may become a tag are held
    back.
    """

    def __init__(self, mode: TagMode) -> None:
        self._mode = mode
        self._code = self._outer = Code()
        self._held = ""
        self._inside = ""

    def feed(self, text: str) -> list[Run]:
        """The verdicts that are now certain, those for held-back characters first."""
        if self._mode == "off":
            return [Run("keep", text)] if text else []
        text, self._held = self._held + text, ""
        runs: list[Run] = []
        at = 0
        while (start := text.find("<", at)) >= 0:
            self._plain(text[at:start], runs)
            at = start
            is_code = self._code.is_here()
            if not is_code and len(text) - at < MAX_TAG_CHARS and _COULD_BE.fullmatch(text, at):
                self._held = text[at:]
                return _joined(runs)
            tag = None if is_code else _TAG.match(text, at, at + MAX_TAG_CHARS)
            if tag is not None:
                self._take(tag)
                runs.append(Run("drop", tag[0]))
            else:
                self._plain("<", runs)
            at = tag.end() if tag is not None else at + 1
        self._plain(text[at:], runs)
        return _joined(runs)

    def finish(self) -> list[Run]:
        """The text has ended: held-back characters are text."""
        runs: list[Run] = []
        self._plain(self._held, runs)
        self._held = ""
        return runs

    def _plain(self, text: str, runs: list[Run]) -> None:
        if text:
            self._code.feed(text)
            runs.append(Run("lift" if self._inside else "keep", text))

    def _take(self, tag: re.Match[str]) -> None:
        if self._mode != "lift" or tag["empty"]:
            return
        name = tag["name"].lower()
        if tag["close"]:
            if name == self._inside:
                self._inside, self._code = "", self._outer
        elif not self._inside:
            self._inside, self._code = name, Code()


def _joined(runs: list[Run]) -> list[Run]:
    """Join neighbours with the same verdict."""
    if len(runs) < 2:
        return runs
    grouped = groupby(runs, lambda run: run.verdict)
    return [Run(verdict, "".join(run.text for run in some)) for verdict, some in grouped]


def visible_text(text: str, mode: TagMode) -> str:
    """The remaining visible text of a whole text."""
    scanner = Scanner(mode)
    runs = [*scanner.feed(text), *scanner.finish()]
    return "".join(run.text for run in runs if run.verdict == "keep")
