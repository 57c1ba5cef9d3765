"""Switches and efforts of providers that check little else: xAI, GLM, MiniMax, Qwen, Mistral, Groq, Copilot, Meta.

If a provider's message is unknown, the simulator's says that it is simulated. An unknown newer name behaves as the
newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.reading import Json, as_object, string
from thoughtline_sim.refusals import mistral_bad_argument, openai_error, xai_error
from thoughtline_sim.values import Rejection, last_person

_SIMULATED = "simulated wording: "


def _effort(exchange: SimExchange) -> Json:
    return as_object(exchange.body.get("reasoning")).get("effort") or exchange.body.get("reasoning_effort")


def _thinking_type(exchange: SimExchange) -> str:
    return string(as_object(exchange.body.get("thinking")).get("type"))


def _version(name: str) -> tuple[int, int]:
    """The first number of a name: `glm-5.3-air` is (5, 3); a name without a number is newer than any."""
    found = re.search(r"(\d+)(?:\.(\d+))?", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


def forget_earlier_turns(exchange: SimExchange) -> None:
    """Reasoning before the latest user message is accepted but not read."""
    for message in exchange.history[: last_person(exchange.history) + 1]:
        for number, thought in enumerate(message.thoughts):
            exchange.unread[f"{message.index}.{number}"] = thought


# xAI

_NO_EFFORT = re.compile(r"grok-(4\.20(?!.*multi-agent)|4$|4-(?!\d*\.)|4-latest|code|build)")
_PENALTIES = ("presence_penalty", "frequency_penalty", "stop")


def xai_thinks(exchange: SimExchange) -> bool:
    """Grok 4.3 can be switched off; from 4.5 on no model can."""
    return "non-reasoning" not in exchange.model and not ("4.3" in exchange.model and _effort(exchange) == "none")


def xai_parameters(exchange: SimExchange) -> Iterator[str | Rejection]:
    """The code of the first one is recorded."""
    if _effort(exchange) is not None and _NO_EFFORT.search(exchange.model):
        sentence = f"Model {exchange.model} does not support parameter reasoningEffort."
        yield xai_error(sentence, "Client specified an invalid argument")
    for name in _PENALTIES if exchange.thinks else ():
        if exchange.body.get(name):
            head, *rest = name.split("_")
            spelled = head + "".join(word.title() for word in rest)
            yield f"Argument not supported on this model: {spelled}"


# GLM


def glm_can_be_off(exchange: SimExchange) -> Iterator[Rejection]:
    if _version(exchange.model) >= (5, 3) and _thinking_type(exchange) == "disabled":
        yield openai_error(f"{_SIMULATED}thinking.type disabled is not supported by {exchange.model}", code="1210")


def glm_efforts(exchange: SimExchange) -> Iterator[Rejection]:
    effort = exchange.body.get("reasoning_effort")
    if _version(exchange.model) >= (5, 3) and effort not in (None, "low", "high", "max"):
        message = f"{_SIMULATED}reasoning_effort {effort} is not supported. Supported values are: low, high, max."
        yield openai_error(message, code="1210")


def glm_clears_thinking(exchange: SimExchange) -> Iterator[str]:
    """Earlier turns are read on the Coding Plan, and elsewhere on request."""
    switch = as_object(exchange.body.get("thinking")).get("clear_thinking")
    if switch is True or (switch is None and "/coding/" not in exchange.request.path):
        forget_earlier_turns(exchange)
    yield from ()


# MiniMax


def minimax_thinks(exchange: SimExchange) -> bool:
    """M2 always thinks, and so do M3.1 and later. M3 thinks on chat by default, elsewhere on request."""
    if _version(exchange.model) != (3, 0):
        return True
    kind, effort = _thinking_type(exchange), _effort(exchange)
    if exchange.request.path.endswith("/chat/completions"):
        return kind != "disabled" and effort != "none"
    return kind in ("enabled", "adaptive") or effort not in (None, "none")


def minimax_can_be_off(exchange: SimExchange) -> Iterator[str]:
    if _version(exchange.model) >= (3, 1) and _thinking_type(exchange) == "disabled":
        yield f"{_SIMULATED}thinking.type disabled is not supported by {exchange.model}"


# Qwen on DashScope

_OPEN_WEIGHTS = re.compile(r"^qwen3-\d+(\.\d+)?b(-a\d+b)?$")


def qwen_streams_thinking(exchange: SimExchange) -> Iterator[Rejection]:
    is_on = exchange.body.get("enable_thinking") is not False
    if _OPEN_WEIGHTS.match(exchange.model) and is_on and not exchange.is_streaming:
        message = "parameter.enable_thinking must be set to false for non-streaming calls"
        yield openai_error(message, code="invalid_parameter_error")


def qwen_one_limit(exchange: SimExchange) -> Iterator[Rejection]:
    has_both = exchange.body.get("reasoning_effort") and exchange.body.get("thinking_budget")
    if has_both and _version(exchange.model) >= (3, 8):
        message = f"{_SIMULATED}reasoning_effort and thinking_budget cannot be set at the same time"
        yield openai_error(message, code="invalid_parameter_error")


def qwen_preserves(exchange: SimExchange) -> Iterator[str]:
    """`preserve_thinking`: on by default only on 3.8 Max."""
    switch = exchange.body.get("preserve_thinking")
    is_default = _version(exchange.model) >= (3, 8) and "flash" not in exchange.model
    if switch is False or (switch is None and not is_default):
        forget_earlier_turns(exchange)
    yield from ()


# Mistral


def mistral_effort(exchange: SimExchange) -> Iterator[Rejection]:
    """Small 4 and Medium 3.5 have it, with two values."""
    effort, name = exchange.body.get("reasoning_effort"), exchange.model
    if effort is None:
        return
    has_effort = re.search(r"small-(latest|26)|medium-(latest|26|3)|medium$", name)
    if not has_effort:
        yield mistral_bad_argument("reasoning_effort is not enabled for this model")
    elif effort not in ("none", "high"):
        yield mistral_bad_argument(
            f"reasoning_effort='{effort}' is not supported for this model. Must be one of (<ReasoningEffort.none: "
            "'none'>, <ReasoningEffort.high: 'high'>)"
        )


def mistral_thinks(exchange: SimExchange) -> bool:
    """Magistral always thinks, the others at `high`. A name that is not Mistral's behaves as Magistral."""
    is_plain = re.match(r"(mistral|ministral|codestral|devstral|pixtral|open-)", exchange.model)
    return not is_plain or exchange.body.get("reasoning_effort") == "high"


# Groq


def groq_effort(exchange: SimExchange) -> Iterator[str]:
    effort, name = exchange.body.get("reasoning_effort"), exchange.model
    if effort is None:
        return
    if "gpt-oss" in name and effort not in ("low", "medium", "high"):
        yield "`reasoning_effort` must be one of `low`, `medium`, or `high`"
    elif "qwen" in name and effort not in ("none", "default"):
        yield "`reasoning_effort` must be one of `none` or `default`"
    elif "gpt-oss" not in name and "qwen" not in name:
        yield "`reasoning_effort` is not supported with this model"


# Copilot

_COPILOT_EFFORTS = {"claude-opus-4.7": ("medium",), "claude-opus-4.8": ("low", "medium", "high")}
_COPILOT_PLAIN = ("gpt-4", "claude-haiku-4.5", "claude-sonnet-4.5", "claude-sonnet-4")


_RESPONSES_ALONE = re.compile(r"codex|gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)")


def copilot_serves(endpoint: str) -> Rule:
    """Each model has its own endpoints (`supported_endpoints` of its list of models): Messages is for Claude, Responses
    for OpenAI's, the only one from GPT-5.4 on and for Codex (copilot-api#113, copilot-cli#4337).
    """

    def refused(exchange: SimExchange) -> Iterator[str]:
        is_claude, is_openai = exchange.model.startswith("claude"), exchange.model.startswith(("gpt-", "o"))
        served = {
            "/v1/messages": is_claude,
            "/responses": is_openai,
            "/chat/completions": not _RESPONSES_ALONE.search(exchange.model),
        }
        if not served[endpoint]:
            yield f'model "{exchange.model}" is not accessible via the {endpoint} endpoint'

    return refused


def copilot_effort(exchange: SimExchange) -> Iterator[str]:
    """Efforts per model; the error names the field of the API in use."""
    effort = exchange.body.get("reasoning_effort")
    config = as_object(exchange.body.get("output_config")).get("effort")
    field, value = ("output_config.effort", config) if config else ("reasoning_effort", effort)
    if value is None:
        return
    known = _COPILOT_EFFORTS.get(exchange.model)
    if exchange.model.startswith(_COPILOT_PLAIN) and known is None:
        yield f'{field} "{value}" was provided, but model {exchange.model} does not support reasoning effort'
    elif known is not None and value not in known:
        yield (f'{field} "{value}" is not supported by model {exchange.model}; supported values: [{", ".join(known)}]')


def copilot_input_types(exchange: SimExchange) -> Iterator[str]:
    """Some models of Copilot's Responses reject reasoning items: the profile `no-items`."""
    for message in exchange.history if exchange.profile == "no-items" else ():
        if message.raw.get("type") == "reasoning":
            yield f'input[{message.index}].type "reasoning" is not a valid input item type'


# Meta


def meta_always_thinks(exchange: SimExchange) -> Iterator[str]:
    if _effort(exchange) == "none" or _thinking_type(exchange) == "disabled":
        yield f"{_SIMULATED}reasoning cannot be disabled for {exchange.model}"


def meta_forces_no_tool(exchange: SimExchange) -> Iterator[str]:
    choice = exchange.body.get("tool_choice")
    if choice == "required" or as_object(choice).get("type") in ("function", "any", "tool"):
        yield f"{_SIMULATED}tool_choice that forces a tool is not supported by {exchange.model}"


# OpenRouter

_MANDATORY = re.compile(
    r"gpt-(5-pro|6-astra|6\.1)|claude-(fable|mythos|opus-5\.5)|gemini-[3-9].*pro|minimax-m2|grok-4\.[5-9]"
)


def openrouter_mandatory(exchange: SimExchange) -> Iterator[Rejection]:
    """Models that always reason and can't be switched off."""
    reasoning = as_object(exchange.body.get("reasoning"))
    is_off = reasoning.get("enabled") is False or reasoning.get("effort") == "none"
    if is_off and _MANDATORY.search(exchange.model):
        yield openai_error("Reasoning is mandatory for this endpoint and cannot be disabled.")


def only(rule: Rule, pattern: str) -> Rule:
    """A rule for the models whose name contains a pattern."""
    return lambda exchange: rule(exchange) if re.search(pattern, exchange.model) else iter(())
