"""Where a server keeps the reasoning of a turn.

A `Dialect` holds the differences between servers of one wire format: which field or block carries reasoning, and who
made that reasoning. The format modules read every carrier they know, wherever it is. The dialect decides which one they
write, and whether `<think>` in visible text is reasoning (only if the dialect says so; it is never guessed).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from thoughtline.providers.sources import UNVERIFIED, Source, seen, unverified
from thoughtline.values.items import UNKNOWN_FORMAT, ReasoningFormat

Carrier = Literal[
    "native",  # the format has one place for reasoning, and it is used
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",  # with a reasoning_opaque
    "thinking",
    "think_tags",  # <think>…</think> at the head of the visible text
    "mistral_chunks",  # {"type":"thinking","thinking":[{"type":"text",…}]} in content
    "cohere_chunks",  # {"type":"thinking","thinking":"…"} in content
    "google_extra",  # extra_content.google.thought_signature, on the message and on its calls
    "none",  # the wire has no place for it
]
CallIdForm = Literal[
    "any",  # any; no length limit is known
    "own",  # any, but the model works best with ids of its own form
    "short",  # in the form of the format's own provider
    "counted",  # exactly `call_id_chars` letters and digits
]


class Dialect(Struct, frozen=True):
    """Where a server of some format keeps reasoning, whose reasoning it is, and which call ids it accepts."""

    name: str
    carrier: Carrier
    reasoning_format: ReasoningFormat = UNKNOWN_FORMAT
    call_ids: CallIdForm = "any"
    call_id_chars: int = 0
    source: Source = UNVERIFIED


# Dialects that several providers share.
REASONING_CONTENT = Dialect(
    "reasoning_content",
    "reasoning_content",
    source=seen("https://docs.fireworks.ai/guides/reasoning", "2026-11-16", "also SiliconFlow, DeepInfra, llama.cpp"),
)
REASONING = Dialect(
    "reasoning",
    "reasoning",
    source=seen(
        "https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "also Groq, Together, vLLM, Ollama"
    ),
)
REASONING_DETAILS = Dialect(
    "reasoning_details",
    "reasoning_details",
    call_ids="short",
    source=seen("https://openrouter.ai/docs/use-cases/reasoning-tokens", "2026-11-16", "and its SDK's schema"),
)
THINK_TAGS = Dialect(
    "think_tags",
    "think_tags",
    source=seen("https://inference-docs.cerebras.ai/capabilities/reasoning", "2026-11-16", "GLM at Cerebras"),
)
NO_REASONING = Dialect(
    "none",
    "none",
    call_ids="short",
    source=unverified("Chat Completions knows no reasoning in messages; ids of calls are short there"),
)
