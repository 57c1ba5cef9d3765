"""The terms on which a request is continued: from the settings, overridden by its own header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.destinations.catalogue import CompactedBy, ContinuityMode, TagMode
from thoughtline.providers import Dialect

HEADER = b"x-thoughtline-continuity"
"""`off`, `handoff` or `always`; any other value is ignored."""


class Terms(Struct, frozen=True, gc=False):
    """How many checkpoints are quoted at once, when, and of what size.

    `after_compaction`: also quote the last ones of a session if none of its turns is left in the request.
    `after_compaction_by`: whether a client must name its agent for that, or the session is enough.
    """

    mode: ContinuityMode = "handoff"
    count: int = 3
    max_chars: int = 64_000
    after_compaction: bool = True
    after_compaction_by: CompactedBy = "agent"


def terms_for(terms: Terms, is_enabled: bool, header: bytes = b"", *settings: str | None) -> Terms | None:
    """The terms for one request; None if nothing is quoted in it.

    The header decides, else the first of the narrower settings that is set, else the general setting.
    """
    for word in (header.strip().lower().decode("latin-1"), *settings):
        if word == "off":
            return None
        if word in get_args(ContinuityMode):
            return replace(terms, mode=word)
    return terms if is_enabled else None


def setting_for(model: str, settings: Mapping[str, str]) -> str | None:
    """The setting whose name matches a `provider/model` best; in a name `*` matches anything.

    A name without `*` matches best, then the one with the most letters, then the first one. Case doesn't matter.
    """
    fitting = [name for name in settings if _fits(model, name)]
    return settings[max(fitting, key=_letters)] if fitting else None


def _fits(model: str, name: str) -> bool:
    pattern = re.sub(r"[\[?]", r"[\g<0>]", name)  # these characters stand for themselves
    return fnmatchcase(model.lower(), pattern.lower())


def _letters(name: str) -> tuple[bool, int]:
    return "*" not in name, len(name.replace("*", ""))


def tag_mode_for(setting: TagMode | None, is_continued: bool, dialect: Dialect) -> TagMode:
    """What to do with thinking tags in an answer: as set; by default they are removed if continuity is on.

    If a provider's reasoning is known to be in tags, they separate it from the answer: they stay, unless it is lifted.
    """
    mode: TagMode = setting if setting is not None else "markers" if is_continued else "off"
    return "off" if mode == "markers" and dialect.carrier == "think_tags" else mode
