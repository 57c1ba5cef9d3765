"""The chain of Claude's thinking blocks: which of them may stand in one request.

A block knows which thinking block stood before it in the request that produced it. What is sent must be an unbroken run
of that order: a block is good if it is the first one, or if the one before it is its predecessor. So blocks may be left
out at the start, at the end, or all of them, never in the middle (Anthropic docs, Preserved thinking, 2026-09-26).
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
"""What a record says of a block that no other stood before. An empty text is a record that does not know."""


STRANGER = "stranger"
"""The predecessor of a block that nobody remembers: none of ours is put before it."""


class Link(NamedTuple):
    """The thinking blocks of one model step of a request.

    `last` names the last of them, empty if there are none. `after` is what its record says of the block before it.
    It is empty where a record does not know, and `STRANGER` where there is no record. `is_ours`: they were put back
    here, the client did not send them. `is_cut`: when the step was made, blocks before it
    had been left out because the provider refused them.
    """

    positions: tuple[int, ...]
    last: str
    after: str = ""
    is_ours: bool = False
    is_cut: bool = False


def name_of_block(item: Item) -> str:
    """A thinking block as records name it; empty for all other items."""
    if not isinstance(item, (ReasoningText, ReasoningEncrypted)):
        return ""
    seal = seal_of(item)
    return digest(seal.data.encode()).hex() if seal is not None and seal.data else ""


def last_block(items: Sequence[Item]) -> str:
    """The last thinking block of a step; empty if it has none."""
    return next((name for item in reversed(items) if (name := name_of_block(item))), "")


def last_block_of(turns: Iterable[Turn], before: str = "") -> str:
    """The last thinking block of a request, which the answer comes after; `before` is that of the turns before these.

    What stands before a compaction is not read, blocks included.
    """
    for turn in reversed(tuple(turns)):
        for item in reversed(turn.items):
            if turn.role == "assistant" and (name := name_of_block(item)):
                return name
            if is_compaction(item):
                return FIRST
    return before or FIRST


def is_compaction(item: Item) -> bool:
    """Whether it stands for all that was said before it. One without content is a failed attempt, and stands for
    nothing."""
    return isinstance(item, Unknown) and item.kind == "compaction" and b'"content":null' not in _squeezed(item)


def _squeezed(item: Unknown) -> bytes:
    return bytes(item.raw).replace(b" ", b"")


def link_of(positions: tuple[int, ...], items: Sequence[Item], record: Record | None, *, is_ours: bool) -> Link:
    """The link of a step as it stands in the plan."""
    after, is_cut = (record.after, record.is_cut) if record is not None else (STRANGER, False)
    return Link(positions, last_block(items), after, is_ours=is_ours, is_cut=is_cut)


class Broken(NamedTuple):
    """Steps whose blocks can't go up, by their positions: `ours` were to be put back, `refused` are the client's own
    that a provider refused in this conversation."""

    ours: tuple[tuple[int, ...], ...] = ()
    refused: tuple[tuple[int, ...], ...] = ()


def broken(links: Sequence[Link]) -> Broken:
    """What must be left out for the rest to be an unbroken run.

    At a hole one side stays: the later one, whose thoughts are the newest, unless the client sent blocks of the earlier
    one itself. What the client sent stays, but for blocks that were cut out when a later step was made.
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
            else:  # the client's own block stands before others that came after another one
                if wanted != STRANGER and all(later.is_ours for later in run):
                    ours += [later.positions for later in run]
                run = [link]
            wanted, is_cut = link.after, link.is_cut
        elif link.is_cut:  # nothing was thought there, but what stood before it is known
            wanted, is_cut = link.after, True
    return Broken(tuple(ours), tuple(refused))


# --- what a request says of blocks that break the chain ---------------------------------------------------------------


class _Thinking(Struct, frozen=True):
    block_binding: dict[str, Any] = {}


class _Request(Struct, frozen=True):
    thinking: _Thinking = _Thinking()


_request = msgspec.json.Decoder(_Request)


def binding_of(body: bytes) -> str:
    """What a request wants done about a block of another conversation; empty if it does not say."""
    request = read_or_none(_request, body)
    settings = request.thinking.block_binding if request is not None else {}
    return str(settings.get("prefix_mismatch_behavior") or settings.get("mismatch_behavior") or "")
