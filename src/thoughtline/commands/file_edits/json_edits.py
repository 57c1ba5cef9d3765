"""A JSON file, with or without comments and trailing commas: decoded with positions, then edited in place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from thoughtline.commands.file_edits.merging import OURS, Uneditable, merged, name_of

_SKIPPED = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_COMMENT = re.compile(r"[ \t]*(?://[^\n]*?(?=\r?\n|$)|/\*[^\n]*?\*/(?=[ \t]*\r?\n))")
_DEEPEST = 200


class Edit(NamedTuple):
    """Replaces the text from `start` to `end`."""

    start: int
    end: int
    text: str


def edited_json(text: str, lines: str) -> str:
    """Values are replaced in place, new members follow the last one, new items of a list come first."""
    new = json.loads(lines)
    if not text.strip("\ufeff \t\r\n"):
        return f"{lines.strip()}\n"
    root = read_tree(text)
    if type(root.value) is not type(new):
        raise Uneditable(f"its top level should be {'an object' if isinstance(new, dict) else 'a list'}")
    newline = "\r\n" if "\r\n" in text else "\n"
    writer = _Writer(text, _unit(text), newline)
    result = text
    for edit in sorted(writer.edits(root, new), reverse=True):
        result = result[: edit.start] + edit.text + result[edit.end :]
    if read_tree(result).value != merged(root.value, new):
        raise Uneditable("its members can't be changed safely")
    return result


def _unit(text: str) -> str:
    """The indentation of one level."""
    found = re.search(r"^[{\[]\s*?\n([ \t]+)\S", text.lstrip("\ufeff \t\r\n"))
    return found[1] if found else "  "


class _Writer:
    def __init__(self, text: str, unit: str, newline: str) -> None:
        self._text = text
        self._unit = unit
        self._newline = newline

    def edits(self, node: Node, new: Any, key: str | int = "") -> Iterator[Edit]:
        """The edits that turn a value into the merged one."""
        if isinstance(node.value, dict) and isinstance(new, dict) and key != OURS:
            last = {member.key: member.node for member in node.members}  # of duplicate members the last one counts
            for name in new:
                if name in last:
                    yield from self.edits(last[name], new[name], name)
            yield from self._added(node, {name: new[name] for name in new if name not in last})
        elif key == OURS or merged(node.value, new) == new:
            if node.value != new:
                yield Edit(node.start, node.end, self._written(new, self._indent(node.start)))
        else:
            yield from self._items(node, new)

    def _items(self, node: Node, new: list[Any]) -> Iterator[Edit]:
        known = {name_of(member.node.value): member.node for member in node.members}
        for item in new:
            same = known.get(name_of(item))
            if same is not None and same.value != item:
                yield Edit(same.start, same.end, self._written(item, self._indent(same.start)))
        fresh = [item for item in new if name_of(item) not in known]
        if fresh:
            gap = self._gap(node, node.members[0])
            written = [self._written(item, gap.rpartition(self._newline)[2]) + "," for item in fresh]
            start = node.members[0].start
            yield Edit(start, start, "".join(item + (gap or " ") for item in written))

    def _added(self, node: Node, new: dict[str, Any]) -> Iterator[Edit]:
        if not new:
            return
        if not node.members:
            yield self._filled(node, new)
            return
        last = node.members[-1]
        behind = node.comma + 1 if node.comma >= 0 else last.node.end
        place = end_of_line_comment(self._text, behind)
        gap = self._gap(node, node.members[0]) or " "
        if place > behind and self._newline not in gap:
            gap = f"{self._newline}{self._indent(node.start)}{self._unit}"
        indent = gap.rpartition(self._newline)[2] if self._newline in gap else None
        members = [f"{json.dumps(name)}: {self._written(value, indent)}" for name, value in new.items()]
        before, after = ("", ",") if node.comma >= 0 else (",", "")
        comment = self._text[behind:place]
        yield Edit(behind, place, before + comment + gap + f",{gap}".join(members) + after)

    def _filled(self, node: Node, new: dict[str, Any]) -> Edit:
        """Fill an empty object. A comment in it stays."""
        outer = self._indent(node.start)
        inner = self._text[node.start + 1 : node.end - 1].rstrip()
        lines = self._written(new, outer)[1:-1].strip()
        start = f"{inner}{self._newline}{outer}{self._unit}" if inner else f"{self._newline}{outer}{self._unit}"
        return Edit(node.start + 1, node.end - 1, f"{start}{lines}{self._newline}{outer}")

    def _gap(self, node: Node, first: Member) -> str:
        """The separator of members: a line break with indentation, or nothing if they are on one line."""
        before = self._text[node.start + 1 : first.start]
        if "\n" not in before:
            return ""
        line = before.rpartition("\n")[2]
        return self._newline + line[: len(line) - len(line.lstrip(" \t"))]

    def _indent(self, at: int) -> str:
        """The indentation of a position's line."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _written(self, value: Any, indent: str | None) -> str:
        """On several lines with this indentation; None: on one line."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, indent=self._unit, ensure_ascii=False)
        return text.replace("\n", f"{self._newline}{indent}")


# --- decoding ---------------------------------------------------------------------------------------------------------


class Node(NamedTuple):
    """A value: its position, its members by key or index, and the position of a trailing comma, else -1."""

    value: Any
    start: int
    end: int
    members: list[Member]
    comma: int = -1


class Member(NamedTuple):
    """A value within another: its start, and its key if it has one."""

    key: str | int
    start: int
    node: Node


def read_tree(text: str) -> Node:
    """The single value of a document. Raises `Uneditable`."""
    start = 1 if text.startswith("\ufeff") else 0
    reader = _Reader(text)
    node = reader.value(reader.skipped(start), 0)
    if reader.skipped(node.end) != len(text):
        raise Uneditable(f"it is not valid JSON: there is text after its end, on line {_line(text, node.end)}")
    return node


def end_of_line_comment(text: str, at: int) -> int:
    """The end of a comment after this position on the same line; the position itself if there is none."""
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
