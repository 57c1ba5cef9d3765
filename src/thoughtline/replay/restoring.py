"""Whether what the client sent of a turn is good as it is, given its record; what must be taken out of it, and what it
may borrow from others."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from itertools import groupby

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.providers import Contract, Rung
from thoughtline.providers.contract import has_calls
from thoughtline.replay.keys import ModelStep, seal_key
from thoughtline.replay.links import is_compaction
from thoughtline.replay.visible import visible_of
from thoughtline.replay.weaving import essence, same_reasoning
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
    is_envelope,
    is_strange_reasoning,
    plain_token,
    reasoning_of,
    seal_of,
)
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import FormatName, Turn

Items = tuple[Item, ...]


def is_behind_its_prefix(step: ModelStep, record: Record, contract: Contract) -> bool:
    """Whether all that stands before a step is as it was when the step was made. A compaction in it hides that."""
    if (step.spot.place() if contract.binds_silently else step.prefix) in record.keys:
        return True
    return any(map(is_compaction, step.items))


def is_good(shown: Items, target: Items, contract: Contract, format: FormatName) -> bool:
    """Whether a turn lost nothing that its provider wants back."""
    if same_reasoning(target, shown):
        return True
    if contract.takes == "text":
        return _is_own_words(shown, target)
    if contract.scope == "nowhere" and _has_all(shown, target):
        return True
    if contract.scope != "pairs" and same_reasoning(_unnamed(target), _unnamed(shown)):
        return True
    return "thoughts_in_pieces" in FORMATS[format].quirks and _is_all_google_wants(shown, target)


def _has_all(shown: Items, target: Items) -> bool:
    """Whether the client has every thought, in whichever order."""
    own, made = (sorted(repr(essence(item)) for item in reasoning_of(turn)) for turn in (shown, target))
    return bool(own) and own == made and len(shown) == len(target)


def _unnamed(items: Items) -> list[Item]:
    """The turn with its thoughts under no names: where nothing pairs by names, a lost one is no loss."""
    return [replace(item, id=None) if isinstance(item, REASONING_KINDS) and item.id else item for item in items]


def _is_own_words(shown: Items, target: Items) -> bool:
    """Plain text that differs from the original by more than damage is the client's own business."""
    own = _text_of(shown)
    return bool(own.strip()) and "".join(own.split()) not in "".join(_text_of(target).split())


def _is_all_google_wants(shown: Items, target: Items) -> bool:
    """Every signature is in its place; the summary of a thought may be in pieces, or missing where there is one, and a
    signature may stand on another call too (ruby_llm writes it on each of a parallel set, and is answered)."""
    shown = _without_copies(shown)
    if same_reasoning(_joined(target), _joined(shown)):
        return True
    if not same_reasoning(*([item for item in turn if not is_unsigned(item)] for turn in (target, shown))):
        return False
    own, whole = ("".join(_text_of(turn).split()) for turn in (shown, target))
    return own != whole and own in whole and any(seal_of(item) for item in target)


def _without_copies(items: Items) -> Items:
    """The turn with each signature on the first item that has it."""
    seen: set[str] = set()
    kept: list[Item] = []
    for item in items:
        if isinstance(item, ToolCall) and item.seal is not None:
            token = plain_token(item.seal.data)
            item = replace(item, seal=None) if token in seen else item
            seen.add(token)
        kept.append(item)
    return tuple(kept)


def _joined(items: Items) -> list[Item]:
    """The turn with each run of unsigned thoughts as one, without white space."""
    joined: list[Item] = []
    for is_thought, held in groupby(items, is_unsigned):
        run = tuple(held)
        joined += (ReasoningText("".join(_text_of(run).split())),) if is_thought else run
    return joined


def is_unsigned(item: Item) -> bool:
    """Thinking in the clear that nobody signed."""
    return isinstance(item, ReasoningText) and not item.signature


def _text_of(items: Items) -> str:
    return "".join([item.text for item in items if isinstance(item, ReasoningText)])


def without_thoughts(items: Items) -> Items:
    """A record's words and calls, seals and all."""
    return tuple(item for item in items if not isinstance(item, REASONING_KINDS))


def are_said_in(items: Items, records: Sequence[Record]) -> bool:
    """Whether a turn has the words and calls of these records, one after the other, and no others."""
    made = [item for record in records for item in record.items if isinstance(item, (Text, ToolCall))]
    return visible_of(made) == visible_of([item for item in items if isinstance(item, (Text, ToolCall))])


# --- taking out what must not go up: a record's reasoning, seals that were refused ------------------------------------


def without_record(items: Sequence[Item], record: Record) -> tuple[Item, ...]:
    """The items without what they have of a record."""
    known = {plain_token(seal.data) for item in record.items if (seal := seal_of(item)) is not None}
    texts = {item.text.strip() for item in record.items if isinstance(item, ReasoningText)}
    return tuple(bare for item in items if (bare := _without_seal(item, known, texts, record)) is not None)


def _without_seal(item: Item, known: set[str], texts: set[str], record: Record) -> Item | None:
    """The item without what it has of a record; None if it was nothing else. Of a turn cut short nothing is good."""
    if isinstance(item, REASONING_KINDS):
        seal = seal_of(item)
        is_known = seal is not None and plain_token(seal.data) in known
        is_text = isinstance(item, ReasoningText) and item.text.strip() in texts
        is_named = item.id is not None and any(item.id == own.id for own in reasoning_of(record.items))
        return None if is_known or is_text or is_named or not record.is_complete else item
    seal = seal_of(item)
    if seal is None or plain_token(seal.data) not in known:
        return item
    return replace(item, seal=None) if isinstance(item, (Text, ToolCall, Unknown)) else item


def is_refused(item: Item, refused: Set[Key]) -> bool:
    """Also what we have sealed ourselves, for a client of another format than its maker's: nobody else reads it."""
    seal = seal_of(item)
    if seal is None:
        return False
    return is_envelope(seal.data) or (bool(refused) and seal_key(seal.data) in refused)


def without_refused(items: tuple[Item, ...], refused: Set[Key]) -> tuple[Item, ...]:
    return tuple(bare for item in items if (bare := _unless_refused(item, refused)) is not None)


def _unless_refused(item: Item, refused: Set[Key]) -> Item | None:
    if not is_refused(item, refused):
        return item
    return replace(item, seal=None) if isinstance(item, (Text, ToolCall, Unknown)) else None


# --- what a turn without reasoning may borrow from the turns before it ------------------------------------------------
# Only real reasoning is borrowed, never made up: the latest that is not empty. An empty one, or a blank that somebody
# put in its place, never covers a real one; where all that was ever there is empty, empty is what is borrowed; where
# nothing was ever there, nothing is.


def inheriting(ladder: tuple[Rung, ...]) -> tuple[Rung, ...]:
    """A ladder with inheritance on it: before a blank, after what is known to have been empty."""
    rest = tuple(rung for rung in ladder if rung not in ("empty", "inherit"))
    return (*(rung for rung in ladder if rung == "empty"), "inherit", *rest)


def inherit(turns: Sequence[Turn], blank_at: Collection[int] = ()) -> dict[int, ReasoningText]:
    """Which assistant turns that call tools and lack reasoning get which, by position.

    `blank_at` names turns whose wire says "none" where reasoning would stand (`null`), which typed items can't show:
    reasoning was looked for there and found empty, and the turn still lacks it.
    """
    latest: ReasoningText | None = None
    given: dict[int, ReasoningText] = {}
    for position, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        own = _thought_of(turn) or (ReasoningText("") if position in blank_at else None)
        if own is not None and (own.text.strip() or latest is None):
            latest = own
        if latest is not None and has_calls(turn) and not _has_reasoning(turn):
            given[position] = latest
    return given


def _thought_of(turn: Turn) -> ReasoningText | None:
    """All that a turn thought in the clear, as one text that no wire has seen.

    A signature stays where it is: it vouches for its own turn and for no other.
    """
    texts = [item for item in turn.items if isinstance(item, ReasoningText)]
    return ReasoningText("".join(item.text for item in texts), format=texts[0].format) if texts else None


def _has_reasoning(turn: Turn) -> bool:
    """In either placement, readable or not, and also of a kind we don't know."""
    sealed = any(seal_of(item) is not None for item in turn.items)
    return sealed or bool(reasoning_of(turn.items)) or any(map(is_strange_reasoning, turn.items))
