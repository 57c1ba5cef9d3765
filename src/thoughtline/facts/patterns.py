"""Patterns that an overlay brings: whether they can be read, and are fast on every text.

The patterns of the package are attacked by a test. One from elsewhere must be of a form that can't be slow: at most one
repeat without a limit in each alternative, and no repeated group, which backtracks in more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from thoughtline.providers.refusals import RefusalTemplate

MAX_CHARS = 2000
_ESCAPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\Z)", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d*,\d*\}|\{\d{2,}\})")
_OPEN = re.compile(r"[*+]|\{\d*,\}|\{(?:\d*,)?\d{3,}\}")
_BACKWARD = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")


def wrong_with(pattern: str) -> str | None:
    """Return why a pattern is not accepted; None if it is."""
    if len(pattern) > MAX_CHARS:
        return f"a pattern has at most {MAX_CHARS:,} characters"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"this is no pattern: {error}"
    if _BACKWARD.search(pattern):
        return "a pattern can't refer to what it has matched"
    shape = _ESCAPED.sub("x", pattern)
    if _REPEATED_GROUP.search(shape):
        return "a pattern with a repeated group can be slow"
    if any(len(_OPEN.findall(part)) > 1 for part in shape.split("|")):
        return "a pattern with several open or long repeats (*, +, {1,200}) in one alternative can be slow"
    return None


# --- the places of patterns in an entry -------------------------------------------------------------------------------

_MEMBERS = frozenset(
    {"hosts", "models", "but", "wanted_models", "unread", "forces_any", "thinks_if_asked", "never", "takes_both"}
    | {"accounts_differ", "needs_marks", "names", "sees", "prefix"}
)
"""Members that are patterns if they are text, at any depth."""

_EXPRESSION = re.compile(r"<(?:\w{1,20}:)?([^<>]*)>")
_MAX_TEMPLATE = 10_000


def wrong_within(member: str, value: Any) -> str | None:
    """Return why a member of an entry is not accepted as one of its patterns; None if it is."""
    return next(filter(None, map(wrong_with, _patterns_in(member, value))), None)


def wrong_with_template(template: str) -> str | None:
    """Return why the template of a refusal is not accepted; None if it is."""
    try:
        pattern = RefusalTemplate("missing", "pass_on", template).sentence.pattern
    except (KeyError, re.error, RecursionError) as error:
        return f"this template can't be read: {error}"
    if len(pattern) > _MAX_TEMPLATE:
        return f"a template has at most {_MAX_TEMPLATE:,} characters"
    return next(filter(None, map(wrong_with, _EXPRESSION.findall(template))), None)


def _patterns_in(member: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if member in _MEMBERS:
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _patterns_in(name, inner)
    elif member == "asks":
        yield from (one[0] for one in value if isinstance(one, list) and one and isinstance(one[0], str))
    elif isinstance(value, list):
        for inner in value:
            if not isinstance(inner, str):  # `sampling.names` is a list of members
                yield from _patterns_in(member, inner)
