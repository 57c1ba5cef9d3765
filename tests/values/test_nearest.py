"""The word that was meant."""

from __future__ import annotations

import pytest

from thoughtline.values.nearest import did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "found"),
    [("depseek", "deepseek"), ("DEEPSEEK", "deepseek"), ("kimmi", "Kimi"), ("zzz", None), ("", None)],
)
def test_the_nearest_word(word: str, found: str | None) -> None:
    """In the case it is known in; none where none is near."""
    assert nearest(word, ["openai", "deepseek", "Kimi"]) == found


def test_what_to_write_instead() -> None:
    """The nearest, else all there are, as they came."""
    assert did_you_mean("depseek", (name for name in ("openai", "deepseek"))) == "did you mean deepseek?"
    assert did_you_mean("zzz", (name for name in ("openai", "deepseek"))) == "known: openai, deepseek"
    assert did_you_mean("zzz", []) == "known: none"
