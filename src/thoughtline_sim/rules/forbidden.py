"""Families that refuse a field for being there: Mistral, Groq, Cerebras; and what Ollama and Copilot look at."""

from __future__ import annotations

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.refusals import (
    cerebras_error,
    copilot_error,
    groq_error,
    mistral_extra_forbidden,
    openai_error,
    plain_error,
)
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import Json, as_object, digest, objects, string

_MISTRAL_KEYS = {"role", "content", "tool_calls", "prefix", "name", "tool_call_id", "weight"}
_SUPPORTED = {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "reasoning", "channel"}
"""What Groq and Cerebras know of a message. Copilot CLI's `refusal` and `__copilotMessageSource` are refused there."""

_OLLAMA_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "ultra", "max", "none")
_NOT_THINKING = ("llama", "gemma2", "gemma3", "mistral", "phi")
"""Beginnings of Ollama model names that can't think."""


def mistral_extra_keys(exchange: SimExchange) -> Rejection | None:
    """422, one detail for each key (contracts.md §15 d)."""
    found: list[tuple[list[Json], Json]] = []
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        for key in message:
            if key not in _MISTRAL_KEYS:
                found.append((["body", "messages", index, string(message.get("role")), key], message[key]))
    return mistral_extra_forbidden(found) if found else None


def groq_properties(exchange: SimExchange) -> Rejection | None:
    """All that the first such message has, one a line."""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        place = f"'messages.{index}'"
        refused = [f"{place} : property '{key}' is unsupported" for key in message if key not in _SUPPORTED]
        if refused:
            role = string(message.get("role"))
            lines = "\n".join(refused)
            return groq_error(f"{place} : for 'role:{role}' the following must be satisfied[({lines})]")
    return None


def cerebras_properties(exchange: SimExchange) -> Rejection | None:
    """All of them at once, one a line."""
    places: list[str] = [name for name in ("reasoning", "enable_thinking") if name in exchange.body]
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        role = string(message.get("role"))
        places += [f"messages.{index}.{role}.{key}" for key in message if key not in _SUPPORTED]
    if not places:
        return None
    return cerebras_error("\n".join(f"{place}: property '{place}' is unsupported" for place in places))


def ollama_can_think(exchange: SimExchange) -> Rejection | None:
    if exchange.body.get("think") and exchange.model.startswith(_NOT_THINKING):
        return plain_error(f'"{exchange.model}" does not support thinking')
    return None


def ollama_effort_known(exchange: SimExchange) -> Rejection | None:
    """The compatible endpoint."""
    told = exchange.body.get("reasoning_effort") or as_object(exchange.body.get("reasoning")).get("effort")
    if told not in (None, "none") and exchange.model.startswith(_NOT_THINKING):
        return openai_error(f'"{exchange.model}" does not support thinking')
    if told is None or told in _OLLAMA_EFFORTS:
        return None
    words = ", ".join(f'"{word}"' for word in _OLLAMA_EFFORTS[:-1])
    return openai_error(f'invalid reasoning value: "{told}" (must be {words}, or "{_OLLAMA_EFFORTS[-1]}")')


def copilot_opaque_opens(exchange: SimExchange) -> Rejection | None:
    """A token of another model or account, or one whose text was changed (contracts.md §29)."""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        token = message.get("reasoning_opaque")
        if token is None:
            continue
        bound = ("copilot", exchange.model, exchange.account)
        claims = exchange.mint.open(string(token), bound, ANTHROPIC)
        text = message.get("reasoning_text")
        if claims is None or (text is not None and claims["text"] != digest(string(text))):
            return copilot_error(f"messages.{index}.content.0: Invalid `signature` in `thinking` block")
    return None
