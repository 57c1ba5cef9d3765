"""What settings and a request's header say about continuity and tags."""

from __future__ import annotations

import pytest

from thoughtline.continuity.control import tag_mode_for, terms_for
from thoughtline.continuity.injection import Terms
from thoughtline.continuity.tags import TagMode
from thoughtline.providers import DEEPSEEK, MINIMAX_TAGS

TERMS = Terms("always", 5, 100)


@pytest.mark.parametrize(
    ("is_enabled", "header", "mode"),
    [
        (False, b"", None),
        (True, b"", "always"),
        (True, b"off", None),
        (True, b" OFF ", None),
        (True, b"handoff", "handoff"),
        (False, b"handoff", "handoff"),
        (False, b"always", "always"),
        (True, b"nonsense", "always"),
        (False, b"nonsense", None),
    ],
)
def test_a_header_says_more_than_settings(is_enabled: bool, header: bytes, mode: str | None) -> None:
    """It switches continuity off or on for one request; count and size stay as they are set."""
    found = terms_for(TERMS, is_enabled, header)
    assert (found.mode if found else None) == mode
    assert found is None or (found.count, found.max_chars) == (5, 100)


@pytest.mark.parametrize(
    ("told", "is_continued", "mode"),
    [(None, False, "off"), (None, True, "markers"), ("off", True, "off"), ("lift", False, "lift")],
)
def test_markers_go_by_themselves_where_continuity_is_on(told: TagMode | None, is_continued: bool, mode: str) -> None:
    """Unless settings say otherwise."""
    assert tag_mode_for(told, is_continued, DEEPSEEK) == mode


def test_tags_that_are_a_providers_own_place_for_reasoning_stay() -> None:
    """Without its markers the reasoning would be part of the answer; lifting is fine."""
    assert tag_mode_for("markers", True, MINIMAX_TAGS) == "off"
    assert tag_mode_for("lift", True, MINIMAX_TAGS) == "lift"
