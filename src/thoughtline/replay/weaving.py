"""Putting a record's reasoning back among what the client still shows of a turn, each piece in its place."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.items import (
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
    Unknown,
    seal_of,
)
from thoughtline.records import Record
from thoughtline.replay.contracts import Contract
from thoughtline.replay.keys import plain_token
from thoughtline.replay.visible import is_same_call

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
    """Reasoning that stands for nothing: an empty or blank field that nobody signed."""
    return isinstance(item, ReasoningText) and not item.text.strip() and not item.signature and not item.id


def has_sentinel(item: Item) -> bool:
    match item:
        case ReasoningEncrypted():
            return item.data in SENTINELS
        case Text() | ToolCall() | Unknown():
            return item.seal is not None and item.seal.data in SENTINELS
        case _:
            return False


def with_sentinel(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with the first call said to have no signature, on purpose."""
    at = next(at for at, item in enumerate(items) if isinstance(item, ToolCall))
    return tuple(
        replace(item, seal=Seal(_SENTINEL, GOOGLE_GEMINI_V1)) if number == at and isinstance(item, ToolCall) else item
        for number, item in enumerate(items)
    )


def without_reasoning(items: Sequence[Item]) -> tuple[Item, ...]:
    """What is left when no reasoning may stand: neither items nor seals."""
    return tuple(_unsealed(item) for item in items if not isinstance(item, REASONING_KINDS))


def _unsealed(item: Item) -> Item:
    return replace(item, seal=None) if isinstance(item, (Text, ToolCall, Unknown)) and item.seal else item


def as_text(items: Sequence[Item], contract: Contract) -> tuple[Item, ...]:
    """A record's items for a provider that did not make them: its readable reasoning as one text, no seals."""
    text = ""
    bare = []
    for item in items:
        if isinstance(item, ReasoningText):
            text += item.text
        elif isinstance(item, ReasoningSummary):
            text += item.summary
        elif not isinstance(item, REASONING_KINDS) and not _is_strange_reasoning(item):
            bare.append(_unsealed(item))
    return (ReasoningText(text, None, contract.dialect.reasoning_format), *bare) if text else tuple(bare)


def weave(record: Sequence[Item], shown: Sequence[Item]) -> tuple[Item, ...]:
    """The turn as it was: the record's reasoning and seals, around the items that the client shows."""
    return _weave_in_order(record, shown) or _weave_in_any_order(record, shown)


def _weave_in_order(record: Sequence[Item], shown: Sequence[Item]) -> tuple[Item, ...] | None:
    """The same for a client that changed nothing but to leave out reasoning, as nearly all do; None for any other."""
    rest = [item for item in shown if not isinstance(item, REASONING_KINDS)]
    woven: list[Item] = []
    at = 0
    for item in record:
        if not isinstance(item, REASONING_KINDS):
            if at == len(rest) or not _is_as_made(rest[at], item):
                return None
            item = rest[at]
            at += 1
        woven.append(item)
    return tuple(woven) if at == len(rest) else None


def _is_as_made(shown: Item, made: Item) -> bool:
    if isinstance(made, ToolCall):
        if not isinstance(shown, ToolCall) or shown.seal != made.seal:
            return False
        return shown.id == made.id and shown.name == made.name and shown.arguments == made.arguments
    if not isinstance(made, Text) or not isinstance(shown, Text):
        return False
    return bool(made.text) and shown.text == made.text and shown.seal == made.seal


def _weave_in_any_order(record: Sequence[Item], shown: Sequence[Item]) -> tuple[Item, ...]:
    order = _with_seals_at_home(record, [item for item in shown if not isinstance(item, REASONING_KINDS)])
    rest = order.copy()
    woven: list[Item] = []
    for item in record:
        match item:
            case ReasoningText() | ReasoningSummary() | ReasoningEncrypted() | ReasoningServerToolCall():
                woven.append(item)
            case ToolCall():
                _weave_call(item, rest, woven)
            case Text():
                _weave_text(item, rest, woven)
            case Unknown() if item.seal is not None:
                _weave_unknown(item, rest, woven)
            case _:
                pass
    return _with_strangers(woven, rest, order)


def _with_seals_at_home(record: Sequence[Item], shown: list[Item]) -> list[Item]:
    """Texts without the seal that the record has on an empty one: clients join what Gemini streams in two parts, the
    words and then, for the signature alone, an empty text. Seen of pi 0.73.1 on 2026-11-15."""
    moved = {plain_token(item.seal.data) for item in record if isinstance(item, Text) and item.seal and not item.text}
    return [_unsealed(item) if _has_words_under(item, moved) else item for item in shown] if moved else shown


def _has_words_under(item: Item, seals: set[str]) -> bool:
    return isinstance(item, Text) and bool(item.text) and item.seal is not None and plain_token(item.seal.data) in seals


def _with_strangers(woven: list[Item], rest: list[Item], order: Sequence[Item]) -> tuple[Item, ...]:
    """What the record does not know stands where the client had it: after the same item as before."""
    for stranger in rest:
        before = order[: _index(order, stranger)]
        anchors = [at for at, item in enumerate(woven) if any(_same_place(item, known) for known in before)]
        woven.insert(anchors[-1] + 1 if anchors else _after_reasoning(woven), stranger)
    return tuple(woven)


def _index(items: Sequence[Item], wanted: Item) -> int:
    return next(at for at, item in enumerate(items) if item is wanted)


def _same_place(item: Item, known: Item) -> bool:
    return item is known or (isinstance(item, (Text, ToolCall)) and bool(item.raw) and item.raw is known.raw)


def _after_reasoning(items: Sequence[Item]) -> int:
    count = 0
    while count < len(items) and isinstance(items[count], REASONING_KINDS):
        count += 1
    return count


def _weave_call(call: ToolCall, rest: list[Item], woven: list[Item]) -> None:
    """The client's own call, with the seal that was made for it. A call that was changed is another call."""
    same = [item for item in rest if isinstance(item, ToolCall) and is_same_call(item, call)]
    if same:
        shown = next((item for item in same if item.id == call.id), same[0])
        _take(rest, shown)
        keeps = shown.seal == call.seal or (call.seal is None and has_sentinel(shown))
        woven.append(shown if keeps else replace(shown, seal=call.seal))


def _weave_text(text: Text, rest: list[Item], woven: list[Item]) -> None:
    if not text.text:
        empty = next((item for item in rest if isinstance(item, Text) and not item.text), None)
        if empty is not None:
            _take(rest, empty)
        if text.seal is not None:
            woven.append(empty if empty is not None and _seal_of(empty) == text.seal else text)
        return
    words = "".join(text.text.split())
    shown = next((item for item in rest if isinstance(item, Text) and "".join(item.text.split()) == words), None)
    if shown is None:
        return
    _take(rest, shown)
    # A seal belongs to the very text it was made for, white space included.
    if text.seal is not None and shown.seal != text.seal:
        woven.append(replace(shown, seal=text.seal) if shown.text == text.text else text)
    elif shown.text != text.text and not shown.raw:
        woven.append(replace(shown, text=text.text))  # white space is what prompt caches and providers count, too
    else:
        woven.append(shown)


def _seal_of(item: Item) -> object:
    return item.seal if isinstance(item, Text) else None


def _weave_unknown(item: Unknown, rest: list[Item], woven: list[Item]) -> None:
    shown = next((one for one in rest if isinstance(one, Unknown) and one.kind == item.kind), None)
    if shown is not None:
        _take(rest, shown)
        woven.append(shown if shown.seal == item.seal else replace(shown, seal=item.seal))


def _take(rest: list[Item], item: Item) -> None:
    del rest[_index(rest, item)]


def unnamed(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items of a Responses step without ids: what has no name is not checked against its partners."""
    return tuple(_without_name(item) for item in items)


def _without_name(item: Item) -> Item:
    match item:
        case ToolCall() if item.item_id is not None:
            return replace(item, item_id=None)
        case Text() if item.id is not None:
            return replace(item, id=None)
        case ReasoningText() | ReasoningSummary() | ReasoningEncrypted() if item.id is not None:
            return replace(item, id=None)
        case _:
            return item


def is_named(item: Item) -> bool:
    match item:
        case ToolCall():
            return item.item_id is not None
        case Text() | ReasoningText() | ReasoningSummary() | ReasoningEncrypted():
            return item.id is not None
        case _:
            return False


def same_reasoning(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether two turns carry the same reasoning in the same places, whatever their JSON looks like."""
    if len(one) != len(other):
        return False
    return all(mine is its or _essence(mine) == _essence(its) for mine, its in zip(one, other, strict=True))


def _essence(item: Item) -> object:
    match item:
        case ReasoningText():
            return ("text", item.text, item.signature or None, item.id)
        case ReasoningSummary():
            return ("summary", item.summary, item.id)
        case ReasoningEncrypted():
            return ("encrypted", item.data, item.id)
        case ToolCall():
            return ("call", item.name, item.arguments, item.id, item.item_id, item.seal)
        case Text():
            return ("words", item.text, item.seal, item.id)
        case _:
            return (type(item).__name__, bytes(item.raw), getattr(item, "seal", None))


def is_sealed(item: Item) -> bool:
    """Whether an item carries anything that only its maker can read, or is an entry of a kind we don't know."""
    if isinstance(item, (Text, ToolCall)):
        return item.seal is not None
    return seal_of(item) is not None or isinstance(item, ReasoningServerToolCall) or _is_strange_reasoning(item)


def _is_strange_reasoning(item: Item) -> bool:
    return isinstance(item, Unknown) and item.kind.startswith("reasoning.")


def unglued(shown: Sequence[Item], record: Sequence[Item]) -> tuple[Item, ...]:
    """The client's items with the record's own text for the one that has reasoning glued to it."""
    texts = [replace(item, raw=NO_RAW) for item in record if isinstance(item, Text)]
    return (*texts, *(item for item in shown if not isinstance(item, Text)))


def paired(items: tuple[Item, ...], record: Record) -> tuple[Item, ...]:
    """All names of a step, or none: half a pair is refused."""
    names = {item.id for item in record.items if isinstance(item, Text)}
    names |= {item.item_id for item in record.items if isinstance(item, ToolCall)}
    shown = [
        item.id if isinstance(item, Text) else item.item_id for item in items if isinstance(item, (Text, ToolCall))
    ]
    is_whole = bool(shown) and all(name is not None and name in names for name in shown)
    return items if is_whole else unnamed(items)
