"""Calls and their results on the wire: ids as their maker wrote them, and each result once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.replay.visible import is_same_call
from thoughtline.values.items import Item, ToolCall, ToolResult
from thoughtline.values.records import Record
from thoughtline.values.turns import Turn

_SMUGGLED = "__thought__"
"""LiteLLM hides Gemini's signature in the id of a call, behind this."""


class CallNames:
    """The ids that clients renamed, and what they were."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._own)

    def learn(self, shown: Sequence[Item], record: Record) -> None:
        """A call under another id than the one it was made with. An id that the maker gave to any call is right."""
        made = [item for item in record.items if isinstance(item, ToolCall)]
        names = {own.id for own in made}
        calls = [item for item in shown if isinstance(item, ToolCall)]
        for call, own in zip(calls, made, strict=False):
            if call.id and own.id and call.id not in names and is_same_call(call, own):
                self._own[call.id] = own.id

    def are_good(self, items: tuple[Item, ...]) -> bool:
        """Whether a turn can go as it is: its ids are their maker's, and it has one result at most."""
        results = 0
        for item in items:
            if isinstance(item, ToolCall):
                name = item.id
            elif isinstance(item, ToolResult):
                name = item.call_id
                results += 1
            else:
                continue
            if name is not None and (name in self._own or _SMUGGLED in name):
                return False
        return results < 2

    def mended(self, item: Item) -> Item:
        """The item under the id its maker knows, and without a signature that another gateway hid in it."""
        match item:
            case ToolCall(id=str() as name) if (own := self._name(name)) != name:
                return replace(item, id=own)
            case ToolResult(call_id=str() as name) if (own := self._name(name)) != name:
                return replace(item, call_id=own)
            case _:
                return item

    def _name(self, name: str) -> str:
        return self._own.get(name, name).split(_SMUGGLED)[0] or name


def unrepeated(turns: Sequence[Turn], position: int, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items of a turn without results that stand there twice. As many as there were calls are never too many."""
    results = [item for item in items if isinstance(item, ToolResult)]
    calls = [item for item in _before(turns, position) if isinstance(item, ToolCall)]
    if len(results) <= max(1, len(calls)):
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
