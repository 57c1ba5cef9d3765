"""Decides whether a client's turn is good as it is, given its record; what to remove from it, and what it may
inherit."""

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
    """Whether everything before a step is the same as when the step was made. A compaction in the step hides that."""
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
    """Whether the client has all reasoning items, in any order."""
    own, made = (sorted(repr(essence(item)) for item in reasoning_of(turn)) for turn in (shown, target))
    return bool(own) and own == made and len(shown) == len(target)


def _unnamed(items: Items) -> list[Item]:
    """Return the turn with its reasoning without ids: where ids form no pairs, a lost one does not matter."""
    return [replace(item, id=None) if isinstance(item, REASONING_KINDS) and item.id else item for item in items]


def _is_own_words(shown: Items, target: Items) -> bool:
    """Whether plain text differs from the original by more than damage: then the client changed it deliberately."""
    own = _text_of(shown)
    return bool(own.strip()) and "".join(own.split()) not in "".join(_text_of(target).split())


def _is_all_google_wants(shown: Items, target: Items) -> bool:
    """Whether every signature is in its place. The summary of a thought may be in pieces, or missing if there is one,
    and a signature may also be on another call (ruby_llm writes it on each of a parallel set, and gets answers)."""
    shown = _without_copies(shown)
    if same_reasoning(_joined(target), _joined(shown)):
        return True
    if not same_reasoning(*([item for item in turn if not is_unsigned(item)] for turn in (target, shown))):
        return False
    own, whole = ("".join(_text_of(turn).split()) for turn in (shown, target))
    return own != whole and own in whole and any(seal_of(item) for item in target)


def _without_copies(items: Items) -> Items:
    """Return the turn with each signature only on the first item that has it."""
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
    """Return the turn with each run of unsigned reasoning as one item, without white space."""
    joined: list[Item] = []
    for is_thought, held in groupby(items, is_unsigned):
        run = tuple(held)
        joined += (ReasoningText("".join(_text_of(run).split())),) if is_thought else run
    return joined


def is_unsigned(item: Item) -> bool:
    """Readable reasoning without a signature."""
    return isinstance(item, ReasoningText) and not item.signature


def _text_of(items: Items) -> str:
    return "".join([item.text for item in items if isinstance(item, ReasoningText)])


def without_thoughts(items: Items) -> Items:
    """Return a record's text and calls, with their seals."""
    return tuple(item for item in items if not isinstance(item, REASONING_KINDS))


def are_said_in(items: Items, records: Sequence[Record]) -> bool:
    """Whether a turn has the text and calls of these records, in order, and no others."""
    made = [item for record in records for item in record.items if isinstance(item, (Text, ToolCall))]
    return visible_of(made) == visible_of([item for item in items if isinstance(item, (Text, ToolCall))])


# --- removing what must not be sent: a record's reasoning, refused seals ----------------------------------------------


def without_record(items: Sequence[Item], record: Record) -> tuple[Item, ...]:
    """Return the items without their parts of a record."""
    known = {plain_token(seal.data) for item in record.items if (seal := seal_of(item)) is not None}
    texts = {item.text.strip() for item in record.items if isinstance(item, ReasoningText)}
    return tuple(bare for item in items if (bare := _without_seal(item, known, texts, record)) is not None)


def _without_seal(item: Item, known: set[str], texts: set[str], record: Record) -> Item | None:
    """Return the item without this record's reasoning, or None if nothing is left. Reasoning of a truncated turn is
    always removed."""
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
    """Whether a seal was refused, or is our own envelope for a client of another format: no provider reads that."""
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


# --- what a turn without reasoning may inherit from earlier turns -----------------------------------------------------
# Only real reasoning is inherited, never made up: the latest that is not empty. Empty reasoning, or a blank filler,
# never replaces real reasoning. If all earlier reasoning is empty, empty is inherited; if there is none, nothing is.


def inheriting(ladder: tuple[Rung, ...]) -> tuple[Rung, ...]:
    """Return a ladder with inheritance: before a blank, and after reasoning known to have been empty."""
    rest = tuple(rung for rung in ladder if rung not in ("empty", "inherit"))
    return (*(rung for rung in ladder if rung == "empty"), "inherit", *rest)


def inherit(turns: Sequence[Turn], blank_at: Collection[int] = ()) -> dict[int, ReasoningText]:
    """Return the reasoning that turns with calls but without reasoning inherit, by position.

    `blank_at` names turns with `null` in place of reasoning, which typed items can't show: reasoning was looked for
    there and found empty, and the turn still lacks it.
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
    """Return all readable reasoning of a turn as one text without raw JSON.

    A signature is not copied: it is valid for its own turn only.
    """
    texts = [item for item in turn.items if isinstance(item, ReasoningText)]
    return ReasoningText("".join(item.text for item in texts), format=texts[0].format) if texts else None


def _has_reasoning(turn: Turn) -> bool:
    """Whether a turn has reasoning: in either placement, readable or not, and also of an unknown kind."""
    sealed = any(seal_of(item) is not None for item in turn.items)
    return sealed or bool(reasoning_of(turn.items)) or any(map(is_strange_reasoning, turn.items))
