"""How a request asks the model to think, and how to remove that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from thoughtline.formats.json_text import members
from thoughtline.providers.knobs import ThinkingMode
from thoughtline.values.turns import ThinkingSwitch

MemberEdit: TypeAlias = tuple[str, bytes | None]
"""A top-level member of a request and its JSON; None removes it."""


class SettingPlace(NamedTuple):
    """Where a request that has other settings too has the one for thinking.

    `spellings` are the names of the member that holds it; `replaced` are members with no other content; `stale` are
    settings inside a member that also ask for thinking.
    """

    spellings: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def edit(self, body: bytes, path: tuple[str, ...], value: object) -> MemberEdit:
        """The member with a value set inside it. Other switches of thinking in it are removed, other settings stay."""
        given: dict[str, Any] = msgspec.json.decode(body)
        name = path[0]
        if name in self.spellings:
            name = next((one for one in self.spellings if one in given), name)
        for step in reversed(path[1:]):
            value = {step: value}
        held = given.get(name)
        if isinstance(value, dict) and len(path) > 1 and name not in self.replaced and isinstance(held, dict):
            value = {**{key: one for key, one in held.items() if key not in self.stale}, **value}
        return name, msgspec.json.encode(value)


class ThinkingModes(NamedTuple):
    """The values at `switch` that select how to think. `edits` write these settings, by path, in place of those in a
    request.
    """

    words: Mapping[ThinkingSwitch, ThinkingMode]
    switch: tuple[str, ...]
    edits: Callable[[bytes, Mapping[tuple[str, ...], object]], list[MemberEdit]]


def without(*names: str) -> Callable[[bytes], list[MemberEdit]]:
    """Removes those of these members that a request has."""

    def edits(body: bytes) -> list[MemberEdit]:
        given = members(body)
        return [(name, None) for name in names if name in given]

    return edits
