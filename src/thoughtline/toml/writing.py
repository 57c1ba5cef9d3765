"""Values as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")


def write_table(path: tuple[str, ...], members: Mapping[str, object]) -> str:
    """A table with its header, one member per line."""
    lines = [f"{key(name)} = {value(member)}" for name, member in members.items()]
    return "\n".join([f"[{'.'.join(map(key, path))}]", *lines, ""])


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else value(name)


def value(given: object) -> str:
    """A value on one line. Text with backslashes is a literal string if possible, so that patterns stay readable."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, (int, float)):
        return repr(given)
    if isinstance(given, str):
        is_literal = "\\" in given and _LITERAL.fullmatch(given) is not None
        return f"'{given}'" if is_literal else json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(given, Mapping):
        members = ", ".join(f"{key(str(name))} = {value(member)}" for name, member in given.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(given, (list, tuple)):
        return f"[{', '.join(map(value, given))}]"
    raise TypeError(f"TOML has no {type(given).__name__}")
