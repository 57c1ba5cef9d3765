"""Kimi's settings: sampling fixed by the mode, forced tools, and models that always think.

Live reports of 2026-08 and later. `kimi-latest` accepts anything; a newer name than K3 behaves as K3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import as_object, string

_K2 = re.compile(r"k2(\.|-|$)")
_SWITCHED = re.compile(r"k2\.[56]")
_FIXED = {"top_p": 0.95, "n": 1, "presence_penalty": 0, "frequency_penalty": 0}


def _is_versioned(exchange: SimExchange) -> bool:
    return re.search(r"k\d", exchange.model) is not None


def kimi_is_thinking(exchange: SimExchange) -> bool:
    """K2-thinking and K2.7-code always think; K3 can be switched off."""
    is_off = string(as_object(exchange.body.get("thinking")).get("type")) == "disabled"
    return re.search(r"thinking|k2\.7", exchange.model) is not None or not is_off


def thinking_can_be_off(exchange: SimExchange) -> Iterator[str]:
    kind = as_object(exchange.body.get("thinking")).get("type")
    if "k2.7" in exchange.model and kind is not None and kind != "enabled":
        yield "invalid thinking: only type=enabled is allowed for this model"


def sampling_fixed(exchange: SimExchange) -> Iterator[str]:
    """The value of the mode, or none."""
    is_cool = _SWITCHED.search(exchange.model) and not exchange.thinks
    allowed = {"temperature": 0.6 if is_cool else 1, **_FIXED}
    for name, value in allowed.items() if _is_versioned(exchange) else ():
        if exchange.body.get(name) not in (None, value):
            yield f"invalid {name}: only {value} is allowed for this model"


def forced_tool(exchange: SimExchange) -> Iterator[str]:
    """A named tool is never allowed with thinking; any tool is from K3 on."""
    choice = exchange.body.get("tool_choice")
    kind = string(choice) or string(as_object(choice).get("type"))
    word = {"function": "specified", "tool": "specified", "required": "required", "any": "required"}.get(kind, "")
    if exchange.thinks and (word == "specified" or (word and _K2.search(exchange.model))):
        yield f"tool_choice '{word}' is incompatible with thinking enabled"
