"""Resolves the name of a setting in a request, and classifies settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from thoughtline.formats.request_settings import FoundSetting, unforced


def fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_SAMPLING = frozenset(
    {
        *("temperature", "topp", "topk", "minp", "topa", "presencepenalty", "frequencypenalty", "repetitionpenalty"),
        *("seed", "n", "logprobs", "toplogprobs", "logitbias"),
    }
)
_BUDGETS = frozenset({"budget", "thinkingbudget", "budgettokens", "reasoningbudget"})
_COMMON = frozenset({"type", "value", "name", "enabled", "mode"})
"""Words that name a setting only together with their parent."""

_OFF_VALUES = ("none", "off", "disabled", "disable", "no_think", "false")


class SettingWeight(IntEnum):
    """What a setting is about. Lower values give way first."""

    SAMPLING = 0
    OTHER = 1
    TOOL_CHOICE = 2
    BUDGET = 3
    EFFORT = 4
    THINKING = 5


def weight(setting: FoundSetting) -> SettingWeight:
    last = fold(setting.path[-1])
    if last in _SAMPLING:
        return SettingWeight.SAMPLING
    if "toolchoice" in last or "functioncalling" in last:
        return SettingWeight.TOOL_CHOICE
    if last in _BUDGETS or setting.path[-2:] == ("reasoning", "max_tokens"):
        return SettingWeight.BUDGET
    if last.endswith(("effort", "level", "summary", "display", "verbosity")):
        return SettingWeight.EFFORT
    is_thinking = any(word in "".join(map(fold, setting.path)) for word in ("think", "reasoning"))
    return SettingWeight.THINKING if is_thinking else SettingWeight.OTHER


def is_called(setting: FoundSetting, steps: Sequence[str]) -> bool:
    """Whether a path names a setting: exactly, in one word, by its end, or with additional steps."""
    own = [fold(step) for step in setting.path]
    if len(own) > len(steps) == 1 and steps[0] in _COMMON:
        return False
    if "".join(own) == "".join(steps) or own[-len(steps) :] == list(steps):
        return True
    rest = iter(steps)
    return own[-1] == steps[-1] and all(step in rest for step in own)


def says_off(setting: FoundSetting) -> bool:
    """Whether a setting switches thinking off, in any maker's words."""
    last, value = fold(setting.path[-1]), setting.value
    outer = "".join(map(fold, setting.path))
    if last in _BUDGETS:
        return value == 0 and not isinstance(value, bool)
    if value is False:
        return last in ("enablethinking", "thinking", "think", "reasoning") or (
            last == "enabled" and "reasoning" in outer
        )
    if not isinstance(value, str) or value.lower() not in (*_OFF_VALUES, "between_tools"):
        return False
    return last.endswith(("effort", "level", "think")) or (last == "type" and "thinking" in outer)


def choice_in(setting: FoundSetting) -> FoundSetting | None:
    """Return the tool choice that forces a tool, in a setting or inside it."""
    if unforced(setting.value) is not None:
        return setting
    for name in ("functionCallingConfig", "function_calling_config", "toolChoice"):
        inner = setting.value.get(name) if isinstance(setting.value, dict) else None
        if inner is not None and unforced(inner) is not None:
            return FoundSetting((*setting.path, name), inner)
    return None


def whole_choice(setting: FoundSetting) -> FoundSetting:
    """Return the tool choice that a setting is part of; any other setting as it is."""
    at = next((at for at, step in enumerate(setting.path) if "toolchoice" in fold(step)), None)
    if at is None or at == len(setting.path) - 1:
        return setting
    return FoundSetting(setting.path[: at + 1], {setting.path[at + 1]: setting.value})


def is_named(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("type") in ("function", "tool")
