"""How a request is told not to think: each family has a switch of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from thoughtline.replay.contracts import Contract
from thoughtline.values.turns import Transcript

Member = tuple[str, bytes | None]
"""A top-level member of a request and its JSON; None takes it out."""

CIPHERTEXT = "reasoning.encrypted_content"
"""What a request includes to get encrypted reasoning from the Responses API."""

_BEDROCK_FIELDS = "additionalModelRequestFields"
_BEDROCK_SWITCHES = ("thinking", "reasoning_config", "reasoningConfig")


def paused(transcript: Transcript, contract: Contract) -> Member:
    """The member that switches thinking off for one request."""
    match transcript.format:
        case "ollama_chat":
            return "think", b"false"
        case "bedrock_converse":
            return _BEDROCK_FIELDS, _without_switches(transcript.body)
        case "openai_chat":
            return _in_chat(contract)
        case _:
            return "thinking", b'{"type":"disabled"}'


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
    for name in ("generationConfig", "generation_config"):
        settings: dict[str, Any] | Any = msgspec.json.decode(body).get(name)
        if isinstance(settings, dict):
            kept = {key: value for key, value in settings.items() if key not in ("thinkingConfig", "thinking_config")}
            return [(name, msgspec.json.encode(kept))] if kept != settings else []
    return []


def _in_chat(contract: Contract) -> Member:
    """OpenRouter's switch is `reasoning`, DashScope's `enable_thinking`; the others share Anthropic's."""
    dialect = contract.dialect
    if dialect.name == "reasoning_details":
        return "reasoning", b'{"enabled":false}'
    if dialect.name == "qwen":
        return "enable_thinking", b"false"
    return "thinking", b'{"type":"disabled"}'


def _without_switches(body: bytes) -> bytes | None:
    """Converse has no switch of its own: what asks the model to think stands among the model's own fields."""
    fields: dict[str, Any] | Any = msgspec.json.decode(body).get(_BEDROCK_FIELDS)
    if not isinstance(fields, dict):
        return None
    kept = {name: value for name, value in fields.items() if name not in _BEDROCK_SWITCHES}
    return msgspec.json.encode(kept) if kept else None
