"""DeepSeek's settings: values of the effort, the effort without thinking, and the names of its models."""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import as_object, string
from thoughtline_sim.refusals import OCTETS, openai_error
from thoughtline_sim.values import Rejection

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_NAMES = re.compile(r"deepseek-(v4(\.1)?-(pro|flash)|flash|chat|reasoner)(-\d+)?$")


def model_known(exchange: SimExchange) -> Iterator[str]:
    """Chat and Responses. The Anthropic API accepts any name for one of its own, and a reseller has
    names of its own.
    """
    if exchange.profile != "reseller" and not _NAMES.match(exchange.model):
        yield (
            f"The supported API model names are deepseek-v4-pro or deepseek-v4-flash, but you passed {exchange.model}."
        )


def effort_known(exchange: SimExchange) -> Iterator[Rejection]:
    """A 422, with the position where the word ends."""
    effort = exchange.body.get("reasoning_effort")
    if effort is None or effort in _EFFORTS:
        return
    written = f'"{effort}"'.encode()
    column = exchange.request.body.find(written) + len(written)
    expected = ", ".join(f"`{word}`" for word in _EFFORTS)
    message = (
        f"Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `{effort}`, "
        f"expected one of {expected} at line 1 column {column}"
    )
    yield openai_error(message, 422, code="invalid_request_error", content_type=OCTETS)


def effort_with_thinking(exchange: SimExchange) -> Iterator[str]:
    """Claude Code sends that pair for its sub-agents."""
    is_off = string(as_object(exchange.body.get("thinking")).get("type")) == "disabled"
    effort = exchange.body.get("reasoning_effort") or as_object(exchange.body.get("output_config")).get("effort")
    if is_off and effort not in (None, "none"):
        yield "thinking options type cannot be disabled when reasoning_effort is set"


def responses_think(exchange: SimExchange) -> bool:
    """The Responses API has a single switch."""
    return as_object(exchange.body.get("reasoning")).get("effort") != "none"
