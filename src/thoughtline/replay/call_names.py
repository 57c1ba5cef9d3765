"""Calls and their results on the wire: ids as their maker wrote them, and each result once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.items import Item, ToolCall, ToolResult
from thoughtline.records import Record
from thoughtline.replay.visible import is_same_call
from thoughtline.turns import Turn

_SMUGGLED = "__thought__"
"""LiteLLM hides Gemini's signature in the id of a call, behind this."""


class CallNames:
    """The ids that clients renamed, and what they were."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}

    def learn(self, shown: Sequence[Item], record: Record) -> None:
        """A call under another id than the one it was made with."""
        made = [item for item in record.items if isinstance(item, ToolCall)]
        calls = [item for item in shown if isinstance(item, ToolCall)]
        for call, own in zip(calls, made, strict=False):
            if is_same_call(call, own) and call.id and own.id and call.id != own.id:
                self._own[call.id] = own.id

    def mended(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items under the ids their maker knows; the very same ones if these are."""
        for item in items:
            if isinstance(item, (ToolCall, ToolResult)) and self._mended(item) is not item:
                return tuple(map(self._mended, items))
        return items

    def _mended(self, item: Item) -> Item:
        """The item under the id its maker knows, and without a signature that another gateway hid in it."""
        match item:
            case ToolCall(id=str() as name) if (own := self._name(name)) != name:
                return replace(item, id=own)
            case ToolResult(call_id=str() as name) if (own := self._name(name)) != name:
                return replace(item, call_id=own)
            case _:
                return item

    def _name(self, name: str) -> str:
        own = self._own.get(name, name)
        return own.split(_SMUGGLED)[0] or name if _SMUGGLED in own else own


def unrepeated(turns: Sequence[Turn], position: int, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items of a turn without results that stand there twice. As many as there were calls are never too many."""
    results = [item for item in items if isinstance(item, ToolResult)] if len(items) > 1 else ()
    if len(results) < 2 or len(results) <= sum(isinstance(item, ToolCall) for item in _before(turns, position)):
        return items
    seen: set[tuple[str | None, str | None, bytes]] = set()
    kept = []
    for item in items:
        if isinstance(item, ToolResult):
            said = (item.call_id, item.name, bytes(item.content))
            if said in seen:
                continue
            seen.add(said)
        kept.append(item)
    return tuple(kept)


def _before(turns: Sequence[Turn], position: int) -> tuple[Item, ...]:
    return turns[position - 1].items if position > 0 and turns[position - 1].role == "assistant" else ()
