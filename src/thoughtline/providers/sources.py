"""Sources of facts."""

from __future__ import annotations

from msgspec import Struct


class Source(Struct, frozen=True, gc=False):
    """A page or a report, the day it was read, and what it says. Without a page, the fact is unverified."""

    link: str = ""
    day: str = ""
    says: str = ""

    def __str__(self) -> str:
        if not self.link:
            return f"{self.says} (unverified)".strip()
        return f"{self.says} ({self.link}, {self.day})" if self.says else f"{self.link}, {self.day}"


UNVERIFIED = Source()


OWN_PAGES = Source("the provider's own documentation", "2026-11", "its address and the formats that it speaks")
"""The source of a provider's address where no page has to be named: the international one, if it has several."""


def unverified(says: str) -> Source:
    """Mark a fact that no page confirms."""
    return Source("", "", says)


def seen(link: str, day: str, says: str = "") -> Source:
    """Name a page or report, the day (`2026-11-16`) or month it was read, and what it showed."""
    return Source(link, day, says)
