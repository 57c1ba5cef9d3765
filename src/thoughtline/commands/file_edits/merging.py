"""Computes a document's content after an addition, independent of its language."""

from __future__ import annotations

import re
from typing import Any

OURS = "thoughtline"
NAMES = ("name", "model_name")


class Uneditable(Exception):
    """A file whose text can't be changed to the wanted content. It stays as it is."""


def lines_in(text: str) -> list[str]:
    """The lines of a file with their ends. Only a line feed ends one: strings may contain other such characters."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def merged(old: Any, new: Any) -> Any:
    """Objects are merged by key, lists of named objects by name, new ones first; anything else is replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        joined = {key: value if key == OURS else merged(old.get(key), value) for key, value in new.items()}
        return {**old, **joined}
    if isinstance(old, list) and isinstance(new, list) and new and all(name_of(item) for item in new):
        added = {name_of(item): item for item in new}
        known = {name_of(item) for item in old}
        first = [item for name, item in added.items() if name not in known]
        return first + [added.get(name_of(item), item) for item in old]
    return new


def name_of(item: Any) -> str | None:
    """The name of an object in a list."""
    if not isinstance(item, dict):
        return None
    return next((item[key] for key in NAMES if isinstance(item.get(key), str)), None)
