"""What facts rest on, in words."""

from __future__ import annotations

import pytest

from thoughtline.providers.sources import UNVERIFIED, Source, seen, unverified


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (seen("https://docs.example", "2026-11-16", "it is so"), "it is so (https://docs.example, 2026-11-16)"),
        (seen("https://docs.example", "2026-11"), "https://docs.example, 2026-11"),
        (unverified("somebody says so"), "somebody says so (unverified)"),
        (UNVERIFIED, "(unverified)"),
    ],
)
def test_a_source_in_words(source: Source, shown: str) -> None:
    """The page and the day, or that nobody has read it."""
    assert str(source) == shown
