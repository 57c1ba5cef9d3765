"""Puts a record's reasoning back among the client's items of a turn, each piece in its place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from thoughtline.providers import Contract
from thoughtline.replay.visible import is_bare, is_part_of, is_same_call, other_name, other_value, visible_call
from thoughtline.values.items import (
    GOOGLE_GEMINI_V1,
    NO_RAW,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    is_strange_reasoning,
    plain_token,
    readable_text,
    seal_of,
)

_SENTINEL = "skip_thought_signature_validator"
SENTINELS = frozenset(
    {
        _SENTINEL,
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    }
)
"""Gemini's values for "no signature, on purpose", plain and in base64; Gemini docs, Thought signatures, FAQ."""


def is_filler(item: Item) -> bool:
    """Whether it is filler: an empty or blank reasoning field without a signature."""
    return isinstance(item, ReasoningText) and not item.text.strip() and not item.signature and not item.id


def filler_of(items: Sequence[Item]) -> str | None:
    """Return the filler that replaces the reasoning of a turn, if there is one."""
    thoughts = [item for item in items if isinstance(item, REASONING_KINDS)]
    return "".join(map(readable_text, thoughts)) if thoughts and all(map(is_filler, thoughts)) else None


def has_sentinel(item: Item) -> bool:
    match item:
        case ReasoningEncrypted():
            return item.data in SENTINELS
        case Text() | ToolCall() | Unknown():
            return item.seal is not None and item.seal.data in SENTINELS
        case _:
            return False


def with_sentinel(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items with the first call marked as deliberately unsigned."""
    at = next(at for at, item in enumerate(items) if isinstance(item, ToolCall))
    return tuple(
        replace(item, seal=Seal(_SENTINEL, GOOGLE_GEMINI_V1)) if number == at and isinstance(item, ToolCall) else item
        for number, item in enumerate(items)
    )


def without_reasoning(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items without any reasoning or seals. A sealed compaction stays: it is the conversation itself, which
    models that don't reason read too."""
    return tuple(
        item if isinstance(item, Unknown) and item.kind == "compaction" else _unsealed(item)
        for item in items
        if not isinstance(item, REASONING_KINDS)
    )


def _unsealed(item: Item) -> Item:
    return replace(item, seal=None) if isinstance(item, (Text, ToolCall, Unknown)) and item.seal else item


def as_text(items: Sequence[Item], contract: Contract) -> tuple[Item, ...]:
    """Return a record's items for a provider that did not make them: its readable reasoning as one text, no seals."""
    words: list[str] = []
    others: list[Item] = []
    for item in items:
        if isinstance(item, REASONING_KINDS):
            words.append(readable_text(item))
        elif not is_strange_reasoning(item):
            others.append(_unsealed(item))
    text = "".join(words)
    return (ReasoningText(text, None, contract.dialect.reasoning_format), *others) if text else tuple(others)


Opening = Literal["thought", "stranger"]
"""What comes first if the client's turn begins with an item that the record does not have."""


def weave(record: Sequence[Item], shown: Sequence[Item], opening: Opening = "thought") -> tuple[Item, ...]:
    """Return the original turn: the record's reasoning and seals, around the client's items.

    Everything is in the record's order. Items equal to the record's stay the client's own.
    """
    if len(shown) == len(record) and same_reasoning(shown, record):
        return tuple(shown)
    return _weave_in_order(record, shown) or tuple([item for item, _ in _Loom(record, shown).woven(opening)])


def spread(record: Sequence[Item], turns: Sequence[Sequence[Item]]) -> list[tuple[Item, ...]]:
    """The same for a turn that the client wrote as several: each reasoning item is in the turn of what it led to."""
    shown = [item for turn in turns for item in turn]
    visible = [number for number, turn in enumerate(turns) for item in turn if not isinstance(item, REASONING_KINDS)]
    woven: list[list[Item]] = [[] for _ in turns]
    waiting: list[Item] = []
    number = 0
    for item, place in _Loom(record, shown).woven("thought"):
        waiting.append(item)
        if place is not None:
            number = visible[place]
            woven[number] += waiting
            waiting = []
    woven[number] += waiting
    return [tuple(items) for items in woven]


def _weave_in_order(record: Sequence[Item], shown: Sequence[Item]) -> tuple[Item, ...] | None:
    """The same for a client that only removed reasoning, as nearly all do; None for any other."""
    woven: list[Item] = []
    at = 0
    for item in record:
        if not isinstance(item, REASONING_KINDS):
            if at == len(shown) or not _is_as_made(shown[at], item):
                return None
            item = shown[at]
            at += 1
        woven.append(item)
    return tuple(woven) if at == len(shown) else None


def _is_as_made(shown: Item, made: Item) -> bool:
    if isinstance(made, ToolCall):
        if not isinstance(shown, ToolCall) or shown.seal != made.seal:
            return False
        return shown.id == made.id and is_same_call(shown, made)
    if isinstance(made, Unknown):
        return isinstance(shown, Unknown) and shown.seal == made.seal and shown.raw == made.raw
    if not isinstance(made, Text) or not isinstance(shown, Text):
        return False
    return bool(made.text) and shown.text == made.text and shown.seal == made.seal


class _Loom:
    """Matches a record's items with the client's, each once: by id, then by value, then by what a client's library left
    of it. Equal items are matched in order."""

    def __init__(self, record: Sequence[Item], shown: Sequence[Item]) -> None:
        self._record = record
        self._shown = _with_seals_at_home(record, [item for item in shown if not isinstance(item, REASONING_KINDS)])
        self._partners: dict[int, int] = {}
        for key_of in (_by_id, _by_value, _by_kind):
            self._match(key_of)
        self._thoughts: dict[object, deque[Sequence[Item]]] = {}
        for group in groups(shown):
            if isinstance(group[0], REASONING_KINDS):
                self._thoughts.setdefault(tuple(map(essence, group)), deque()).append(group)

    def _match(self, key_of: Callable[[Item], object]) -> None:
        taken = set(self._partners.values())
        places: dict[object, deque[int]] = {}
        for place, item in enumerate(self._shown):
            if place not in taken and (key := key_of(item)) is not None:
                places.setdefault(key, deque()).append(place)
        for at, made in enumerate(self._record):
            if not places or at in self._partners or isinstance(made, REASONING_KINDS):
                continue
            alike = places.get(key_of(made))
            if alike and (key_of is not _by_kind or _is_left_of(self._shown[alike[0]], made)):
                self._partners[at] = alike.popleft()

    def woven(self, opening: Opening) -> list[tuple[Item, int | None]]:
        """Return the items in the record's order, each with its place among the client's items, if it has one. Items
        that the record does not have stay after the same item as in the client's turn."""
        strangers = self._strangers()
        woven: list[tuple[Item, int | None]] = []
        at = 0
        for group in groups(self._record):
            is_thought = isinstance(group[0], REASONING_KINDS)
            woven += [(item, None) for item in self._own(group)] if is_thought else self._fitted(at)
            for _ in group:
                woven += strangers.get(at, ())
                at += 1
        head = _after_reasoning(woven) if opening == "thought" else 0
        woven[head:head] = strangers.get(-1, ())
        return woven

    def _own(self, group: Sequence[Item]) -> Sequence[Item]:
        """Return the client's own copy of a reasoning item if it has an equal one."""
        copies = self._thoughts.get(tuple(map(essence, group)))
        return copies.popleft() if copies else group

    def _fitted(self, at: int) -> list[tuple[Item, int | None]]:
        made = self._record[at]
        place = self._partners.get(at)
        if place is not None:
            shown = self._shown[place]
            return [(shown if self._has_copied_seal(made, shown) else _sealed_as(made, shown), place)]
        is_sealed_blank = isinstance(made, Text) and not made.text and made.seal is not None
        return [(made, None)] if is_sealed_blank or is_strange_reasoning(made) else []

    def _has_copied_seal(self, made: Item, shown: Item) -> bool:
        """Whether a call without a signature shows that of another call of its turn: goose copies it to each call of a
        parallel set, and writes each as a separate turn."""
        if not isinstance(made, ToolCall) or made.seal is not None or seal_of(shown) is None:
            return False
        others = (own for at, own in enumerate(self._record) if at not in self._partners and isinstance(own, ToolCall))
        return any(seal_essence(own) == seal_essence(shown) for own in others)

    def _strangers(self) -> dict[int, list[tuple[Item, int | None]]]:
        """Return items that the record does not have, by the record's position of the last known item before them."""
        known = {place: at for at, place in self._partners.items()}
        strangers: dict[int, list[tuple[Item, int | None]]] = {}
        last = -1
        for place, item in enumerate(self._shown):
            if place in known:
                last = max(last, known[place])
            else:
                strangers.setdefault(last, []).append((item, place))
        return strangers


def groups(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield each item alone, but items of one Responses element together."""
    start = 0
    for at in range(1, len(items) + 1):
        if at == len(items) or not _is_of_one_element(items[start], items[at]):
            yield items[start:at]
            start = at


def _is_of_one_element(one: Item, other: Item) -> bool:
    return isinstance(other, REASONING_KINDS) and bool(other.raw) and one.raw == other.raw


def _by_id(item: Item) -> object:
    match item:
        case ToolCall():
            return ("call", item.id, *visible_call(item)) if item.id else None
        case Text():
            return ("text", item.text)
        case Unknown() | ToolResult():
            name = other_name(item)
            return (type(item), getattr(item, "kind", ""), name) if name else None
        case _:
            return None


def _by_value(item: Item) -> object:
    match item:
        case ToolCall():
            return ("call", *visible_call(item))
        case Text():
            return ("text", "".join(item.text.split()))
        case Unknown() | ToolResult():
            return (type(item), getattr(item, "kind", ""), other_value(item))
        case _:
            return None


def _by_kind(item: Item) -> object:
    return item.kind if isinstance(item, Unknown) else None


def _is_left_of(shown: Item, made: Item) -> bool:
    return isinstance(shown, Unknown) and isinstance(made, Unknown) and is_part_of(shown, made)


def _sealed_as(made: Item, shown: Item) -> Item:
    """Return the client's own item, with the seal that was made for it."""
    if isinstance(made, Text) and isinstance(shown, Text):
        return _sealed_text(made, shown)
    if not isinstance(made, (ToolCall, Unknown)) or not isinstance(shown, (ToolCall, Unknown)):
        return shown
    keeps = seal_essence(shown) == seal_essence(made) or (made.seal is None and has_sentinel(shown))
    return shown if keeps else replace(shown, seal=made.seal)


def _sealed_text(made: Text, shown: Text) -> Text:
    # A seal belongs to exactly the text it was made for, including white space.
    if made.seal is not None and seal_essence(shown) != seal_essence(made):
        return replace(shown, seal=made.seal) if shown.text == made.text else made
    if shown.text != made.text and is_bare(shown):
        return replace(shown, text=made.text, raw=NO_RAW)  # prompt caches and providers also count white space
    return shown


def _with_seals_at_home(record: Sequence[Item], shown: list[Item]) -> list[Item]:
    """Return texts without the seal that the record has on an empty one. Gemini streams text, and then, for the
    signature alone, an empty text; clients join the two. Seen with pi 0.73.1 on 2026-11-15."""
    moved = {plain_token(item.seal.data) for item in record if isinstance(item, Text) and item.seal and not item.text}
    return [_unsealed(item) if _has_words_under(item, moved) else item for item in shown] if moved else shown


def _has_words_under(item: Item, seals: set[str]) -> bool:
    return isinstance(item, Text) and bool(item.text) and item.seal is not None and plain_token(item.seal.data) in seals


def _after_reasoning(woven: Sequence[tuple[Item, int | None]]) -> int:
    return next((at for at, (item, _) in enumerate(woven) if not isinstance(item, REASONING_KINDS)), len(woven))


def same_reasoning(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether two turns carry the same reasoning in the same places, ignoring their JSON."""
    if len(one) != len(other):
        return False
    return all(mine is its or essence(mine) == essence(its) for mine, its in zip(one, other, strict=True))


def essence(item: Item) -> object:
    """Return what must be equal for two items to be the same, ignoring JSON and base64 alphabets."""
    match item:
        case ReasoningText():
            return ("text", item.text, seal_essence(item), item.id)
        case ReasoningSummary():
            return ("summary", item.summary, item.id)
        case ReasoningEncrypted():
            return ("encrypted", seal_essence(item), item.id)
        case ToolCall():
            return ("call", item.name, item.arguments, item.id, item.item_id, seal_essence(item))
        case Text():
            words = item.text if item.seal else "".join(item.text.split())
            return ("words", words, seal_essence(item), item.id)
        case _:
            return (type(item).__name__, bytes(item.raw), seal_essence(item))


def seal_essence(item: Item) -> str | None:
    """Return the seal of an item. Google reads either base64 alphabet, padded or not, as its JSON mapping of bytes says
    (protobuf.dev, ProtoJSON Format, read 2026-11-15), and its own SDKs write the other one."""
    seal = seal_of(item)
    if seal is None:
        return None
    return plain_token(seal.data) if seal.format == GOOGLE_GEMINI_V1 else seal.data


def is_sealed(item: Item) -> bool:
    """Whether an item carries something that only its maker can read, or is an entry of an unknown kind."""
    if isinstance(item, (Text, ToolCall)):
        return item.seal is not None
    return seal_of(item) is not None or isinstance(item, ReasoningServerToolCall) or is_strange_reasoning(item)


def unglued(shown: Sequence[Item], record: Sequence[Item]) -> tuple[Item, ...]:
    """Return the client's items with the record's own text in place of the one that has reasoning in it."""
    texts = [replace(item, raw=NO_RAW) for item in record if isinstance(item, Text)]
    return (*texts, *(item for item in shown if not isinstance(item, Text)))
