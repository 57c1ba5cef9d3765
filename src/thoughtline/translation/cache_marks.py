"""Marks for prompt caching: carried over from the client's conversation, or set for clients that can't set any.

Clients whose own provider caches by itself send no marks, and some models cache nothing without one. Their prompts get
one mark, on the last block, which moves as the conversation grows, and up to two that stay: at the end of the system
prompt, and on the first block of a first message of several. The blocks keep their bytes.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import FORMATS, Wire
from thoughtline.formats.cache_marks import USUAL_MARK, CacheMarks, mark_of, without_mark
from thoughtline.formats.json_text import array, elements, is_array, members
from thoughtline.providers import Contract
from thoughtline.values.items import Item, ToolResult
from thoughtline.values.turns import Transcript, Turn

MAX_MARKS = 4
"""Anthropic: "A maximum of 4 blocks with cache_control may be provided"."""

Marks: TypeAlias = dict[tuple[int, int], Raw]
"""Marks of a conversation by the position of the turn in the client's list and of the item in the turn."""


def taken_marks(wire: Wire, contract: Contract) -> CacheMarks | None:
    """How this upstream accepts marks; None if it accepts none."""
    marks = wire.cache_marks
    return marks if marks is not None and (marks.is_usual or contract.cache.takes_marks) else None


def has_marks(transcript: Transcript) -> bool:
    """Whether a request may have marks, anywhere in its body."""
    marks = FORMATS[transcript.format].cache_marks
    return marks is not None and marks.word in transcript.body


def marks_of(transcript: Transcript, most: int = MAX_MARKS) -> Marks:
    """The marks in a client's conversation; if there are too many, the first and the last ones."""
    wire = FORMATS[transcript.format]
    place = wire.cache_marks
    if place is None or not has_marks(transcript):
        return {}
    found: Marks = {}
    messages = elements(members(transcript.body)[wire.list_member]) if place.on_messages else []
    for turn in transcript.turns:
        for at, item in enumerate(turn.items):
            mark = place.of(item)
            if mark is not None:
                found[turn.at, at - place.stands_apart] = mark
        on_message = mark_of(messages[turn.at]) if 0 <= turn.at < len(messages) else None
        if on_message is not None and turn.items:
            found.setdefault((turn.at, len(turn.items) - 1), on_message)
    places = list(found)
    kept = places if len(places) <= most else [*places[:1], *places[1 - most :]][:most]
    return {one: found[one] for one in kept}


def needs_mark(contract: Contract, model: str, turns: tuple[Turn, ...], *, has_tools: bool) -> bool:
    """Whether a prompt that will be sent again needs a mark to be cached.

    Writing to Claude's cache costs a quarter more than plain input, so a single question gets none.
    """
    is_repeated = has_tools or any(turn.role == "assistant" for turn in turns)
    return is_repeated and re.search(contract.cache.needs_marks, model.lower()) is not None


def with_last_marked(
    turns: tuple[Turn, ...], wire: Wire, contract: Contract, mark: Raw = USUAL_MARK, *, marks_beginning: bool = False
) -> tuple[Turn, ...]:
    """The turns with a mark on the last block that can have one; with `marks_beginning` also where a prompt stays the
    same when a client rewrites its history.

    The block that ended the previous prompt is written as before, without its mark.
    """
    place = taken_marks(wire, contract)
    marked = list(turns)
    if place is None:
        return turns
    is_set = False
    if marks_beginning:
        _mark_beginning(marked, place, mark, contract)
    for position in range(len(marked) - 1, -1, -1):
        turn = marked[position]
        if turn.role == "system" or (is_set and turn.role == "assistant") or not turn.items:
            continue
        put = place.put(turn.items[-1], mark, contract.dialect)
        if put is None:
            continue
        last = (_unmarked(put[0]),) if is_set else put
        is_set = True
        marked[position] = replace(turn, items=(*turn.items[:-1], *last))
    return tuple(marked)


def _mark_beginning(turns: list[Turn], place: CacheMarks, mark: Raw, contract: Contract) -> None:
    """Mark the end of the system prompt, and the first block of a first message of several: clients begin that with
    what they know of the project, and some write what comes next again when they resume (Qwen Code 0.24.4, 2026-11)."""
    length = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
    if length and turns[length - 1].items:
        last = turns[length - 1]
        turns[length - 1] = _marked(last, len(last.items) - 1, place, mark, contract)
    if length < len(turns) and turns[length].role == "user" and len(turns[length].items) > 1:
        turns[length] = _marked(turns[length], 0, place, mark, contract)


def _marked(turn: Turn, at: int, place: CacheMarks, mark: Raw, contract: Contract) -> Turn:
    """A turn with a mark on one of its items, if that can have one."""
    put = place.put(turn.items[at], mark, contract.dialect)
    return turn if put is None else replace(turn, items=(*turn.items[:at], *put, *turn.items[at + 1 :]))


def _unmarked(item: Item) -> Item:
    if mark_of(item.raw) is not None:
        return replace(item, raw=without_mark(item.raw))
    if isinstance(item, ToolResult) and is_array(item.content):
        return replace(item, content=Raw(array([without_mark(one) for one in elements(item.content)])))
    return item
