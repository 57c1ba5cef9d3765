"""Other quotes, Chinese and settings that are spelled in words become what shapes are made of."""

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
    """What has no such words stays as it is."""
    assert plain(sentence) == expected


def test_settings_get_their_names() -> None:
    """In whatever case, by the last step of their path or the last two; part of a longer word is none."""
    found = [FoundSetting(("prompt_mode",), "x"), FoundSetting(("thinking", "type"), "auto")]
    assert with_names("Reasoning prompt mode is off", found) == "Reasoning prompt_mode is off"
    assert with_names("Unsupported thinking type", found) == "Unsupported thinking.type"
    assert with_names("thinking types, prompt modes", found) == "thinking types, prompt modes"
