"""Ids of a Responses step: a reasoning element and the elements it led to refer to each other, or none has an id.

OpenAI refuses a `reasoning` element with an id without the element that came after it, and any element that came after
one with an id without it. Elements without ids are not checked (docs/contracts.md, openai-responses).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats.json_text import members
from thoughtline.replay.visible import is_part_of, is_same_call, other_name
from thoughtline.replay.weaving import essence, groups, same_reasoning, weave
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
    reasoning_of,
)

Items = tuple[Item, ...]
_THOUGHTS = (ReasoningText, ReasoningSummary, ReasoningEncrypted)


def name_of(item: Item) -> str | None:
    """Return the id that its maker gave an element, if it still has it."""
    match item:
        case ToolCall():
            return item.item_id
        case Unknown():
            return other_name(item) or None
        case Text() | ReasoningText() | ReasoningSummary() | ReasoningEncrypted():
            return item.id
        case _:
            return None


def is_named(item: Item) -> bool:
    """Whether an item has an id that can be removed: a provider's own tools must keep theirs."""
    return not isinstance(item, Unknown) and name_of(item) is not None


def unnamed(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items of a step without ids. Reasoning that consisted only of an id is removed."""
    kept: list[Item] = []
    for item in items:
        is_only_a_name = isinstance(item, ReasoningSummary) and not item.summary and item.id is not None
        if not is_only_a_name:
            kept.append(_without_name(item))
    return tuple(kept)


def _without_name(item: Item) -> Item:
    match item:
        case ToolCall() if item.item_id is not None:
            return replace(item, item_id=None)
        case Text() | ReasoningText() | ReasoningSummary() | ReasoningEncrypted() if item.id is not None:
            return replace(item, id=None)
        case _:
            return item


def has_own_names(shown: Items, target: Items, made: Items) -> bool:
    """Whether a step equals its record's `target` except for ids, and all its ids are its own, each once. With `store:
    false`, some may be missing (recorded: 9 of 9 accepted, 2026-11)."""
    if any(isinstance(item, Unknown) for item in made) or not same_reasoning(unnamed(shown), unnamed(target)):
        return False
    names = [name for group in groups(shown) if (name := name_of(group[0])) is not None]
    return len(names) == len(set(names)) and set(names) <= set(map(name_of, made))


def woven_in_pairs(items: Items, shown: Items, made: Items, *, is_bound: bool) -> Items:
    """Weave a record's items, `made` under these ids, into a step. Items that the record does not have, such as a
    compaction, never separate reasoning from its element. Reasoning that the client refers to is already there."""
    referred = referred_names(shown)
    if referred:
        items = tuple(item for item in items if not (isinstance(item, _THOUGHTS) and item.id in referred))
    items = named_as_shown(items, shown, is_bound=is_bound) if reasoning_of(shown) else items
    target = weave(items, shown, opening="stranger")
    if referred and same_reasoning(target, shown):
        return shown
    return paired(target, made) if is_bound else target


def referred_names(items: Sequence[Item]) -> set[str]:
    """Return the ids of stored elements that a step contains as `item_reference`."""
    return {other_name(item) for item in items if isinstance(item, Unknown) and item.kind == "item_reference"}


def named_as_shown(made: Sequence[Item], shown: Sequence[Item], *, is_bound: bool) -> tuple[Item, ...]:
    """Return a record's items, each reasoning item with the id of the client's copy: a different id is no loss.

    `is_bound`: reasoning is valid with its own id or without one, but with no other.
    """
    copies: dict[object, deque[str | None]] = {}
    for group in groups(shown):
        if isinstance(group[0], REASONING_KINDS):
            copies.setdefault(_content(group), deque()).append(name_of(group[0]))
    items: list[Item] = []
    for group in groups(made):
        names = copies.get(_content(group)) if isinstance(group[0], REASONING_KINDS) else None
        name = names.popleft() if names else name_of(group[0])
        items += group if is_bound and name is not None else [_under(item, name) for item in group]
    return tuple(items)


def _content(group: Sequence[Item]) -> object:
    return tuple(essence(_under(item, None)) for item in group)


def _under(item: Item, name: str | None) -> Item:
    return replace(item, id=name) if isinstance(item, _THOUGHTS) and item.id != name else item


def paired(items: Sequence[Item], made: Sequence[Item]) -> tuple[Item, ...]:
    """Return a woven step with the ids that are valid, and no others.

    Reasoning and its followers keep their ids if all of them that are still there have theirs, including the first. A
    provider's own tool can't go without its id, so everything that belongs to it gets the record's ids.
    """
    thoughts = reasoning_of(tuple(made))
    if len(reasoning_of(tuple(items))) != len(thoughts) or not any(map(_may_hold, items)):
        return unnamed(items)
    items = _with_tools_named(items, made)
    holds = [_holds(names, own) for names, own in zip(followers(items), followers(made), strict=True)]
    kept: list[Item] = []
    number, is_good = 0, True
    for item in items:
        if isinstance(item, REASONING_KINDS):
            is_good = holds[number]
            kept += [_under(item, thoughts[number].id)] if is_good else unnamed([item])
            number += 1
        else:
            kept.append(item if is_good else _without_name(item))
    return tuple(kept)


def _may_hold(item: Item) -> bool:
    """Whether an item may be a follower of reasoning, by its id: it has one, or is a tool that the record names."""
    return isinstance(item, Unknown) or (not isinstance(item, REASONING_KINDS) and name_of(item) is not None)


def _holds(names: Sequence[str | None], own: Sequence[str | None]) -> bool:
    return bool(names) and names[0] is not None and names[0] == own[0] and set(names) <= set(own)


def followers(items: Sequence[Item]) -> list[tuple[str | None, ...]]:
    """Return the ids of each reasoning item's followers, up to the next one. Consecutive reasoning items share
    theirs."""
    return [tuple(name_of(items[at]) for at in places if _has_pair(items[at])) for places in _places(items)]


def _has_pair(item: Item) -> bool:
    """Whether an item can be half of a pair: items of unknown kinds only with an id."""
    return not isinstance(item, Unknown) or name_of(item) is not None


def _places(items: Sequence[Item]) -> list[list[int]]:
    """Return the positions of each reasoning item's followers."""
    found: list[list[int]] = []
    places: list[int] = []
    is_after_thought = False
    for at in range(len(items) - 1, -1, -1):
        if isinstance(items[at], REASONING_KINDS):
            found.append(places[::-1])
            is_after_thought = True
        else:
            places = [] if is_after_thought else places
            is_after_thought = False
            places.append(at)
    return found[::-1]


# --- a provider's own tools -------------------------------------------------------------------------------------------


def _with_tools_named(items: Sequence[Item], made: Sequence[Item]) -> Sequence[Item]:
    """Return the items; where a provider's own tools are among the followers, all have the record's ids."""
    named = list(items)
    for places, origins in zip([_head(items), *_places(items)], [_head(made), *_places(made)], strict=True):
        left = [made[at] for at in origins]
        if not any(isinstance(items[at], Unknown) for at in places) or not any(map(_is_named_tool, left)):
            continue
        for at in places:
            same = next((number for number, own in enumerate(left) if _is_same(items[at], own)), None)
            if same is not None:
                named[at] = _named(items[at], name_of(left[same]))
                del left[: same + 1]
    return named


def _head(items: Sequence[Item]) -> list[int]:
    """Return the positions of items before all reasoning."""
    return list(range(next((at for at, item in enumerate(items) if isinstance(item, REASONING_KINDS)), len(items))))


def _is_named_tool(item: Item) -> bool:
    return isinstance(item, Unknown) and name_of(item) is not None


def _is_same(shown: Item, made: Item) -> bool:
    """Whether a woven item is this item of the record, ignoring its id."""
    match shown, made:
        case Text(), Text():
            return "".join(shown.text.split()) == "".join(made.text.split())
        case ToolCall(), ToolCall():
            return shown.id == made.id and is_same_call(shown, made)
        case Unknown(), Unknown() if shown.kind == made.kind:
            return name_of(shown) == name_of(made) or is_part_of(shown, made)
        case _:
            return False


def _named(item: Item, name: str | None) -> Item:
    if name is None or name_of(item) == name:
        return item
    match item:
        case Text():
            return replace(item, id=name)
        case ToolCall():
            return replace(item, item_id=name)
        case Unknown():
            held = members(item.raw)
            head = {"id": Raw(msgspec.json.encode(name))}
            return replace(item, raw=Raw(msgspec.json.encode(head | held | head)))
        case _:
            return item
