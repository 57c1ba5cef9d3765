"""How much to think, between all the ways there are to say it: one table of words and tokens, one of knobs.

A client says an effort, a budget, on, off or nothing; `settle` says the same with the knob that the upstream's model
has. A word that a model does not know becomes the nearest below it, else the lowest it has; a budget stays within the
model's bounds and below `max_tokens`. What was not said stays unsaid, and `thinking.display` is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from msgspec.structs import replace

from thoughtline.providers import REASONING_DETAILS
from thoughtline.replay.contracts import Contract
from thoughtline.values.options import EFFORTS, Effort, Thinking

BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 512,
    "low": 2_048,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 65_536,
}
"""Tokens for a word. High is the most that Gemini 2.5 Flash takes; a budget is the lowest word that covers it."""

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

_ALL: tuple[Effort, ...] = EFFORTS[1:]
_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")


class Knob(NamedTuple):
    """A row: which contracts and models it is for, and what can be said with it.

    `efforts` are the words the model knows; `budgets` the bounds of a budget; `keeps` the member that has earlier
    thinking used at all, where a model wants to be told.
    """

    contracts: tuple[str, ...]
    models: str
    style: Style
    efforts: tuple[Effort, ...] = ()
    can_be_off: bool = True
    budgets: tuple[int, int] = (1, 1_000_000)
    keeps: tuple[tuple[tuple[str, ...], object], ...] = ()

    def is_for(self, contract: str, model: str) -> bool:
        return contract in self.contracts and re.search(self.models, model) is not None


_CLAUDE = ("anthropic", "anthropic-adaptive", "anthropic-bound", "bedrock-claude")
_GEMINI = ("gemini", "gemini-2.5", "gemini-chat")
_OPENAI = ("openai-responses", "azure-responses", "openai-chat")
_GLM_KEEPS = ((("thinking", "clear_thinking"), False),)
_KIMI_KEEPS = ((("thinking", "keep"), "all"),)
_QWEN_KEEPS = ((("preserve_thinking",), True),)

_OPENROUTER = Knob(("openrouter",), "", "reasoning", _ALL)

KNOBS: tuple[Knob, ...] = (
    Knob(("deepseek", "deepseek-anthropic"), "", "thinking_type", _ALL),  # it makes low, high or max of them itself
    Knob(("deepseek-responses",), "", "responses", _ALL),
    Knob(("deepseek-v3.2",), "", "thinking_type"),
    Knob(("deepseek-r1",), "", "no_knob", can_be_off=False),
    Knob(("kimi", "kimi-anthropic"), "k3", "reasoning_effort", ("low", "high", "max"), can_be_off=False),
    Knob(("kimi", "kimi-anthropic"), "thinking", "no_knob", can_be_off=False),
    Knob(("kimi",), r"k2[.p]6", "thinking_type", keeps=_KIMI_KEEPS),
    Knob(("kimi", "kimi-anthropic"), "", "thinking_type"),
    Knob(("mimo", "mimo-anthropic"), "", "thinking_type"),
    Knob(("glm",), "", "thinking_type", keeps=_GLM_KEEPS),
    Knob(("minimax", "minimax-anthropic"), "m3", "thinking_adaptive"),
    Knob(("minimax", "minimax-anthropic"), "", "no_knob", can_be_off=False),
    Knob(("qwen",), r"qwen3\.[6-9]", "enable_thinking", keeps=_QWEN_KEEPS),
    Knob(("qwen",), "", "enable_thinking"),
    Knob(_CLAUDE, r"claude-(2|3-5|3-haiku|3-opus|3-sonnet|instant)", "no_knob"),
    Knob(("anthropic-bound",), "", "claude_adaptive", ("low", "medium", "high", "xhigh", "max"), can_be_off=False),
    Knob(("anthropic-adaptive",), r"4[.-]6", "claude_adaptive", ("low", "medium", "high", "max")),
    Knob(("anthropic-adaptive",), "", "claude_adaptive", ("low", "medium", "high", "xhigh", "max")),
    Knob(("anthropic", "bedrock-claude"), "", "claude_budget", budgets=(1_024, 128_000)),
    Knob(_GEMINI, r"gemini-(1|2\.0|2-0)", "no_knob"),
    Knob(("gemini-chat",), "", "reasoning_effort", ("minimal", "low", "medium", "high")),
    Knob(("gemini-2.5",), "pro", "gemini_budget", can_be_off=False, budgets=(128, 32_768)),
    Knob(("gemini-2.5",), "lite", "gemini_budget", budgets=(512, 24_576)),
    Knob(("gemini-2.5",), "", "gemini_budget", budgets=(1, 24_576)),
    Knob(("gemini",), "flash", "gemini_level", ("minimal", "low", "medium", "high"), can_be_off=False),
    Knob(("gemini",), "", "gemini_level", ("low", "high"), can_be_off=False),
    Knob(_OPENAI, r"gpt-[34]", "no_knob"),
    Knob(("openai-chat",), r"(^|/)o[134]", "reasoning_effort", _TO_HIGH, can_be_off=False),
    Knob(("openai-chat",), r"gpt-5\.1", "reasoning_effort", _TO_HIGH),
    Knob(("openai-chat",), r"gpt-5\.", "reasoning_effort", (*_TO_HIGH, "xhigh")),
    Knob(("openai-chat",), r"gpt-5", "reasoning_effort", ("minimal", *_TO_HIGH), can_be_off=False),
    Knob(("openai-chat",), "", "reasoning_effort", _ALL),
    Knob(_OPENAI, r"(^|/)o[134]", "responses", _TO_HIGH, can_be_off=False),
    Knob(_OPENAI, r"gpt-5\.1", "responses", _TO_HIGH),
    Knob(_OPENAI, r"gpt-5\.", "responses", (*_TO_HIGH, "xhigh")),
    Knob(_OPENAI, r"gpt-5", "responses", ("minimal", *_TO_HIGH), can_be_off=False),
    Knob(_OPENAI, "", "responses", _ALL),
    Knob(("xai-responses",), r"grok-4\.[1-9]", "responses", (*_TO_HIGH, "xhigh"), can_be_off=False),
    Knob(("xai-chat",), r"grok-3-mini", "reasoning_effort", ("low", "high"), can_be_off=False),
    Knob(("xai-responses", "xai-chat"), "", "no_knob", can_be_off=False),
    _OPENROUTER,
    Knob(("mistral",), "magistral", "no_knob", can_be_off=False),
    Knob(("mistral",), "", "reasoning_effort", ("high",)),
    Knob(("cohere",), "", "token_budget"),
    Knob(("reasoning-field", "think-tags"), "gpt-oss", "reasoning_effort", _TO_HIGH, can_be_off=False),
    Knob(("reasoning-field",), "", "reasoning_effort", _ALL),
    Knob(("think-tags", "no-reasoning", "copilot"), "", "no_knob"),
    Knob(("reasoning-content",), "", "reasoning_effort", _ALL),
    Knob(("ollama",), "^(llama|gemma2|gemma3|mistral|phi)", "no_knob"),
    Knob(("ollama",), "gpt-oss", "think_level", _TO_HIGH, can_be_off=False),
    Knob(("ollama",), "", "think"),
    Knob(("bedrock-forbidden",), "nova", "nova", _TO_HIGH),
    Knob(("bedrock-forbidden", "bedrock-plain"), "", "no_knob", can_be_off=False),
)

_UNKNOWN = {
    "openai_responses": Knob((), "", "responses", _ALL),
    "anthropic_messages": Knob((), "", "claude_budget", budgets=(1_024, 128_000)),
}
_ANY_CHAT = Knob((), "", "reasoning_effort", _ALL)


def knob_for(contract: Contract, model: str) -> Knob:
    """The knob of a model; one that nobody knows has the usual one of its format."""
    if contract.dialect == REASONING_DETAILS:
        return _OPENROUTER
    lowered = model.lower()
    found = next((knob for knob in KNOBS if knob.is_for(contract.name, lowered)), None)
    return found or _UNKNOWN.get(contract.format, _ANY_CHAT)


_SHOWN_IF_ASKED: tuple[Style, ...] = ("gemini_budget", "gemini_level", "responses")
"""Where thinking is shown to those who ask: Google's is asked for always, so that it reaches the client."""


class Settled(NamedTuple):
    """What to write: members by their path, whether the model will think, and what could not be said."""

    members: tuple[tuple[tuple[str, ...], object], ...] = ()
    is_thinking: bool = False
    problems: tuple[str, ...] = ()


def settle(thinking: Thinking, contract: Contract, model: str, max_tokens: int | None) -> Settled:
    """What a client said of thinking, in the words of an upstream's model."""
    knob = knob_for(contract, model)
    wants_off = thinking.switch == "off" or thinking.effort == "none"
    if wants_off and not knob.can_be_off and knob.style != "no_knob":
        lowest = Thinking("on", knob.efforts[0] if knob.efforts else None, knob.budgets[0], thinking.is_shown)
        settled = _write(knob, lowest, contract, max_tokens)
        return settled._replace(problems=("thinking can't be switched off; it is set to the least",))
    is_said = thinking.switch != "unsaid" or thinking.effort is not None or thinking.budget is not None
    if knob.style == "no_knob":
        problem = ("this model has no setting for thinking",) if is_said else ()
        return Settled((), contract.thinks_by_default or (is_said and not wants_off), problem)
    shows = knob.style in _SHOWN_IF_ASKED and (knob.style != "responses" or thinking.is_shown)
    if not is_said and not shows:
        return Settled(_keeping(knob, contract.thinks_by_default), contract.thinks_by_default)
    return _write(knob, thinking, contract, max_tokens)


def _keeping(knob: Knob, is_thinking: bool) -> tuple[tuple[tuple[str, ...], object], ...]:
    """The switch for preserved thinking; one inside `thinking` needs its type beside it."""
    if not is_thinking or not knob.keeps:
        return ()
    head = ((("thinking", "type"), "enabled"),) if knob.keeps[0][0][0] == "thinking" else ()
    return (*head, *knob.keeps)


def effort_of(thinking: Thinking, words: tuple[Effort, ...]) -> Effort | None:
    """The word for what was said, among those a model knows."""
    wanted = thinking.effort
    if wanted is None and thinking.budget is not None and thinking.budget > 0:
        wanted = next((word for word in EFFORTS[1:] if BUDGETS[word] >= (thinking.budget or 0)), "max")
    if wanted is None or not words:
        return None
    rank = EFFORTS.index(wanted)
    below = [word for word in words if EFFORTS.index(word) <= rank]
    return below[-1] if below else words[0]


def budget_of(thinking: Thinking, bounds: tuple[int, int], max_tokens: int | None) -> int | None:
    """The tokens for what was said, within bounds and below `max_tokens`; None if there is no room, or nothing said."""
    most = bounds[1] if max_tokens is None else min(bounds[1], max_tokens - 1)
    if most < bounds[0]:
        return None
    if thinking.budget is not None:
        return min(max(thinking.budget, bounds[0]), most)
    if max_tokens is not None:  # a word is no number: the answer gets its share
        most = max(bounds[0], min(most, max_tokens * 4 // 5))
    return min(max(BUDGETS[thinking.effort or "medium"], bounds[0]), most)


Write = Callable[[Knob, Thinking, Contract, int | None], Settled]


def _write(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    return _WRITERS[knob.style](knob, thinking, contract, max_tokens)


def _is_off(thinking: Thinking) -> bool:
    return thinking.switch == "off" or thinking.effort == "none"


def _reasoning_effort(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled(((("reasoning_effort",), "none"),), False)
    word = effort_of(thinking, knob.efforts)
    if contract.format == "anthropic_messages":
        return Settled(((("output_config", "effort"), word),) if word else (), True)
    is_on = thinking.switch != "unsaid" or word is not None or contract.thinks_by_default
    return Settled(((("reasoning_effort",), word),) if word else (), is_on)


def _reasoning(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    """OpenRouter: one of effort and tokens."""
    if _is_off(thinking):
        return Settled(((("reasoning",), {"enabled": False}),), False)
    if thinking.budget is not None and thinking.budget > 0 and thinking.effort is None:
        budget = budget_of(thinking, knob.budgets, max_tokens)
        return Settled(((("reasoning", "max_tokens"), budget),), True)
    word = effort_of(thinking, knob.efforts)
    return Settled(((("reasoning", "effort"), word) if word else (("reasoning", "enabled"), True),), True)


def _responses(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    """A summary is asked for where the client shows thinking; some accounts may not have it, so never unasked."""
    if _is_off(thinking):
        return Settled(((("reasoning", "effort"), "none"),), False)
    word = effort_of(thinking, knob.efforts)
    members: list[tuple[tuple[str, ...], object]] = [(("reasoning", "effort"), word)] if word else []
    if thinking.is_shown:
        members.append((("reasoning", "summary"), "auto"))
    return Settled(tuple(members), True)


def _thinking_type(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled(((("thinking", "type"), "disabled"),), False)
    members: list[tuple[tuple[str, ...], object]] = []
    if thinking.switch != "unsaid" or thinking.effort or thinking.budget:
        members.append((("thinking", "type"), "enabled"))
    is_on = bool(members) or contract.thinks_by_default
    members += [member for member in _keeping(knob, is_on) if member not in members]
    word = effort_of(thinking, knob.efforts)
    path = ("output_config", "effort") if contract.format == "anthropic_messages" else ("reasoning_effort",)
    return Settled((*members, *(((path, word),) if word else ())), is_on)


def _thinking_adaptive(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    return Settled(((("thinking", "type"), "disabled" if _is_off(thinking) else "adaptive"),), not _is_off(thinking))


def _enable_thinking(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled(((("enable_thinking",), False),), False)
    members: list[tuple[tuple[str, ...], object]] = [(("enable_thinking",), True)]
    if thinking.budget is not None or thinking.effort is not None:
        budget = budget_of(thinking, knob.budgets, max_tokens)
        members += [(("thinking_budget",), budget)] if budget is not None and budget > 0 else []
    return Settled((*members, *_keeping(knob, True)), True)


def _token_budget(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    """Cohere."""
    if _is_off(thinking):
        return Settled(((("thinking", "type"), "disabled"),), False)
    members: list[tuple[tuple[str, ...], object]] = [(("thinking", "type"), "enabled")]
    if thinking.budget is not None or thinking.effort is not None:
        members.append((("thinking", "token_budget"), budget_of(thinking, knob.budgets, max_tokens)))
    return Settled(tuple(members), True)


def _claude(contract: Contract, *members: tuple[tuple[str, ...], object]) -> tuple[tuple[tuple[str, ...], object], ...]:
    """Claude's members; on Bedrock they stand among the model's own."""
    outer = ("additionalModelRequestFields",) if contract.format == "bedrock_converse" else ()
    return tuple(((*outer, *path), value) for path, value in members if value is not None)


def _claude_budget(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled((), False)
    budget = budget_of(
        replace(thinking, budget=None if thinking.budget == -1 else thinking.budget), knob.budgets, max_tokens
    )
    if budget is None:
        return Settled((), False, (f"max_tokens leaves no room for the least budget of {knob.budgets[0]} tokens",))
    told = (("thinking", "budget_tokens"), budget), (("thinking", "display"), thinking.display)
    return Settled(_claude(contract, (("thinking", "type"), "enabled"), *told), True)


def _claude_adaptive(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled(_claude(contract, (("thinking", "type"), "disabled")), False)
    word = effort_of(thinking, knob.efforts)
    told = (("thinking", "display"), thinking.display), (("output_config", "effort"), word)
    return Settled(_claude(contract, (("thinking", "type"), "adaptive"), *told), True)


_CONFIG = ("generationConfig", "thinkingConfig")


def _gemini_budget(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    if _is_off(thinking):
        return Settled((((*_CONFIG, "thinkingBudget"), 0),), False)
    members: list[tuple[tuple[str, ...], object]] = [((*_CONFIG, "includeThoughts"), thinking.is_shown is not False)]
    if thinking.budget == -1:
        members.append(((*_CONFIG, "thinkingBudget"), -1))
    elif thinking.budget is not None or thinking.effort is not None:
        budget = budget_of(thinking, knob.budgets, max_tokens)
        members += [((*_CONFIG, "thinkingBudget"), budget)] if budget is not None else []
    return Settled(tuple(members), True)


def _gemini_level(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    members: list[tuple[tuple[str, ...], object]] = [((*_CONFIG, "includeThoughts"), thinking.is_shown is not False)]
    word = effort_of(thinking, knob.efforts)
    members += [((*_CONFIG, "thinkingLevel"), word)] if word else []
    return Settled(tuple(members), True)


def _think(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    return Settled(((("think",), not _is_off(thinking)),), not _is_off(thinking))


def _think_level(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    return Settled(((("think",), effort_of(thinking, knob.efforts) or True),), True)


def _nova(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    outer = ("additionalModelRequestFields", "reasoningConfig")
    if _is_off(thinking):
        return Settled((((*outer, "type"), "disabled"),), False)
    word = effort_of(thinking, knob.efforts) or "medium"
    return Settled((((*outer, "type"), "enabled"), ((*outer, "maxReasoningEffort"), word)), True)


def _no_knob(knob: Knob, thinking: Thinking, contract: Contract, max_tokens: int | None) -> Settled:
    return Settled()


_WRITERS: dict[Style, Write] = {
    "no_knob": _no_knob,
    "reasoning_effort": _reasoning_effort,
    "reasoning": _reasoning,
    "responses": _responses,
    "thinking_type": _thinking_type,
    "thinking_adaptive": _thinking_adaptive,
    "enable_thinking": _enable_thinking,
    "token_budget": _token_budget,
    "claude_budget": _claude_budget,
    "claude_adaptive": _claude_adaptive,
    "gemini_budget": _gemini_budget,
    "gemini_level": _gemini_level,
    "think": _think,
    "think_level": _think_level,
    "nova": _nova,
}
