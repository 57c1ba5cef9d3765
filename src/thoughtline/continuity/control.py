"""Whether and how a request is continued: what settings say, and what its own header says over them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from thoughtline.continuity.injection import Terms
from thoughtline.continuity.tags import TagMode
from thoughtline.providers import Dialect

HEADER = b"x-thoughtline-continuity"
"""`off`, `handoff` or `always`; anything else says nothing."""


def terms_for(terms: Terms, is_enabled: bool, header: bytes = b"", *settings: str | None) -> Terms | None:
    """The terms for one request; None if nothing is to be quoted in it.

    Its header says it, else the first of the narrower settings that says anything, else what is set for all.
    """
    for told in (header.strip().lower().decode("latin-1"), *settings):
        match told:
            case "off":
                return None
            case "handoff" | "always":
                return replace(terms, mode=told)
            case _:
                pass
    return terms if is_enabled else None


def told_for(model: str, told: Mapping[str, str]) -> str | None:
    """What is said for a `provider/model` by the name that fits it best; in a name `*` stands for anything.

    A name without one fits best, then the one with the most letters, then the one that is said first. Case doesn't
    matter.
    """
    fitting = [name for name in told if _fits(model, name)]
    return told[max(fitting, key=_letters)] if fitting else None


def _fits(model: str, name: str) -> bool:
    pattern = re.sub(r"[\[?]", r"[\g<0>]", name)  # they mean themselves
    return fnmatchcase(model.lower(), pattern.lower())


def _letters(name: str) -> tuple[bool, int]:
    return "*" not in name, len(name.replace("*", ""))


def tag_mode_for(told: TagMode | None, is_continued: bool, dialect: Dialect) -> TagMode:
    """What becomes of thinking tags in an answer: what settings say, else markers go where continuity is on.

    Where a provider's reasoning is known to stand in tags, markers are how it is told from the answer: they stay,
    unless it is lifted.
    """
    mode: TagMode = told if told is not None else "markers" if is_continued else "off"
    return "off" if mode == "markers" and dialect.carrier == "think_tags" else mode
