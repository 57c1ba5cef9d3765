"""The chain of Claude's thinking blocks: which of them may be in one request.

A block knows which thinking block came before it in the request that produced it. A request must contain an unbroken
run of that order: a block is valid if it is the first one, or if its predecessor is directly before it. So blocks may
be removed at the start, at the end, or completely, but never in the middle (Anthropic docs, Preserved thinking,
2026-09-26).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from thoughtline.formats.json_text import read_or_none
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Unknown, seal_of
from thoughtline.values.records import Record, digest
from thoughtline.values.turns import Turn

FIRST = "first"
"""A record's predecessor if no block came before it. Empty text means that the record does not know."""


STRANGER = "stranger"
"""The predecessor of a block without a record: we put no block before it."""


class Link(NamedTuple):
    """The thinking blocks of one model step of a request.

    `last` names the last of them, empty if there are none. `after` is its record's predecessor: empty if the record
    does not know, `STRANGER` if there is no record. `is_ours`: they were restored here, the client did not send them.
    `is_cut`: when the step was made, earlier blocks had been removed because the provider refused them.
    """

    positions: tuple[int, ...]
    last: str
    after: str = ""
    is_ours: bool = False
    is_cut: bool = False


def name_of_block(item: Item) -> str:
    """Return the name of a thinking block in records; empty for all other items."""
    if not isinstance(item, (ReasoningText, ReasoningEncrypted)):
        return ""
    seal = seal_of(item)
    return digest(seal.data.encode()).hex() if seal is not None and seal.data else ""


def last_block(items: Sequence[Item]) -> str:
    """Return the last thinking block of a step; empty if it has none."""
    return next((name for item in reversed(items) if (name := name_of_block(item))), "")


def last_block_of(turns: Iterable[Turn], before: str = "") -> str:
    """Return the last thinking block of a request, which the answer follows; `before` is that of earlier turns.

    Content before a compaction is not read, including blocks.
    """
    for turn in reversed(tuple(turns)):
        for item in reversed(turn.items):
            if turn.role == "assistant" and (name := name_of_block(item)):
                return name
            if is_compaction(item):
                return FIRST
    return before or FIRST


def is_compaction(item: Item) -> bool:
    """Whether it replaces everything before it. A compaction without content is a failed attempt and replaces
    nothing."""
    return isinstance(item, Unknown) and item.kind == "compaction" and b'"content":null' not in _squeezed(item)


def _squeezed(item: Unknown) -> bytes:
    return bytes(item.raw).replace(b" ", b"")


def link_of(positions: tuple[int, ...], items: Sequence[Item], record: Record | None, *, is_ours: bool) -> Link:
    """Return the link of a step in the plan."""
    after, is_cut = (record.after, record.is_cut) if record is not None else (STRANGER, False)
    return Link(positions, last_block(items), after, is_ours=is_ours, is_cut=is_cut)


class Broken(NamedTuple):
    """Positions of steps whose blocks can't be sent: `ours` would have been restored, `refused` are the client's own
    that a provider refused in this conversation."""

    ours: tuple[tuple[int, ...], ...] = ()
    refused: tuple[tuple[int, ...], ...] = ()


def broken(links: Sequence[Link]) -> Broken:
    """Return what to remove so that the rest is an unbroken run.

    At a gap one side stays: the later one, which has the newest thinking, unless the client itself sent blocks of the
    earlier one. Blocks from the client stay, except those that were removed when a later step was made.
    """
    ours: list[tuple[int, ...]] = []
    refused: list[tuple[int, ...]] = []
    wanted, is_cut = "", False
    run: list[Link] = []
    for link in reversed(links):
        if link.last:
            if not wanted or wanted == link.last:
                run.append(link)
            elif link.is_ours:
                ours.append(link.positions)
                continue
            elif is_cut:
                refused.append(link.positions)
                continue
            else:  # the client's own block comes before others that followed a different one
                if wanted != STRANGER and all(later.is_ours for later in run):
                    ours += [later.positions for later in run]
                run = [link]
            wanted, is_cut = link.after, link.is_cut
        elif link.is_cut:  # no thinking there, but its predecessor is known
            wanted, is_cut = link.after, True
    return Broken(tuple(ours), tuple(refused))


# --- what a request says about blocks that break the chain ------------------------------------------------------------


class _Thinking(Struct, frozen=True):
    block_binding: dict[str, Any] = {}


class _Request(Struct, frozen=True):
    thinking: _Thinking = _Thinking()


_request = msgspec.json.Decoder(_Request)


def binding_of(body: bytes) -> str:
    """Return what a request wants done about a block of another conversation; empty if it does not say."""
    request = read_or_none(_request, body)
    settings = request.thinking.block_binding if request is not None else {}
    return str(settings.get("prefix_mismatch_behavior") or settings.get("mismatch_behavior") or "")
