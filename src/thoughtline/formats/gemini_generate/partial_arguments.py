"""Call arguments that stream in pieces (`partialArgs`): each piece has a JSON path and a value, or more of a string.

Shapes: recorded Vertex streams of Gemini 3, 2026.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, is_given
from thoughtline.values.errors import DecodeError, LimitExceeded

MAX_INDEX = 10_000
"""A larger array index would be padded with nulls: more than any call has."""

MAX_DEPTH = 200
"""Arguments nested deeper than this are rejected."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_ESCAPED = re.compile(r"\\(.)")

Tree: TypeAlias = Any  # dicts, lists and JSON scalars


class _Piece(Struct, gc=False, rename="camel"):
    json_path: str = "$"
    string_value: str | None = None
    number_value: Raw = NULL
    bool_value: bool | None = None


_decoder = msgspec.json.Decoder(_Piece)


class PartialArguments:
    def __init__(self) -> None:
        self._root: dict[str, Tree] = {}
        self._room = MAX_INDEX + 1

    def add(self, raw: Raw) -> None:
        piece = _decoder.decode(raw)
        steps = _steps(piece.json_path)
        if not steps:
            raise DecodeError("a partial argument without a place")
        holder: Tree = self._root
        for step, following in pairwise(steps):
            self._make_room(holder, step)
            if holder[step] is None:
                holder[step] = [] if isinstance(following, int) else {}
            holder = holder[step]
        self._make_room(holder, steps[-1])
        _set(holder, steps[-1], piece)

    def _make_room(self, holder: Tree, step: str | int) -> None:
        """Make room for the next value. The total size of all arrays of one call is bounded."""
        if isinstance(step, int) and isinstance(holder, list):
            missing = max(0, step + 1 - len(holder))
            if missing > self._room:
                raise LimitExceeded(f"an argument index beyond {MAX_INDEX}")
            self._room -= missing
            holder.extend([None] * missing)
        elif isinstance(step, str) and isinstance(holder, dict):
            holder.setdefault(step, None)
        else:
            raise DecodeError("a partial argument that does not fit the ones before it")

    def text(self) -> str:
        return msgspec.json.encode(self._root).decode()


def _steps(path: str) -> list[str | int]:
    """The steps of a path. A path that does not match to its end is unknown."""
    found = list(_STEP.finditer(path, 1))
    if not path.startswith("$") or sum(len(step.group()) for step in found) != len(path) - 1:
        if re.search(r"\[\d{10,}\]", path):
            raise LimitExceeded(f"an argument index beyond {MAX_INDEX}")
        raise DecodeError("a partial argument in a place we can't read")
    if len(found) > MAX_DEPTH:
        raise LimitExceeded(f"arguments nested deeper than {MAX_DEPTH}")
    return [_step(match) for match in found]


def _step(match: re.Match[str]) -> str | int:
    name, number, single, double = match.groups()
    if number is not None:
        return int(number)
    return name if name is not None else _ESCAPED.sub(r"\1", single if single is not None else double)


def _set(holder: Tree, step: str | int, piece: _Piece) -> None:
    before = holder[step]
    if isinstance(before, (dict, list)):
        raise DecodeError("a partial argument that does not fit the ones before it")
    if piece.string_value is not None:
        value: Tree = (before if isinstance(before, str) else "") + piece.string_value
    elif is_given(piece.number_value):
        value = piece.number_value
    elif piece.bool_value is not None:
        value = piece.bool_value
    else:
        return
    holder[step] = value
