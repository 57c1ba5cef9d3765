"""What facts rest on."""

from __future__ import annotations

from msgspec import Struct


class Source(Struct, frozen=True, gc=False):
    """A page or a report, the day it was read, and what it says. Without a page it is unverified."""

    link: str = ""
    day: str = ""
    says: str = ""

    def __str__(self) -> str:
        if not self.link:
            return f"{self.says} (unverified)".strip()
        return f"{self.says} ({self.link}, {self.day})" if self.says else f"{self.link}, {self.day}"


UNVERIFIED = Source()


OWN_PAGES = Source("the provider's own documentation", "2026-11", "its address and the formats that it speaks")
"""What the address of a provider rests on, where no page has to be named: the international one of several."""


def unverified(says: str) -> Source:
    """What is believed and was never read on a page."""
    return Source("", "", says)


def seen(link: str, day: str, says: str = "") -> Source:
    """What a page or a report showed on a day: `2026-11-16`, or the month."""
    return Source(link, day, says)
