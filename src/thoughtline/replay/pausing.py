"""How a request is told not to think: each family has a switch of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from thoughtline.replay.contracts import Contract
from thoughtline.turns import Transcript

Member = tuple[str, bytes | None]
"""A top-level member of a request and its JSON; None takes it out."""

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
