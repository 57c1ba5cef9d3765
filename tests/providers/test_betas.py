"""Values of the header for betas are read from refusals, and nothing else is."""

from __future__ import annotations

import pytest

from thoughtline.providers.betas import refused_betas, rules_for_betas
from thoughtline.providers.setting_rules import SettingRule


@pytest.mark.parametrize(
    ("sentence", "refused"),
    [
        ("Unexpected value(s) `a-1` for the `anthropic-beta` header. Please try again without it.", {"a-1"}),
        ("Unexpected value(s) 'a-1', 'b-2' for the 'anthropic-beta' header.", {"a-1", "b-2"}),
        ("Unknown beta flag: 'a-1' in anthropic-beta", {"a-1"}),
        ("Unexpected value(s) `a-1` for the `accept` header.", set()),
        ("invalid beta flag", set()),
    ],
)
def test_what_a_refusal_names(sentence: str, refused: set[str]) -> None:
    """One that names none is vague."""
    assert refused_betas(rules_for_betas(sentence)) == refused


def test_other_rules_are_no_betas() -> None:
    """A setting of that name in the body is another thing."""
    assert refused_betas([SettingRule("anthropic_beta", "drop"), SettingRule("temperature", "drop")]) == frozenset()
