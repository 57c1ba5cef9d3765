"""How models let a request control thinking: which member switches it, and which values it has."""

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
"""Values of `thinking.type` in Anthropic's format."""

Setting = tuple[tuple[str, ...], object]
"""A member of a request, by its path, and its value."""

EVERY_EFFORT: tuple[Effort, ...] = EFFORTS[1:]
CLAUDE_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
CLAUDE_BUDGETS = (1_024, 128_000)
TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")


class Knob(Struct, frozen=True, gc=False):
    """The thinking controls of the models that match `models`.

    `efforts` are the words the model knows; `budgets` the bounds of a budget; `keeps` the member that makes a model use
    earlier thinking, where that has to be requested. `modes` are those that a Claude model accepts; empty if unknown.
    Without a `source` of its own, the source of its contract applies.
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
    ("preserve_reasoning", "true"),  # llama.cpp's own name for all of them
    ("preserve_thinking", "true"),  # Qwen 3.6 and newer
    ("clear_thinking", "false"),  # GLM 4.7
    ("truncate_history_thinking", "false"),  # Nemotron 3
    ("drop_thinking", "false"),  # DeepSeek V4
    ("preserved_thinking", "true"),  # Hy3
)
"""Switches that make a chat template read the reasoning of all turns (llama.cpp `models/templates`, 2026-08-22)."""

NO_KNOB = Knob("", "no_knob")
ALWAYS_THINKS = Knob("", "no_knob", can_be_off=False)
ANY_EFFORT = Knob("", "reasoning_effort", EVERY_EFFORT)
THINKING_TYPE = Knob("", "thinking_type")
REASONING_OBJECT = Knob("", "reasoning", EVERY_EFFORT)
"""OpenRouter's, and that of every server that keeps reasoning in `reasoning_details` as it does."""
