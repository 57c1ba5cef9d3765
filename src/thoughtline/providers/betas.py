"""The header that enables features before their release, and the values of it that a server refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from thoughtline.providers.setting_rules import SettingRule

BETA_HEADER = "anthropic-beta"

_RULE = f"@{BETA_HEADER}/"
_REFUSED = re.compile(
    r"\b(?:unexpected|unknown|unsupported|invalid|unrecogni[sz]ed) (?:beta )?(?:value|flag|feature)(?:s|\(s\))?:? "
    rf"((?:[`'\"][\w-]{{1,80}}[`'\"](?:, | and )?){{1,16}}) (?:for|in) (?:the )?[`'\"]?{BETA_HEADER}\b",
    re.I,
)
_QUOTED = re.compile(r"[`'\"]([\w-]{1,80})[`'\"]")


def rules_for_betas(sentence: str) -> tuple[SettingRule, ...]:
    """Return rules that remove the header values named in a refusal."""
    refused = _REFUSED.search(sentence)
    return tuple(SettingRule(_RULE + name, "drop") for name in _QUOTED.findall(refused[1])) if refused else ()


def refused_betas(rules: Iterable[SettingRule]) -> frozenset[str]:
    """Return the header values to remove."""
    return frozenset([rule.path.removeprefix(_RULE) for rule in rules if rule.path.startswith(_RULE)])
