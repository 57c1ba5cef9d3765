"""OpenAI's models by name: efforts on either API, tools on chat, sampling.

Measured or reported from 2026-09 to 2026-11 (onyx#15008, inspect_ai#5254, Vane#1173, LibreChat#14355, litellm#39631). A
newer name than any in the table behaves as the newest: it always reasons, and accepts tools on Responses only.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from thoughtline_sim.exchange import PLAIN_MODELS, SimExchange, unless_no_effort
from thoughtline_sim.reading import as_object

ChatTools = Literal["free", "without effort", "none", "never"]
_NAME = re.compile(r"^(?:openai/)?gpt-(\d+)(?:\.(\d+))?((?:-[a-z]+)*)")
_SERIES_O = re.compile(r"^(?:openai/)?o\d")
_LOW = ("low", "medium", "high")
_NONE = ("none", *_LOW, "xhigh")
_MAX = (*_LOW, "xhigh", "max")


class OpenAIModel(NamedTuple):
    """What a model accepts. The defaults are those of the newest."""

    efforts: tuple[str, ...] = _MAX
    """On Responses; empty for a model with unknown efforts."""
    chat_efforts: tuple[str, ...] = (*_LOW, "xhigh")
    chat_tools: ChatTools = "never"
    reasons: bool = True
    takes_sampling: bool = False
    takes_old_limits: bool = False
    """Whether chat accepts `stop` and `max_tokens`."""
    has_chat: bool = True
    thinks_unasked: bool = True
    """Whether it thinks if a request names no effort. One that does not takes sampling settings until it thinks."""
    preserves: bool = True
    """Whether reasoning with an edited history is dropped."""


_PLAIN = OpenAIModel((), (), "free", reasons=False, takes_sampling=True, takes_old_limits=True, preserves=False)
_UNKNOWN = _PLAIN._replace(reasons=True)
_FIVE = _UNKNOWN._replace(efforts=("minimal", *_LOW), chat_efforts=("minimal", *_LOW), takes_sampling=False)
_FIVE_ONE = _UNKNOWN._replace(efforts=("none", *_LOW), chat_efforts=("none", *_LOW), thinks_unasked=False)
_FIVE_TWO = _FIVE_ONE._replace(efforts=_NONE, chat_efforts=_NONE)
_FIVE_FOUR = _FIVE_TWO._replace(chat_tools="without effort")
_FIVE_FIVE = _FIVE_FOUR._replace(thinks_unasked=True, takes_sampling=False)
_FIVE_SIX = OpenAIModel(("none", *_MAX), _NONE, "none", takes_old_limits=True)
_VERSIONS: dict[tuple[int, int], OpenAIModel] = {
    (5, 0): _FIVE,
    (5, 1): _FIVE_ONE,
    (5, 2): _FIVE_TWO,
    (5, 3): _FIVE_TWO,
    (5, 4): _FIVE_FOUR,
    (5, 5): _FIVE_FIVE,
    (5, 6): _FIVE_SIX,
    (6, 0): _FIVE_SIX,
    (6, 1): OpenAIModel(),
}
_NAMED = {"gpt-6-astra": OpenAIModel(), "gpt-6.1-terra": _FIVE_SIX}


def model_named(name: str) -> OpenAIModel:
    """The model of a name. Names that are not OpenAI's (deployments at Azure) are not checked."""
    if name.startswith(PLAIN_MODELS):
        return _PLAIN
    if _SERIES_O.match(name):
        return _FIVE._replace(efforts=_LOW, chat_efforts=_LOW)
    found = _NAME.match(name)
    if found is None:
        return _UNKNOWN
    model = _NAMED.get(found[0].removeprefix("openai/")) or _VERSIONS.get((int(found[1]), int(found[2] or 0)))
    words = found[3].split("-")
    if "codex" in words or "pro" in words:
        return (model or OpenAIModel())._replace(efforts=(), has_chat=False, thinks_unasked=True)
    return model or OpenAIModel()


def thinks(exchange: SimExchange) -> bool:
    """Whether a model of OpenAI thinks about this request."""
    effort = as_object(exchange.body.get("reasoning")).get("effort") or exchange.body.get("reasoning_effort")
    is_unsaid = effort is None and not model_named(exchange.model).thinks_unasked
    return not is_unsaid and unless_no_effort(exchange)
