"""Joins neighbouring parts of one role, in time linear in the length of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.translation.envelopes import Opened, Place, letters_of
from thoughtline.values.items import Item, ReasoningText, Role, Text, ToolCall

EncodeWords = Callable[[str], Item]


class Placed(NamedTuple):
    """The contents of an envelope. `base` counts the visible part of the client's earlier turns that belong to the same
    turn; `turn` is the position of that turn.
    """

    base: Place
    held: Opened
    turn: int = 0


class Part(NamedTuple):
    """Items of one role, on their way to a turn, and the envelopes among them.

    `order` of a result is that of its call: tools end in any order, and a format without ids matches results by order.
    """

    role: Role
    items: tuple[Item, ...]
    opened: tuple[Placed, ...] = ()
    order: int = 0


def in_runs(parts: list[Part], joins: tuple[Role, ...], glue: EncodeWords | None = None) -> list[Part]:
    """The parts, with neighbours of these roles joined. With `glue`, a text at the end of one part and a text at the
    beginning of the next become one, and so do thoughts.
    """
    runs: list[list[Part]] = []
    for part in parts:
        if part.role in joins and runs and runs[-1][0].role == part.role:
            runs[-1].append(part)
        else:
            runs.append([part])
    return [run[0] if len(run) == 1 else _joined(run, glue) for run in runs]


def _joined(run: list[Part], glue: EncodeWords | None) -> Part:
    items = _Items(glue)
    opened: list[Placed] = []
    letters = calls = 0
    for part in run:
        items.add(part.items)
        opened += [placed._replace(base=(placed.base[0] + letters, placed.base[1] + calls)) for placed in part.opened]
        letters += sum(letters_of(item.text) for item in part.items if isinstance(item, Text))
        calls += sum(1 for item in part.items if isinstance(item, ToolCall))
    return Part(run[0].role, items.whole(), tuple(opened))


class _Items:
    """The items of a run. The last is open while more text may be joined to it."""

    def __init__(self, glue: EncodeWords | None) -> None:
        self._glue = glue
        self._items: list[Item] = []
        self._pieces: list[str] = []

    def add(self, items: tuple[Item, ...]) -> None:
        if not items:
            return
        first = items[0]
        if self._pieces and _is_alike(self._items[-1], first):
            self._pieces.append(_text_of(first))
            items = items[1:]
        if items:
            self._close()
            self._items += items
            self._pieces = [_text_of(items[-1])] if self._glue is not None and _is_text(items[-1]) else []

    def _close(self) -> None:
        if self._glue is None or len(self._pieces) < 2:
            return
        last, text = self._items[-1], "".join(self._pieces)
        self._items[-1] = replace(last, text=text) if isinstance(last, ReasoningText) else self._glue(text)

    def whole(self) -> tuple[Item, ...]:
        self._close()
        return tuple(self._items)


def _is_text(item: Item) -> bool:
    return isinstance(item, Text) or (isinstance(item, ReasoningText) and item.signature is None)


def _is_alike(one: Item, other: Item) -> bool:
    return type(one) is type(other) and _is_text(other)


def _text_of(item: Item) -> str:
    return item.text if isinstance(item, (Text, ReasoningText)) else ""
