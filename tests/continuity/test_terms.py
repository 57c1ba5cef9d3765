"""What settings and a request's header say about continuity and tags."""

from __future__ import annotations

import pytest

from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import Terms, setting_for, tag_mode_for, terms_for
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


FLASH, PRO, SONNET = "deepseek/v4-flash", "deepseek/v4-pro", "openrouter/anthropic/sonnet[1m]"


@pytest.mark.parametrize(
    ("model", "words", "word"),
    [
        (PRO, {}, None),
        (PRO, {PRO: "off"}, "off"),
        (FLASH, {PRO: "off"}, None),
        (PRO, {"deepseek/v4": "off", "deepseek/v4-pro-max": "off", "v4-pro": "off", "kimi/v4-pro": "off"}, None),
        (PRO, {"deepseek/*": "off"}, "off"),
        (PRO, {"deepseek/*-pro": "off", "deepseek/*-flash": "always"}, "off"),
        (PRO, {"deepseek/v4-*": "always", "deepseek/*": "off"}, "always"),
        (PRO, {"deepseek/*": "off", "deepseek/v4-*": "always"}, "always"),
        (PRO, {"deepseek/v4-pro*": "always", PRO: "off"}, "off"),
        (PRO, {"deepseek/*********": "off", "deepseek/v4-*": "always"}, "always"),
        (PRO, {"deepseek/v4-*": "always", "deepseek/*pro": "off"}, "always"),
        (PRO, {"deepseek/*pro": "off", "deepseek/v4-*": "always"}, "off"),
        (PRO.upper(), {PRO: "off"}, "off"),
        (PRO, {"deepseek/V4-*": "off"}, "off"),
        (SONNET, {SONNET: "off"}, "off"),
        (SONNET, {"openrouter/*[1m]": "off"}, "off"),
        (PRO, {"deepseek/v4-pr?": "off", "deepseek/v4-pr[o]": "off"}, None),
    ],
)
def test_what_is_said_for_a_model(model: str, words: dict[str, str], word: str | None) -> None:
    """The name that fits best says it: without a star, then with the most letters, then the first."""
    assert setting_for(model, words) == word


@pytest.mark.parametrize(
    ("setting", "is_continued", "mode"),
    [(None, False, "off"), (None, True, "markers"), ("off", True, "off"), ("lift", False, "lift")],
)
def test_markers_go_by_themselves_where_continuity_is_on(
    setting: TagMode | None, is_continued: bool, mode: str
) -> None:
    """Unless settings say otherwise."""
    assert tag_mode_for(setting, is_continued, DEEPSEEK) == mode


def test_tags_that_are_a_providers_own_place_for_reasoning_stay() -> None:
    """Without its markers the reasoning would be part of the answer; lifting is fine."""
    assert tag_mode_for("markers", True, MINIMAX_TAGS) == "off"
    assert tag_mode_for("lift", True, MINIMAX_TAGS) == "lift"
