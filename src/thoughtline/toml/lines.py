"""The lines of the keys in a valid TOML document, which `tomllib` doesn't report."""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple, TypeAlias

KeyPath: TypeAlias = tuple[str, ...]

_TOKEN = re.compile(
    r"""
      (?P<skipped>[ \t\r]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<long>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5})
    | (?P<text>"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    | (?P<mark>[][{}=,.])
    | (?P<bare>[^][{}=,.\s"'\#]+)
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def key_lines(document: str) -> dict[KeyPath, int]:
    """For each key and each table its line, counted from 1."""
    return _Lines(document).found


def _tokens(document: str) -> list[_Token]:
    tokens, line = [], 1
    for match in _TOKEN.finditer(document):
        if match.lastgroup != "skipped":
            tokens.append(_Token(match.lastgroup or "", match[0], line))
        line += match[0].count("\n")
    return [*tokens, _Token("newline", "\n", line)]


def _word(token: _Token) -> str:
    if token.kind == "text":
        return str(tomllib.loads(f"key = {token.text}")["key"])
    return token.text


class _Lines:
    """One pass over the tokens of a document."""

    def __init__(self, document: str) -> None:
        self.found: dict[KeyPath, int] = {}
        self._tokens = _tokens(document)
        self._at = 0
        within: KeyPath = ()
        while self._at < len(self._tokens):
            if self._next.kind == "newline":
                self._at += 1
            elif self._next.text == "[":
                within = self._header()
            else:
                self._pair(within)

    @property
    def _next(self) -> _Token:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _header(self) -> KeyPath:
        while self._next.text == "[":
            self._at += 1
        path = self._key((), "]")
        while self._next.text == "]":
            self._at += 1
        return path

    def _pair(self, within: KeyPath) -> None:
        path = self._key(within, "=")
        self._at += 1
        self._value(path)

    def _key(self, within: KeyPath, end: str) -> KeyPath:
        path = within
        while self._next.kind != "newline" and not (self._next.kind == "mark" and self._next.text == end):
            if self._next.kind != "mark":
                path = (*path, _word(self._next))
                self.found.setdefault(path, self._next.line)
            self._at += 1
        return path

    def _value(self, path: KeyPath) -> None:
        first = self._next
        self._at += 1
        if first.kind != "mark" or first.text not in "[{":
            return self._rest_of_scalar()
        closing = "]" if first.text == "[" else "}"
        while self._at < len(self._tokens) and not (self._next.kind == "mark" and self._next.text == closing):
            if self._next.kind == "newline" or self._next.text == ",":
                self._at += 1
            elif closing == "}":
                self._pair(path)
            else:
                self._value(path)
        self._at += 1
        return None

    def _rest_of_scalar(self) -> None:
        """A number's fraction or a time after a date; a dot is a mark of its own."""
        while self._next.kind == "bare" or self._next.text == ".":
            self._at += 1
