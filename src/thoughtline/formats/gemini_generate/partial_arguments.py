"""Call arguments that stream in pieces (`partialArgs`): each piece names a place by JSON path and brings a value, or
more of a string. Shapes: recorded Vertex streams of Gemini 3, 2026."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from thoughtline.errors import DecodeError, LimitExceeded
from thoughtline.formats.json_text import NULL, is_given

MAX_INDEX = 10_000
"""An array index beyond this would be filled up with nulls: more than any call has."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")

Tree: TypeAlias = Any  # dicts, lists and JSON scalars


class _Piece(Struct, gc=False):
    jsonPath: str = "$"  # noqa: N815 - the wire's spelling
    stringValue: str | None = None  # noqa: N815 - the wire's spelling
    numberValue: Raw = NULL  # noqa: N815 - the wire's spelling
    boolValue: bool | None = None  # noqa: N815 - the wire's spelling


_decoder = msgspec.json.Decoder(_Piece)


class PartialArguments:
    """Arguments being put together."""

    def __init__(self) -> None:
        self._root: dict[str, Tree] = {}

    def add(self, raw: Raw) -> None:
        piece = _decoder.decode(raw)
        steps = _steps(piece.jsonPath)
        if not steps:
            raise DecodeError("a partial argument without a place")
        holder: Tree = self._root
        for step, following in pairwise(steps):
            holder = _enter(holder, step, [] if isinstance(following, int) else {})
        _set(holder, steps[-1], piece)

    def text(self) -> str:
        return msgspec.json.encode(self._root).decode()


def _steps(path: str) -> list[str | int]:
    found = _STEP.findall(path)
    return [int(number) if number else name or single or double for name, number, single, double in found]


def _enter(holder: Tree, step: str | int, fresh: Tree) -> Tree:
    _make_room(holder, step)
    if holder[step] is None:
        holder[step] = fresh
    return holder[step]


def _make_room(holder: Tree, step: str | int) -> None:
    if isinstance(step, int) and isinstance(holder, list):
        if step > MAX_INDEX:
            raise LimitExceeded(f"an argument index beyond {MAX_INDEX}")
        holder.extend([None] * (step + 1 - len(holder)))
    elif isinstance(step, str) and isinstance(holder, dict):
        holder.setdefault(step, None)
    else:
        raise DecodeError("a partial argument that does not fit the ones before it")


def _set(holder: Tree, step: str | int, piece: _Piece) -> None:
    _make_room(holder, step)
    if piece.stringValue is not None:
        before = holder[step] if isinstance(holder[step], str) else ""
        holder[step] = before + piece.stringValue
    elif is_given(piece.numberValue):
        holder[step] = piece.numberValue
    elif piece.boolValue is not None:
        holder[step] = piece.boolValue
