"""Other quotes, Chinese and settings spelled in words become the words of shapes."""

from __future__ import annotations

import pytest

from thoughtline.formats.request_settings import FoundSetting
from thoughtline.replay.plain_sentences import plain, with_names


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("“top_k” is not ‘allowed’", "\"top_k\" is not 'allowed'"),  # noqa: RUF001 (the quotes are the case)
        ("该模型不支持top_k参数", "this model does not support top_k parameter"),
        ("thinking 与 effort 不能同时设置", "thinking and effort cannot both be 设置"),
        ("取值范围 1 到 8", "supported range 1 to 8"),
        ("`top_k` is deprecated", "`top_k` is deprecated"),
    ],
)
def test_a_sentence_in_plain_words(sentence: str, expected: str) -> None:
    """A sentence without such words stays unchanged."""
    assert plain(sentence) == expected


def test_settings_get_their_names() -> None:
    """In any case, by the last one or two steps of their path; part of a longer word is not a name."""
    found = [FoundSetting(("prompt_mode",), "x"), FoundSetting(("thinking", "type"), "auto")]
    assert with_names("Reasoning prompt mode is off", found) == "Reasoning prompt_mode is off"
    assert with_names("Unsupported thinking type", found) == "Unsupported thinking.type"
    assert with_names("thinking types, prompt modes", found) == "thinking types, prompt modes"
