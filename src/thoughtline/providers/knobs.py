"""The knobs that models have for thinking: which member switches it, and what can be said with it."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from thoughtline.providers.sources import UNVERIFIED, Source
from thoughtline.values.options import EFFORTS, Effort

Style = Literal[
    "no_knob",
    "reasoning_effort",
    "reasoning",
    "responses",
    "thinking_type",
    "thinking_adaptive",
    "enable_thinking",
    "token_budget",
    "claude_budget",
    "claude_adaptive",
    "gemini_budget",
    "gemini_level",
    "think",
    "think_level",
    "nova",
]
ThinkingMode = Literal["enabled", "adaptive", "disabled", "between_tools"]
"""What `thinking.type` says in Anthropic's format."""

Setting = tuple[tuple[str, ...], object]
"""A member of a request by its path, and its value."""

EVERY_EFFORT: tuple[Effort, ...] = EFFORTS[1:]
CLAUDE_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
CLAUDE_BUDGETS = (1_024, 128_000)
TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")


class Knob(Struct, frozen=True, gc=False):
    """What can be said to the models whose names fit.

    `efforts` are the words the model knows; `budgets` the bounds of a budget; `keeps` the member that has earlier
    thinking used at all, where a model wants to be told. `modes` are those that a Claude takes; none: nobody knows.
    Without a `source` of its own it rests on that of its contract.
    """

    models: str
    style: Style
    efforts: tuple[Effort, ...] = ()
    can_be_off: bool = True
    budgets: tuple[int, int] = (1, 1_000_000)
    keeps: tuple[Setting, ...] = ()
    modes: tuple[ThinkingMode, ...] = ()
    source: Source = UNVERIFIED

    def is_for(self, model: str) -> bool:
        return re.search(self.models, model) is not None


TEMPLATE_SWITCHES = (
    ("preserve_reasoning", "true"),  # llama.cpp's own word for all of them
    ("preserve_thinking", "true"),  # Qwen 3.6 and newer
    ("clear_thinking", "false"),  # GLM 4.7
    ("truncate_history_thinking", "false"),  # Nemotron 3
    ("drop_thinking", "false"),  # DeepSeek V4
    ("preserved_thinking", "true"),  # Hy3
)
"""Switches that have a chat template read the reasoning of all turns (llama.cpp `models/templates`, 2026-08-22)."""

NO_KNOB = Knob("", "no_knob")
ALWAYS_THINKS = Knob("", "no_knob", can_be_off=False)
ANY_EFFORT = Knob("", "reasoning_effort", EVERY_EFFORT)
THINKING_TYPE = Knob("", "thinking_type")
REASONING_OBJECT = Knob("", "reasoning", EVERY_EFFORT)
"""OpenRouter's, and of whoever keeps reasoning in `reasoning_details` as it does."""
