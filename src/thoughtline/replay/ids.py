"""What an id proves: whether it is globally unique, and which parts of it are random."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from thoughtline.values.items import Item, ToolCall

_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_COUNTED = re.compile(r"[A-Z]?[a-z]+[0-9]{1,2}|0[0-9]*")
_LONG_WORD = 9
"""A long run of letters in both cases counts as random without digits, like eight letters and digits. Mistral's ids
have nine characters."""


def is_distinctive(call_id: str, call_name: str = "") -> bool:
    """Whether an id is random enough to be globally unique: `call_1` and `functions.bash:0` are not.

    The part that repeats the tool's name does not count.
    """
    return bool(random_parts(call_id, call_name))


def random_parts(call_id: str, call_name: str = "") -> list[str]:
    """Return the random parts of an id."""
    if call_name and call_name in call_id:
        call_id = call_id.replace(call_name, ".")
    return list(filter(_is_random, _RUN.findall(call_id)))


def _is_random(run: str) -> bool:
    """Whether a run is random: letters and digits, but not a word with a number; many digits, but not a counter; or
    long and in both cases, but not camelCase, in which fewer than a quarter of the letters are capitals."""
    letters = sum(map(str.isalpha, run))
    if letters < len(run):
        return (letters == 0 or letters >= 2) and _COUNTED.fullmatch(run) is None
    capitals = sum(map(str.isupper, run))
    return len(run) >= _LONG_WORD and 4 * min(capitals, letters - capitals) >= len(run)


def unique_ids(items: Sequence[Item]) -> Iterator[str]:
    """Yield the call ids that are globally unique."""
    for item in items:
        if isinstance(item, ToolCall) and item.id and is_distinctive(item.id, item.name):
            yield item.id


def unique_forms(items: Sequence[Item]) -> dict[str, str]:
    """Return the same ids with their forms: `call_<24>`. Two ids of one form come from the same source."""
    forms = {}
    for item in items:
        if isinstance(item, ToolCall) and item.id and (parts := random_parts(item.id, item.name)):
            form = item.id
            for part in parts:
                form = form.replace(part, f"<{len(part)}>", 1)
            forms[item.id] = form
    return forms
