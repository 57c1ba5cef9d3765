"""The names of a Responses step: a reasoning element and what it led to name each other, or nobody has a name.

OpenAI refuses a named `reasoning` element without the element that came after it, and any element that came after a
named one without it; an element without a name is not checked (docs/contracts.md, openai-responses).
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
    """The name that its maker gave an element, if it still has it."""
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
    """Whether an item has a name that can be taken from it: a provider's own tools must keep theirs."""
    return not isinstance(item, Unknown) and name_of(item) is not None


def unnamed(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items of a step without names. Reasoning that was nothing but a name is nothing without it."""
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
    """Whether a step is its record's `target` but for names, and all names that it has are its own, each once. Among
    items that are not stored, some of them may be missing (recorded: 9 of 9 accepted, 2026-11)."""
    if any(isinstance(item, Unknown) for item in made) or not same_reasoning(unnamed(shown), unnamed(target)):
        return False
    names = [name for group in groups(shown) if (name := name_of(group[0])) is not None]
    return len(names) == len(set(names)) and set(names) <= set(map(name_of, made))


def woven_in_pairs(items: Items, shown: Items, made: Items, *, is_bound: bool) -> Items:
    """A step with the items of its record, which were `made` under these names. What the record does not know, such as
    a compaction, never parts a thought from its element. A thought that the client refers to is there already."""
    referred = referred_names(shown)
    if referred:
        items = tuple(item for item in items if not (isinstance(item, _THOUGHTS) and item.id in referred))
    items = named_as_shown(items, shown, is_bound=is_bound) if reasoning_of(shown) else items
    target = weave(items, shown, opening="stranger")
    if referred and same_reasoning(target, shown):
        return shown
    return paired(target, made) if is_bound else target


def referred_names(items: Sequence[Item]) -> set[str]:
    """The names of the stored elements that stand in a step as `item_reference`."""
    return {other_name(item) for item in items if isinstance(item, Unknown) and item.kind == "item_reference"}


def named_as_shown(made: Sequence[Item], shown: Sequence[Item], *, is_bound: bool) -> tuple[Item, ...]:
    """A record's items, each thought under the name that the client's copy of it has: another name is no loss.

    `is_bound`: a thought is good under its own name and without one, under no other.
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
    """A woven step with the names that hold, and no others.

    A thought and what came of it have their names where all of them do that are still there, the first included. A
    provider's own tool can't go without its name, so what belongs to it gets the names that the record has.
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
    """Whether an item may be what a thought led to, by its name: has one, or is a tool that the record names."""
    return isinstance(item, Unknown) or (not isinstance(item, REASONING_KINDS) and name_of(item) is not None)


def _holds(names: Sequence[str | None], own: Sequence[str | None]) -> bool:
    return bool(names) and names[0] is not None and names[0] == own[0] and set(names) <= set(own)


def followers(items: Sequence[Item]) -> list[tuple[str | None, ...]]:
    """For each thought, the names of what came of it: all up to the next thought. Thoughts in a row share theirs."""
    return [tuple(name_of(items[at]) for at in places if _has_pair(items[at])) for places in _places(items)]


def _has_pair(item: Item) -> bool:
    """Whether an item can be half of a pair: of kinds that we don't read, those with a name."""
    return not isinstance(item, Unknown) or name_of(item) is not None


def _places(items: Sequence[Item]) -> list[list[int]]:
    """For each thought, where what came of it stands."""
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
    """The items, where a provider's own tools are among what came of a thought, all under the record's names."""
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
    """Where what came before all thoughts stands."""
    return list(range(next((at for at, item in enumerate(items) if isinstance(item, REASONING_KINDS)), len(items))))


def _is_named_tool(item: Item) -> bool:
    return isinstance(item, Unknown) and name_of(item) is not None


def _is_same(shown: Item, made: Item) -> bool:
    """Whether a woven item is this one of the record's, whatever its name."""
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
