"""What every encoder asks of an item: whether its JSON still says it, and whether its seal may go where it is sent."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Text, ToolCall, Unknown

Decode = Callable[[Raw, Dialect], Item]


def as_it_came(item: Item, decode: Decode, dialect: Dialect) -> Item | None:
    """The item that its JSON is in this format; None if it has none, or that of another format."""
    if not item.raw:
        return None
    try:
        return decode(item.raw, dialect)
    except DecodeError:
        return None


def require_own(item: Item, dialect: Dialect) -> None:
    """Raises `ForeignSeal` for an item with a seal that the server can't read."""
    match item:
        case ReasoningText(signature=str()) | ReasoningEncrypted():
            made_by = item.format
        case Text() | ToolCall() | Unknown() if item.seal is not None:
            made_by = item.seal.format
        case _:
            return
    if made_by != dialect.reasoning_format:
        raise ForeignSeal(f"{made_by} reasoning can't go to a server that reads {dialect.reasoning_format}")
