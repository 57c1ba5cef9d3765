"""Why a turn ended and what it cost: each format has two tables, which are read and written here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import decode, encode
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.turns import Finish, FinishReason, Usage


class FinishWords(NamedTuple):
    """A format's words for the end of a turn: those it has, and which it is given for a shared reason (that for `stop`
    where there is none).

    `foreign` are words of other hosts that speak the format; they are read and not written.
    """

    known: Mapping[str, FinishReason]
    written: Mapping[FinishReason, str]
    foreign: Mapping[str, FinishReason] = {}

    def decode(self, native: str | None, items: Iterable[Item] = ()) -> Finish | None:
        """`items` are given where a format has no word for a turn that ends in calls."""
        if not native:
            return None
        reason = self.known.get(native) or self.foreign.get(native, "other")
        for item in items if reason == "stop" else ():
            if isinstance(item, ToolCall):
                reason = "tool_calls"
        return Finish(reason, native)

    def encode(self, finish: Finish | None) -> bytes:
        if finish is None:
            return b"null"
        return encode(
            finish.native if finish.native in self.known else self.written.get(finish.reason, self.written["stop"])
        )


class UsageMembers:
    """Where a format tells tokens: for each count the members that add up to it, `.` for one inside another."""

    def __init__(self, place: str, *, input: str, output: str, reasoning: str = "", cached: str = "") -> None:
        self._place = place
        self._paths = [[path.split(".") for path in paths.split()] for paths in (input, output, reasoning, cached)]
        self._decoder = msgspec.json.Decoder(_shape([path for paths in self._paths for path in paths]))

    def decode(self, raw: Raw) -> Usage:
        usage = decode(self._decoder, raw, self._place)
        counts = [0, 0, 0, 0]
        for at, paths in enumerate(self._paths):
            for path in paths:
                count: Any = usage
                for name in path:
                    count = getattr(count, name) if count is not None else None
                counts[at] += count or 0
        into, out, reasoning, cached = counts
        return Usage(into, out, reasoning, cached, raw.copy())


def _shape(paths: Sequence[Sequence[str]]) -> type[Struct]:
    """A struct with these members: numbers, or structs of them."""
    inner: dict[str, list[Sequence[str]]] = {}
    for first, *rest in paths:
        inner.setdefault(first, []).extend([rest] if rest else [])
    fields: list[tuple[str, Any, None]] = [
        (name, (_shape(deeper) if deeper else int) | None, None) for name, deeper in inner.items()
    ]
    return msgspec.defstruct("Usage", fields, gc=False)
