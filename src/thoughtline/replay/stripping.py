"""Taking out of a turn what must not go up: a record's reasoning, seals that were refused."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from thoughtline.replay.keys import seal_key
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
    is_envelope,
    plain_token,
    reasoning_of,
    seal_of,
)
from thoughtline.values.records import Key, Record


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
