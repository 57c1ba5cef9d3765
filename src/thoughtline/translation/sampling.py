"""Settings of sampling that a model refuses: they are not sent, and that is found.

Sources, 2026-11: Anthropic, Extended thinking, and What's new in Claude 4.7 (sampling parameters removed); its refusals
as users report them (BerriAI/litellm#15097, UKGovernmentBEIS/inspect_ai#3721); OpenAI, Reasoning models; DeepSeek,
Thinking Mode.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.providers import Contract
from thoughtline.values.options import Options

_OPENAI_REASONS = re.compile(r"(^|/)(o[134]|gpt-5)")
_NOT_OPENAIS = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs")

_BEFORE_4_1 = re.compile(r"claude-(2|3|instant|v\d)|(opus|sonnet)-4(-0|-20\d\d|@|$)")
"""Claude models that take `temperature` and `top_p` together."""

_UNSAMPLED = re.compile(r"(opus|sonnet|haiku)-?(4[.-][7-9]|[5-9])|fable|mythos")
"""Claude models that take neither, whatever else is asked: Opus 4.7 was the first."""

_LEAST_TOP_P = 0.95


class Sampled(NamedTuple):
    """Options that the model takes, and what was taken out: the option and why."""

    options: Options
    dropped: tuple[tuple[str, str], ...] = ()


def sampled(options: Options, contract: Contract, *, is_thinking: bool) -> Sampled:
    """The options without the settings that this model refuses."""
    if contract.sampling == "claude":
        return _claude(options, is_thinking=is_thinking)
    names: tuple[str, ...] = ()
    if contract.sampling == "openai" and _OPENAI_REASONS.search(options.model):
        names = _NOT_OPENAIS
    elif contract.sampling == "deepseek" and is_thinking:
        names = ("logprobs", "top_logprobs")
    return _without(options, names, "can't be set on a model that thinks")


def _without(options: Options, names: tuple[str, ...], why: str) -> Sampled:
    given = tuple(name for name in names if getattr(options, name) is not None)
    lost = tuple((name, f"{name} {why}") for name in given if not _is_default(options, name))
    return Sampled(replace(options, **dict.fromkeys(given)), lost)


def _is_default(options: Options, name: str) -> bool:
    return name in ("temperature", "top_p") and getattr(options, name) == 1


def _claude(options: Options, *, is_thinking: bool) -> Sampled:
    model = options.model.lower()
    if _UNSAMPLED.search(model):
        return _without(options, ("temperature", "top_p", "top_k"), "can't be set on this model")
    dropped: list[tuple[str, str]] = []
    if is_thinking:
        is_wide = options.top_p is None or options.top_p >= _LEAST_TOP_P
        options, lost = _without(
            options,
            ("top_k", *(() if is_wide else ("top_p",)), *(() if options.temperature == 1 else ("temperature",))),
            "can't be set on a model that thinks",
        )
        dropped += lost
    if options.temperature is not None and options.top_p is not None and not _BEFORE_4_1.search(model):
        name = "temperature" if options.temperature == 1 else "top_p"
        options, lost = _without(options, (name,), "can't be set beside the other one on this model")
        dropped += lost
    if options.temperature is not None and options.temperature > 1:
        dropped.append(("temperature", "temperature ends at 1 here"))
    return Sampled(options, tuple(dropped))
