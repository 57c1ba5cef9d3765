"""Families that reject unknown fields: Mistral, Groq, Cerebras; and the checks of Ollama and Copilot."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import as_object, objects, string
from thoughtline_sim.refusals import mistral_extra_forbidden
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import Rejection
from thoughtline_sim.writing import digest

_MISTRAL_KEYS = {"role", "content", "tool_calls", "prefix", "name", "tool_call_id", "weight"}
_SUPPORTED = {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "reasoning", "channel"}
"""Members of a message that Groq and Cerebras know. Copilot CLI's `refusal` and
`__copilotMessageSource` are rejected.
"""

_OLLAMA_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "ultra", "max", "none")
_NOT_THINKING = ("llama", "gemma2", "gemma3", "mistral", "phi")
"""Beginnings of Ollama model names that can't think."""


def _unknown_keys(exchange: SimExchange, known: set[str]) -> Iterator[tuple[int, str, list[str]]]:
    """For each message with unknown members: its index, its role and their names."""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        keys = [key for key in message if key not in known]
        if keys:
            yield index, string(message.get("role")), keys


def mistral_extra_keys(exchange: SimExchange) -> Iterator[Rejection]:
    """422, one detail for each key."""
    messages = objects(exchange.body.get("messages"))
    places = [
        (["body", "messages", index, role, key], messages[index][key])
        for index, role, keys in _unknown_keys(exchange, _MISTRAL_KEYS)
        for key in keys
    ]
    if places:
        yield mistral_extra_forbidden(places)


def groq_properties(exchange: SimExchange) -> Iterator[str]:
    """All unknown members of the first such message, one per line."""
    for index, role, keys in _unknown_keys(exchange, _SUPPORTED):
        place = f"'messages.{index}'"
        lines = "\n".join(f"{place} : property '{key}' is unsupported" for key in keys)
        yield f"{place} : for 'role:{role}' the following must be satisfied[({lines})]"


def cerebras_properties(exchange: SimExchange) -> Iterator[str]:
    """All of them, one per line."""
    places: list[str] = [name for name in ("reasoning", "enable_thinking") if name in exchange.body]
    for index, role, keys in _unknown_keys(exchange, _SUPPORTED):
        places += [f"messages.{index}.{role}.{key}" for key in keys]
    if places:
        yield "\n".join(f"{place}: property '{place}' is unsupported" for place in places)


def ollama_model_thinks(model: str) -> bool:
    return not model.startswith(_NOT_THINKING)


def ollama_thinks(exchange: SimExchange) -> bool:
    return exchange.body.get("think") is not False and ollama_model_thinks(exchange.model)


def ollama_can_think(exchange: SimExchange) -> Iterator[str]:
    """Before 0.17.7 (the profile `0.17`) only gpt-oss has levels."""
    think = exchange.body.get("think")
    if think and not ollama_model_thinks(exchange.model):
        yield f'"{exchange.model}" does not support thinking'
    if isinstance(think, str) and exchange.profile == "0.17" and "gpt-oss" not in exchange.model:
        yield f'think value "{think}" is not supported for this model'


def ollama_effort_known(exchange: SimExchange) -> Iterator[str]:
    """The OpenAI-compatible API."""
    effort = exchange.body.get("reasoning_effort") or as_object(exchange.body.get("reasoning")).get("effort")
    if effort not in (None, "none") and exchange.model.startswith(_NOT_THINKING):
        yield f'"{exchange.model}" does not support thinking'
    if effort is not None and effort not in _OLLAMA_EFFORTS:
        words = ", ".join(f'"{word}"' for word in _OLLAMA_EFFORTS[:-1])
        yield f'invalid reasoning value: "{effort}" (must be {words}, or "{_OLLAMA_EFFORTS[-1]}")'


def copilot_opaque_opens(exchange: SimExchange) -> Iterator[str]:
    """A token of another model or account, or one with changed text."""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        token = message.get("reasoning_opaque")
        if token is None:
            continue
        bound = ("copilot", exchange.model, exchange.account)
        claims = exchange.mint.open(string(token), bound, ANTHROPIC)
        text = message.get("reasoning_text")
        if claims is None or (text is not None and claims["text"] != digest(string(text))):
            yield f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
