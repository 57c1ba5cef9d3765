"""Converts between the ways to say how much a model should think: one table of words and tokens, one control per model.

A client sends an effort, a budget, on, off or nothing; `settle` expresses it with the upstream model's own control. A
word that the model does not know becomes the next lower one it knows, or else its lowest; a budget stays within the
model's bounds and below `max_tokens`. An unset value stays unset, and `thinking.display` is never changed.
"""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import REASONING_DETAILS
from thoughtline.providers.knobs import ANY_EFFORT, CLAUDE_BUDGETS, EVERY_EFFORT, REASONING_OBJECT, Knob, Setting, Style
from thoughtline.values.options import EFFORTS, Effort, Thinking
from thoughtline.values.turns import FormatName

BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 512,
    "low": 2_048,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 65_536,
}
"""Tokens for each word. High is the maximum of Gemini 2.5 Flash. A budget becomes the lowest word that covers it."""

_USUAL: dict[FormatName, Knob] = {
    "openai_responses": Knob("", "responses", EVERY_EFFORT),
    "anthropic_messages": Knob("", "claude_budget", budgets=CLAUDE_BUDGETS),
}


def knob_for(contract: Contract, model: str) -> Knob:
    """Return the thinking control of a model. An unknown model gets the usual one of its format."""
    if contract.dialect == REASONING_DETAILS:
        return REASONING_OBJECT
    lowered = model.lower()
    found = next((knob for knob in contract.knobs if knob.is_for(lowered)), None)
    return found or _USUAL.get(contract.format, ANY_EFFORT)


_SWITCHES: dict[Style, tuple[str, ...]] = {
    "reasoning_effort": ("reasoning_effort",),
    "reasoning": ("reasoning", "reasoning_effort"),
    "thinking_type": ("thinking",),
    "thinking_adaptive": ("thinking",),
    "token_budget": ("thinking",),
    "enable_thinking": ("enable_thinking", "chat_template_kwargs"),
    "think": ("think", "reasoning_effort"),
    "think_level": ("think", "reasoning_effort"),
}
"""Members of a chat request that a server with such a control reads."""


def switches_of(contract: Contract, model: str) -> tuple[str, ...]:
    """Return the members that switch a model's thinking at its maker; empty if unknown."""
    knob = knob_for(contract, model)
    return _SWITCHES.get(knob.style, ()) if contract.knobs or knob.style == "reasoning" else ()


def switched_off(contract: Contract, model: str) -> tuple[Setting, ...]:
    """Return the members that switch thinking off; empty if the model has no switch or can't be switched off."""
    knob = knob_for(contract, model)
    return _off(knob, contract) if knob.can_be_off else ()


def _off(knob: Knob, contract: Contract) -> tuple[Setting, ...]:
    match knob.style:
        case "thinking_type" | "thinking_adaptive" | "token_budget":
            return ((("thinking", "type"), "disabled"),)
        case "claude_budget" | "claude_adaptive":
            return _claude(contract, (("thinking", "type"), "disabled"))
        case "reasoning_effort":
            return ((("reasoning_effort",), "none"),)
        case "responses":
            return ((("reasoning", "effort"), "none"),)
        case "reasoning":
            return ((("reasoning",), {"enabled": False}),)
        case "enable_thinking":
            return ((("enable_thinking",), False),)
        case "gemini_budget":
            return (((*_CONFIG, "thinkingBudget"), 0),)
        case "think":
            return ((("think",), False),)
        case "nova":
            return (((*_NOVA, "type"), "disabled"),)
        case "no_knob" | "gemini_level" | "think_level":
            return ()


_SHOWN_IF_ASKED: tuple[Style, ...] = ("gemini_budget", "gemini_level", "responses")
"""Where clients can ask to see the thinking. For Google it is always requested, so that it reaches the client."""

_CONFIG = ("generationConfig", "thinkingConfig")
_NOVA = ("additionalModelRequestFields", "reasoningConfig")


class Settled(NamedTuple):
    """The result: members by path, whether the model will think, and what could not be expressed."""

    members: tuple[Setting, ...] = ()
    is_thinking: bool = False
    problems: tuple[str, ...] = ()


class _Wish(NamedTuple):
    """A client's request about thinking, and the model it is for."""

    knob: Knob
    thinking: Thinking
    contract: Contract
    max_tokens: int | None

    @property
    def effort(self) -> Effort | None:
        return effort_of(self.thinking, self.knob.efforts)

    @property
    def budget(self) -> int | None:
        return budget_of(self.thinking, self.knob.budgets, self.max_tokens)

    @property
    def is_measured(self) -> bool:
        """Whether an amount is given. A budget of -1 leaves the amount to the model."""
        return self.thinking.budget not in (None, -1) or self.thinking.effort is not None


def settle(thinking: Thinking, contract: Contract, model: str, max_tokens: int | None) -> Settled:
    """Express a client's thinking settings in the terms of the upstream's model."""
    knob = knob_for(contract, model)
    wants_off = thinking.switch == "off" or thinking.effort == "none"
    is_said = thinking.switch != "unsaid" or thinking.effort is not None or thinking.budget is not None
    if knob.style == "no_knob":
        problem = ("this model has no setting for thinking",) if is_said else ()
        return Settled((), contract.thinks_by_default or (is_said and not wants_off), problem)
    if wants_off and knob.can_be_off:
        # A Claude model with a budget thinks only on request: nothing has to be sent.
        return Settled(() if knob.style == "claude_budget" else _off(knob, contract))
    if wants_off:
        lowest = Thinking("on", knob.efforts[0] if knob.efforts else None, knob.budgets[0], thinking.is_shown)
        settled = _written(_Wish(knob, lowest, contract, max_tokens))
        return settled._replace(problems=("thinking can't be switched off; it is set to the least",))
    shows = knob.style in _SHOWN_IF_ASKED and (knob.style != "responses" or thinking.is_shown)
    if not is_said and not shows:
        return Settled(_keeping(knob, contract.thinks_by_default), contract.thinks_by_default)
    return _written(_Wish(knob, thinking, contract, max_tokens))


def _written(wish: _Wish) -> Settled:
    if wish.knob.style == "claude_budget" and wish.budget is None:
        problem = f"max_tokens leaves no room for the least budget of {wish.knob.budgets[0]} tokens"
        return Settled(problems=(problem,))
    members = tuple((path, value) for path, value in _members(wish) if value is not None)
    is_on = bool(members) or wish.thinking.switch != "unsaid" or wish.contract.thinks_by_default
    return Settled(members, is_on)


def _members(wish: _Wish) -> tuple[Setting, ...]:
    """Return the members to write. A member whose value is None is left out."""
    budget = wish.budget if wish.is_measured else None
    match wish.knob.style:
        case "reasoning_effort":
            return (_effort(wish),)
        case "reasoning":
            return (_reasoning(wish),)
        case "responses":
            # Request a summary if the client shows thinking, and never otherwise: some accounts may not have it.
            summary = "auto" if wish.thinking.is_shown else None
            return (("reasoning", "effort"), wish.effort), (("reasoning", "summary"), summary)
        case "thinking_type":
            return _thinking_type(wish)
        case "thinking_adaptive":
            return ((("thinking", "type"), "adaptive"),)
        case "enable_thinking":
            return (("enable_thinking",), True), (("thinking_budget",), budget), *_keeping(wish.knob, True)
        case "token_budget":
            return (("thinking", "type"), "enabled"), (("thinking", "token_budget"), budget)
        case "claude_budget" | "claude_adaptive":
            return _claude(wish.contract, *_thinking_block(wish))
        case "gemini_budget" | "gemini_level":
            return ((*_CONFIG, "includeThoughts"), wish.thinking.is_shown is not False), _gemini(wish)
        case "think" | "think_level":
            return ((("think",), wish.effort or True),)
        case _:
            return ((*_NOVA, "type"), "enabled"), ((*_NOVA, "maxReasoningEffort"), wish.effort or "medium")


def _thinking_block(wish: _Wish) -> tuple[Setting, ...]:
    display = ("thinking", "display"), wish.thinking.display
    if wish.knob.style == "claude_budget":
        return (("thinking", "type"), "enabled"), (("thinking", "budget_tokens"), wish.budget), display
    return (("thinking", "type"), "adaptive"), display, (("output_config", "effort"), wish.effort)


def _keeping(knob: Knob, is_thinking: bool) -> tuple[Setting, ...]:
    """Return the switch for preserved thinking. A switch inside `thinking` also needs the type."""
    if not is_thinking or not knob.keeps:
        return ()
    head = ((("thinking", "type"), "enabled"),) if knob.keeps[0][0][0] == "thinking" else ()
    return (*head, *knob.keeps)


def _effort(wish: _Wish) -> Setting:
    is_anthropic = wish.contract.format == "anthropic_messages"
    return ("output_config", "effort") if is_anthropic else ("reasoning_effort",), wish.effort


def _reasoning(wish: _Wish) -> Setting:
    """Return OpenRouter's setting: either an effort or a number of tokens."""
    thinking = wish.thinking
    if thinking.budget is not None and thinking.budget > 0 and thinking.effort is None:
        return ("reasoning", "max_tokens"), wish.budget
    return (("reasoning", "effort"), wish.effort) if wish.effort else (("reasoning", "enabled"), True)


def _thinking_type(wish: _Wish) -> tuple[Setting, ...]:
    thinking = wish.thinking
    is_told = thinking.switch != "unsaid" or bool(thinking.effort or thinking.budget)
    switch: tuple[Setting, ...] = ((("thinking", "type"), "enabled"),) if is_told else ()
    kept = _keeping(wish.knob, is_told or wish.contract.thinks_by_default)
    return (*switch, *(member for member in kept if member not in switch), _effort(wish))


def _claude(contract: Contract, *members: Setting) -> tuple[Setting, ...]:
    """Return Claude's members. On Bedrock they are inside the model's own fields."""
    outer = ("additionalModelRequestFields",) if contract.format == "bedrock_converse" else ()
    return tuple(((*outer, *path), value) for path, value in members)


def _gemini(wish: _Wish) -> Setting:
    if wish.knob.style == "gemini_level":
        return (*_CONFIG, "thinkingLevel"), wish.effort
    budget = wish.budget if wish.is_measured else None
    return (*_CONFIG, "thinkingBudget"), -1 if wish.thinking.budget == -1 else budget


def effort_of(thinking: Thinking, words: tuple[Effort, ...]) -> Effort | None:
    """Return the effort word for a request, chosen from those the model knows."""
    wanted = thinking.effort
    if wanted is None and thinking.budget is not None and thinking.budget > 0:
        wanted = next((word for word in EVERY_EFFORT if BUDGETS[word] >= (thinking.budget or 0)), "max")
    if wanted is None or not words:
        return None
    rank = EFFORTS.index(wanted)
    below = [word for word in words if EFFORTS.index(word) <= rank]
    return below[-1] if below else words[0]


def budget_of(thinking: Thinking, bounds: tuple[int, int], max_tokens: int | None) -> int | None:
    """Return the token budget for a request, within the bounds and below `max_tokens`; None if there is no room."""
    most = bounds[1] if max_tokens is None else min(bounds[1], max_tokens - 1)
    if most < bounds[0]:
        return None
    if thinking.budget is not None and thinking.budget != -1:
        return min(max(thinking.budget, bounds[0]), most)
    if max_tokens is not None:  # a word gives no number: leave room for the answer
        most = max(bounds[0], min(most, max_tokens * 4 // 5))
    return min(max(BUDGETS[thinking.effort or "medium"], bounds[0]), most)
