"""Gemini's thinking levels and budgets (12 models measured, 2026-09)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import string
from thoughtline_sim.refusals import gemini_error
from thoughtline_sim.values import Rejection
from thoughtline_sim.wires.generate import either, is_2_5, is_array, thinking_config

_MOST = 32_768
_LEAST = 128


def thinking_fits(exchange: SimExchange) -> Iterator[Rejection]:
    for sentence in _problems(exchange):
        yield gemini_error(sentence, is_in_array=is_array(exchange))


def _problems(exchange: SimExchange) -> Iterator[str]:
    config = thinking_config(exchange)
    level = string(either(config, "thinkingLevel", "thinking_level")).upper()
    budget = either(config, "thinkingBudget", "thinking_budget")
    is_pro = "pro" in exchange.model
    if level and isinstance(budget, int):
        yield "You can only set only one of thinking budget and thinking level."
    if level and (is_2_5(exchange.model) or ("gemma" in exchange.model and level not in ("MINIMAL", "HIGH"))):
        yield "Thinking level is not supported for this model."
    if level == "MINIMAL" and not _has_minimal(exchange.model):
        yield "Thinking level MINIMAL is not supported for this model."
    if budget == 0 and is_pro:
        yield "Budget 0 is invalid. This model only works in thinking mode."
    if isinstance(budget, int) and budget > 0 and is_pro and not _LEAST <= budget <= _MOST:
        yield f"The thinking budget {budget} is invalid. Please choose a value between {_LEAST} and {_MOST}."


def _has_minimal(model: str) -> bool:
    """Lite models and Gemma have it; Pro from 3.1 on, Flash from 3.7 on, and newer models don't."""
    found = re.search(r"gemini-(\d+)(?:\.(\d+))?", model)
    if found is None or "lite" in model:
        return True
    return (int(found[1]), int(found[2] or 0)) < ((3, 1) if "pro" in model else (3, 7))
