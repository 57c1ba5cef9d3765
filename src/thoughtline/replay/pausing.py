"""How a request is told not to think: what its model's row says, written into the request as it stands."""

from __future__ import annotations

from typing import Any

import msgspec

from thoughtline.providers import Contract
from thoughtline.providers.thinking import switched_off
from thoughtline.values.turns import Transcript

Member = tuple[str, bytes | None]
"""A top-level member of a request and its JSON; None takes it out."""

CIPHERTEXT = "reasoning.encrypted_content"
"""What a request includes to get encrypted reasoning from the Responses API."""

_BEDROCK_FIELDS = "additionalModelRequestFields"
_BEDROCK_SWITCHES = ("thinking", "reasoning_config", "reasoningConfig")
_CONFIGS = ("generationConfig", "generation_config")


def paused(transcript: Transcript, contract: Contract, model: str) -> list[Member]:
    """The members that switch thinking off for one request; none if this model can't be switched off."""
    if transcript.format == "bedrock_converse":
        return [(_BEDROCK_FIELDS, _without_switches(transcript.body))] if not contract.thinks_by_default else []
    return [_written(path, value, transcript.body) for path, value in switched_off(contract, model or transcript.model)]


def _written(path: tuple[str, ...], value: object, body: bytes) -> Member:
    """A member with a value set inside it. What asked for thinking beside it goes, and other settings stay."""
    given: dict[str, Any] = msgspec.json.decode(body)
    name = next((one for one in _CONFIGS if one in given), path[0]) if path[0] in _CONFIGS else path[0]
    for step in reversed(path[1:]):
        value = {step: value}
    if isinstance(value, dict) and len(path) > 1 and name != "thinking" and isinstance(given.get(name), dict):
        others = {key: held for key, held in given[name].items() if key not in ("thinking_config", "max_tokens")}
        value = {**others, **value}
    return name, msgspec.json.encode(value)


_ASKING: dict[str, tuple[str, ...]] = {
    "ollama_chat": ("think",),
    "openai_chat": ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "think"),
    "openai_responses": ("reasoning",),
    "anthropic_messages": ("thinking",),
}
"""The members that ask for thinking, by format; in the others they stand among further settings."""


def unasked(transcript: Transcript) -> list[Member]:
    """What takes out all that asks a model to think, for one that can't."""
    if transcript.thinking in ("unsaid", "off"):
        return []
    if transcript.format == "bedrock_converse":
        return [(_BEDROCK_FIELDS, _without_switches(transcript.body))]
    if transcript.format == "gemini_generate":
        return _without_thinking_config(transcript.body)
    given = msgspec.json.decode(transcript.body, type=dict[str, msgspec.Raw])
    return [(name, None) for name in _ASKING.get(transcript.format, ()) if name in given]


def without_ciphertext(transcript: Transcript) -> list[Member]:
    """What no longer asks for encrypted reasoning; the rest of what a request asks for beside its answer stays."""
    if CIPHERTEXT not in transcript.includes:
        return []
    others = [name for name in transcript.includes if name != CIPHERTEXT]
    return [("include", msgspec.json.encode(others) if others else None)]


def _without_thinking_config(body: bytes) -> list[Member]:
    for name in _CONFIGS:
        settings: dict[str, Any] | Any = msgspec.json.decode(body).get(name)
        if isinstance(settings, dict):
            kept = {key: value for key, value in settings.items() if key not in ("thinkingConfig", "thinking_config")}
            return [(name, msgspec.json.encode(kept))] if kept != settings else []
    return []


def _without_switches(body: bytes) -> bytes | None:
    """Converse has no switch of its own: what asks the model to think stands among the model's own fields."""
    fields: dict[str, Any] | Any = msgspec.json.decode(body).get(_BEDROCK_FIELDS)
    if not isinstance(fields, dict):
        return None
    kept = {name: value for name, value in fields.items() if name not in _BEDROCK_SWITCHES}
    return msgspec.json.encode(kept) if kept else None
