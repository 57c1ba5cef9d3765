"""Settings of sampling that a model refuses, as its contract says: they are not sent, and that is found."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.providers import Contract
from thoughtline.providers.contract import Sampling
from thoughtline.values.options import Options


class Sampled(NamedTuple):
    """Options that the model takes, and what was taken out: the option and why."""

    options: Options
    dropped: tuple[tuple[str, str], ...] = ()


def sampled(options: Options, contract: Contract, *, is_thinking: bool) -> Sampled:
    """The options without the settings that this model refuses."""
    rules, model = contract.sampling, options.model.lower()
    if re.search(rules.never, model):
        return _without(options, rules.names, "can't be set on this model")
    dropped: list[tuple[str, str]] = []
    if is_thinking:
        options, lost = _without(options, _while_thinking(options, rules), "can't be set on a model that thinks")
        dropped += lost
    if options.temperature is not None and options.top_p is not None and not re.search(rules.takes_both, model):
        name = "temperature" if options.temperature == 1 else "top_p"
        options, lost = _without(options, (name,), "can't be set beside the other one on this model")
        dropped += lost
    if rules.hottest is not None and options.temperature is not None and options.temperature > rules.hottest:
        dropped.append(("temperature", f"temperature ends at {rules.hottest:g} here"))
    return Sampled(options, tuple(dropped))


def _while_thinking(options: Options, rules: Sampling) -> tuple[str, ...]:
    """What is not set on a model that thinks."""
    if not rules.least_top_p:
        return rules.while_thinking
    is_wide = options.top_p is None or options.top_p >= rules.least_top_p
    narrow = (*(() if is_wide else ("top_p",)), *(() if options.temperature == 1 else ("temperature",)))
    return (*rules.while_thinking, *narrow)


def _without(options: Options, names: tuple[str, ...], why: str) -> Sampled:
    given = tuple(name for name in names if getattr(options, name) is not None)
    lost = tuple((name, f"{name} {why}") for name in given if not _is_default(options, name))
    return Sampled(replace(options, **dict.fromkeys(given)), lost)


def _is_default(options: Options, name: str) -> bool:
    return name in ("temperature", "top_p") and getattr(options, name) == 1
