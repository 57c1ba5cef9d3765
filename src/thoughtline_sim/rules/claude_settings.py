"""Settings that Claude's models accept: modes of thinking, efforts, forced tools, sampling, edits."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import as_object, objects, string
from thoughtline_sim.rules.claude_chain import BINDING_BETA, claude_of, has_beta
from thoughtline_sim.rules.claude_prefix import platform_of

DISPLAY_BETA = "thinking-display-updates-2026-08-18"
EDITING_BETAS = ("context-management-2025-06-27", "compact-2026-01-12")
_MODES = ("adaptive", "between_tools", "disabled", "enabled")
_HIGHEST = ("xhigh", "max")
_CLEAR = "clear_thinking_20251015"
_THINKS = "when thinking is enabled or in adaptive mode."
_DOCS = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
_ADAPTIVE = '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def mode_of(exchange: SimExchange) -> str:
    """`enabled`, `adaptive`, `between_tools` or `off`."""
    kind = string(as_object(exchange.body.get("thinking")).get("type"))
    if kind == "disabled":
        return "off"
    return kind or ("adaptive" if claude_of(exchange).thinks_unasked else "off")


def is_thinking(exchange: SimExchange) -> bool:
    """A forced tool is called without thinking, if it is accepted."""
    return mode_of(exchange) != "off" and not (_is_forced(exchange) and claude_of(exchange).takes_forced_tool)


def _is_forced(exchange: SimExchange) -> bool:
    return as_object(exchange.body.get("tool_choice")).get("type") in ("any", "tool")


def shows_text(exchange: SimExchange) -> bool:
    """`display`: left out by default from 4.7 on. Notes between tools always have their text."""
    display = as_object(exchange.body.get("thinking")).get("display")
    hides = claude_of(exchange).hides_text and mode_of(exchange) != "between_tools"
    return display in ("summarized", "updates") if hides else display != "omitted"


def thinking_kind(exchange: SimExchange) -> Iterator[str]:
    """(d10) Each model has its modes."""
    thinking = as_object(exchange.body.get("thinking"))
    kind, model = string(thinking.get("type")), claude_of(exchange)
    if kind and kind not in _MODES:
        tags = ", ".join(f"'{mode}'" for mode in _MODES)
        yield f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
    elif kind == "adaptive" and kind not in model.modes:
        yield "adaptive thinking is not supported on this model"
    elif kind and kind not in model.modes:
        yield f'"thinking.type.{kind}" is not supported for this model. {_instead(kind, model.modes)}'
    if kind == "between_tools":
        yield from (f"thinking.{kind}.{name}: Extra inputs are not permitted" for name in thinking if name != "type")
    if thinking.get("display") == "updates" and not has_beta(exchange, DISPLAY_BETA):
        yield f"thinking.{kind or 'adaptive'}.display: Input should be 'summarized' or 'omitted'"


def budget_fits(exchange: SimExchange) -> Iterator[str]:
    """At least 1,024 tokens, and fewer than `max_tokens`, unless the request asks for thinking between calls.
    From reports of refusals; not checked against the provider's page."""
    thinking = as_object(exchange.body.get("thinking"))
    budget, most = thinking.get("budget_tokens"), exchange.body.get("max_tokens")
    if thinking.get("type") != "enabled" or not isinstance(budget, int):
        return
    if budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif isinstance(most, int) and budget >= most and not has_beta(exchange, "interleaved-thinking-2025-05-14"):
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."


def _instead(kind: str, modes: tuple[str, ...]) -> str:
    if kind == "disabled" and "enabled" in modes:
        return (
            'Thinking defaults to adaptive mode when not specified; use "thinking.type.enabled" with "budget_tokens" '
            "for extended thinking."
        )
    if kind == "disabled" and "between_tools" in modes:
        return f'Use "thinking.type.between_tools" for the lowest thinking setting, or {_ADAPTIVE}'
    return f"Use {_ADAPTIVE}"


def binding_beta_given(exchange: SimExchange) -> Iterator[str]:
    """(d9) `block_binding` needs its beta, and a mode that has it."""
    thinking = as_object(exchange.body.get("thinking"))
    kind = string(thinking.get("type")) or "adaptive"
    if "block_binding" in thinking and (kind == "disabled" or not has_beta(exchange, BINDING_BETA)):
        yield f"thinking.{kind}.block_binding: Extra inputs are not permitted"


def effort_fits(exchange: SimExchange) -> Iterator[str]:
    """Efforts by model; the highest two require full thinking."""
    config = as_object(exchange.body.get("output_config"))
    effort, model = string(config.get("effort")), claude_of(exchange)
    if not effort:
        return
    if not model.efforts:
        is_bedrock = platform_of(exchange) == "bedrock"
        yield (
            "output_config: Extra inputs are not permitted"
            if is_bedrock
            else "This model does not support the effort parameter."
        )
    elif effort not in model.efforts:
        yield (
            f"This model does not support effort level '{effort}'. Supported levels: "
            f"{', '.join(sorted(model.efforts))}."
        )
    kind = as_object(exchange.body.get("thinking")).get("type")
    is_limited = (model.family, model.version) in (("opus", (4, 8)), ("opus", (5, 0)), ("haiku", (5, 5)))
    if effort in _HIGHEST and kind == "disabled" and is_limited:
        yield (
            f"output_config.effort '{effort}' is not supported when thinking is disabled on this model. Use effort "
            "'high' or below, or enable thinking."
        )
    if effort in _HIGHEST and kind == "between_tools":
        yield (
            f"output_config.effort '{effort}' is not supported when thinking is between_tools on this model. Use "
            "effort 'high' or below."
        )


def forced_tool(exchange: SimExchange) -> Iterator[str]:
    """(d11)"""
    if mode_of(exchange) != "off" and _is_forced(exchange) and not claude_of(exchange).takes_forced_tool:
        yield "Thinking may not be enabled when tool_choice forces tool use."


def edits_fit(exchange: SimExchange) -> Iterator[str]:
    """Context editing: its beta, and the place and mode of clearing thinking."""
    if exchange.body.get("context_management") is None:
        return
    if not any(has_beta(exchange, beta) for beta in EDITING_BETAS):
        yield "context_management: Extra inputs are not permitted"
    edits = objects(as_object(exchange.body["context_management"]).get("edits"))
    kinds = [string(edit.get("type")) for edit in edits]
    if _CLEAR in kinds and mode_of(exchange) == "off":
        yield f"`{_CLEAR}` strategy requires `thinking` to be enabled or adaptive"
    if _CLEAR in kinds[1:]:
        yield (f"context_management: `{_CLEAR}` must be the first strategy in `context_management.edits` when provided")


def no_prefill(exchange: SimExchange) -> Iterator[str]:
    """From 4.6 on the last message must not be the model's, unless a summary is requested."""
    is_answer = "compaction" not in exchange.body and bool(exchange.history)
    is_prefilled = is_answer and exchange.history[-1].role == "assistant"
    if is_prefilled and not claude_of(exchange).takes_prefill:
        yield PREFILL


def sampling_fits(exchange: SimExchange) -> Iterator[str]:
    """Opus 4.7 and later accept only default sampling; earlier models reject it while they think, and since 4.1 both of
    two settings together.
    """
    temperature, top_p, top_k = (exchange.body.get(name) for name in ("temperature", "top_p", "top_k"))
    model = claude_of(exchange)
    is_one_alone = model.version >= (4, 1)
    if not model.takes_sampling:
        is_near = isinstance(top_p, (int, float)) and 0.99 <= top_p <= 1
        refused = {"temperature": temperature not in (None, 1), "top_p": top_p is not None and not is_near}
        refused["top_k"] = top_k is not None
        yield from (f"`{name}` is deprecated for this model." for name, is_refused in refused.items() if is_refused)
        is_one_alone = (model.family, model.version) == ("haiku", (5, 5))
    if model.takes_sampling and exchange.thinks and temperature not in (None, 1):
        yield (
            f"`temperature` may only be set to 1 {_THINKS} Please consult our documentation at "
            f"{_DOCS}#important-considerations-when-using-extended-thinking"
        )
    if model.takes_sampling and exchange.thinks and top_k is not None:
        yield f"`top_k` must be unset {_THINKS}"
    if model.takes_sampling and exchange.thinks and isinstance(top_p, (int, float)) and top_p < 0.95:
        yield f"`top_p` must be greater than or equal to 0.95 or unset {_THINKS}"
    if temperature is not None and top_p is not None and is_one_alone:
        yield "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
