"""Settings that OpenAI and Azure reject: efforts, sampling, tools on chat, summaries."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import Json, as_object
from thoughtline_sim.refusals import openai_error
from thoughtline_sim.rules.openai_models import model_named
from thoughtline_sim.values import Rejection
from thoughtline_sim.writing import compact

_VERIFY = (
    "Your organization must be verified to generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization."
)


def quoted(values: tuple[str, ...]) -> str:
    """`'low', 'medium', and 'high'`"""
    *most, last = [f"'{value}'" for value in values]
    return f"{', '.join(most)}, and {last}" if most else last


def _unsupported(name: str, more: str = "") -> Rejection:
    message = f"Unsupported parameter: '{name}' is not supported with this model.{more}"
    return openai_error(message, param=name, code="unsupported_parameter")


# Responses


def effort_supported(exchange: SimExchange) -> Iterator[Rejection]:
    model = model_named(exchange.model)
    effort = as_object(exchange.body.get("reasoning")).get("effort")
    if "reasoning_effort" in exchange.body:
        name = "reasoning_effort"
        message = (
            "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
            "'reasoning.effort'."
        )
        yield openai_error(message, param=name, code="unsupported_parameter")
    if effort is not None and not model.reasons:
        yield _unsupported("reasoning.effort")
    elif effort is not None and model.efforts and effort not in model.efforts:
        message = (
            f"Unsupported value: '{effort}' is not supported with the '{exchange.model}' model. Supported values are: "
            f"{quoted(model.efforts)}."
        )
        yield openai_error(message, param="reasoning.effort", code="unsupported_value")


def sampling_supported(exchange: SimExchange) -> Iterator[Rejection]:
    model = model_named(exchange.model)
    if not model.takes_sampling or (exchange.thinks and not model.thinks_unasked):
        yield from (_unsupported(name) for name in ("temperature", "top_p") if exchange.body.get(name) is not None)


def may_summarize(exchange: SimExchange) -> Iterator[Rejection]:
    """The profile of an unverified organisation."""
    summary = as_object(exchange.body.get("reasoning")).get("summary")
    if exchange.profile == "unverified" and summary is not None:
        yield openai_error(_VERIFY, param="reasoning.summary", code="unsupported_value")


def codex_stores_nothing(exchange: SimExchange) -> Iterator[Rejection]:
    """The backend of Codex subscriptions, with its own envelope."""
    if "/codex/" in exchange.request.path and exchange.body.get("store") is not False:
        message = "Store must be set to false"
        yield Rejection(400, compact({"detail": message}), message)


# chat


def has_chat(exchange: SimExchange) -> Iterator[Rejection]:
    if not model_named(exchange.model).has_chat:
        message = "This model is only supported in v1/responses and not in v1/chat/completions."
        yield openai_error(message, 404, param="model")


def chat_effort_supported(exchange: SimExchange) -> Iterator[Rejection]:
    model = model_named(exchange.model)
    if "reasoning_effort" not in exchange.body:
        return
    effort: Json = exchange.body["reasoning_effort"]
    if not model.reasons:
        message = "Unrecognized request argument supplied: reasoning_effort"
        yield openai_error(message)
    elif model.chat_efforts and effort not in model.chat_efforts:
        given = "null" if effort is None else f"'{effort}'"
        message = (
            f"Unsupported value: 'reasoning_effort' does not support {given} with this model. Supported values are: "
            f"{quoted(model.chat_efforts)}."
        )
        yield openai_error(message, param="reasoning_effort", code="unsupported_value")


def chat_tools_supported(exchange: SimExchange) -> Iterator[Rejection]:
    """From 5.4 on no tools together with an effort; from 5.6 on only with `none`; on the newest none at all."""
    kind, effort = model_named(exchange.model).chat_tools, exchange.body.get("reasoning_effort")
    is_fine = {
        "free": True,
        "without effort": effort in (None, "none"),
        "none": effort == "none",
        "never": False,
    }
    if not exchange.body.get("tools") or is_fine[kind]:
        return
    instead = "Please use /v1/responses instead."
    if kind == "none":
        instead = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    message = (
        f"Function tools with reasoning_effort are not supported for {exchange.model} in /v1/chat/completions. "
        f"{instead}"
    )
    yield openai_error(message, param="reasoning_effort")


def chat_sampling_supported(exchange: SimExchange) -> Iterator[Rejection]:
    model = model_named(exchange.model)
    for name in () if model.takes_sampling else ("temperature", "top_p"):
        value = exchange.body.get(name)
        if value not in (None, 1):
            message = (
                f"Unsupported value: '{name}' does not support {value} with this model. Only the default (1) value is "
                "supported."
            )
            yield openai_error(message, param=name, code="unsupported_value")
    if not model.takes_old_limits and exchange.body.get("max_tokens") is not None:
        yield _unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    if not model.takes_old_limits and exchange.body.get("stop") is not None:
        yield _unsupported("stop")
