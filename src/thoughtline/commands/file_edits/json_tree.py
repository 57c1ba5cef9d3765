"""JSON with comments and trailing commas, read with the place of each part."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from thoughtline.commands.file_edits.merging import Uneditable

_SKIPPED = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_COMMENT = re.compile(r"[ \t]*(?://[^\n]*?(?=\r?\n|$)|/\*[^\n]*?\*/(?=[ \t]*\r?\n))")
_DEEPEST = 200


class Node(NamedTuple):
    """A value: where it stands, its members by key or place, and where a comma follows its last one, else -1."""

    value: Any
    start: int
    end: int
    members: list[Member]
    comma: int = -1


class Member(NamedTuple):
    """A value within another, and where it begins, with its key if it has one."""

    key: str | int
    start: int
    node: Node


def read_tree(text: str) -> Node:
    """The one value of a document. Raises `Uneditable`."""
    start = 1 if text.startswith("\ufeff") else 0
    reader = _Reader(text)
    node = reader.value(reader.skipped(start), 0)
    if reader.skipped(node.end) != len(text):
        raise Uneditable(f"it is not valid JSON: there is text after its end, on line {_line(text, node.end)}")
    return node


def end_of_line_comment(text: str, at: int) -> int:
    """Where a comment that begins behind this place, on the same line, ends; the place itself if there is none."""
    found = _COMMENT.match(text, at)
    return found.end() if found else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skipped(self, at: int) -> int:
        found = _SKIPPED.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise Uneditable("it is nested too deeply")
        opening = self._text[at : at + 1]
        if opening in ("{", "["):
            return self._members(at, depth, "}" if opening == "{" else "]")
        found = _TEXT.match(self._text, at) or _WORD.match(self._text, at)
        try:
            if found:
                return Node(json.loads(found[0]), at, found.end(), [])
        except ValueError:
            pass
        raise Uneditable(f"it is not valid JSON, on line {_line(self._text, at)}")

    def _members(self, at: int, depth: int, closing: str) -> Node:
        members: list[Member] = []
        place, comma = self.skipped(at + 1), -1
        while self._text[place : place + 1] != closing:
            if members and comma < 0:
                raise Uneditable(f"it is not valid JSON: a comma is missing on line {_line(self._text, place)}")
            member = self._member(place, depth, None if closing == "}" else len(members))
            members.append(member)
            place = self.skipped(member.node.end)
            comma = place if self._text[place : place + 1] == "," else -1
            place = self.skipped(place + 1) if comma >= 0 else place
        values = [member.node.value for member in members]
        value: Any = dict(zip((member.key for member in members), values, strict=True)) if closing == "}" else values
        return Node(value, at, place + 1, members, comma)

    def _member(self, at: int, depth: int, index: int | None) -> Member:
        if index is not None:
            return Member(index, at, self.value(at, depth + 1))
        found = _TEXT.match(self._text, at)
        colon = self.skipped(found.end()) if found else at
        if found is None or self._text[colon : colon + 1] != ":":
            raise Uneditable(f"it is not valid JSON, on line {_line(self._text, at)}")
        return Member(json.loads(found[0]), at, self.value(self.skipped(colon + 1), depth + 1))
