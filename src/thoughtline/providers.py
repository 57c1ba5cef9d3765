"""Providers as data: where each keeps the reasoning of a turn.

A `Dialect` is what differs between servers that speak the same wire format: which field or block carries reasoning, and
whose reasoning it is. The format modules read every carrier they know wherever it stands; a dialect decides what they
write, and whether `<think>` in visible text is reasoning (never guessed: only where the dialect says so).
"""

from __future__ import annotations

from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    AZURE_OPENAI_RESPONSES_V1,
    COHERE_V2,
    COPILOT_V1,
    DEEPSEEK_V1,
    GLM_V1,
    GOOGLE_GEMINI_V1,
    KIMI_V1,
    MIMO_V1,
    MINIMAX_RESPONSE_V1,
    MISTRAL_V1,
    OPENAI_RESPONSES_V1,
    QWEN_V1,
    UNKNOWN_FORMAT,
    XAI_RESPONSES_V1,
    ReasoningFormat,
)

Carrier = Literal[
    "native",  # the format has one place for reasoning, and it is used
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",  # with reasoning_opaque beside it
    "thinking",
    "think_tags",  # <think>…</think> at the head of the visible text
    "mistral_chunks",  # {"type":"thinking","thinking":[{"type":"text",…}]} in content
    "cohere_chunks",  # {"type":"thinking","thinking":"…"} in content
    "google_extra",  # extra_content.google.thought_signature, on the message and on its calls
    "none",  # the wire has no place for it
]


class Dialect(Struct, frozen=True):
    """Where a server of some format keeps reasoning, and whose reasoning it is."""

    name: str
    carrier: Carrier
    reasoning_format: ReasoningFormat = UNKNOWN_FORMAT


def written_in(dialect: Dialect, carrier: str) -> Dialect:
    """The dialect with its reasoning in another place; an empty name leaves it where it is."""
    return replace(dialect, carrier=cast(Carrier, carrier)) if carrier and carrier != dialect.carrier else dialect


# openai_chat
REASONING_CONTENT = Dialect("reasoning_content", "reasoning_content")
REASONING = Dialect("reasoning", "reasoning")
REASONING_DETAILS = Dialect("reasoning_details", "reasoning_details")
THINK_TAGS = Dialect("think_tags", "think_tags")
NO_REASONING = Dialect("none", "none")
DEEPSEEK = Dialect("deepseek", "reasoning_content", DEEPSEEK_V1)
KIMI = Dialect("kimi", "reasoning_content", KIMI_V1)
MIMO = Dialect("mimo", "reasoning_content", MIMO_V1)
GLM = Dialect("glm", "reasoning_content", GLM_V1)
QWEN = Dialect("qwen", "reasoning_content", QWEN_V1)
MINIMAX_TAGS = Dialect("minimax_tags", "think_tags", MINIMAX_RESPONSE_V1)
MINIMAX_SPLIT = Dialect("minimax_split", "reasoning_details", MINIMAX_RESPONSE_V1)
MISTRAL = Dialect("mistral", "mistral_chunks", MISTRAL_V1)
COHERE = Dialect("cohere", "cohere_chunks", COHERE_V2)
COPILOT = Dialect("copilot", "reasoning_text", COPILOT_V1)
GOOGLE_CHAT = Dialect("google_chat", "google_extra", GOOGLE_GEMINI_V1)

# openai_responses
OPENAI_RESPONSES = Dialect("openai_responses", "native", OPENAI_RESPONSES_V1)
AZURE_RESPONSES = Dialect("azure_responses", "native", AZURE_OPENAI_RESPONSES_V1)
XAI_RESPONSES = Dialect("xai_responses", "native", XAI_RESPONSES_V1)
DEEPSEEK_RESPONSES = Dialect("deepseek_responses", "native", DEEPSEEK_V1)

# the other formats
ANTHROPIC = Dialect("anthropic", "native", ANTHROPIC_CLAUDE_V1)
DEEPSEEK_ANTHROPIC = Dialect("deepseek_anthropic", "native", DEEPSEEK_V1)
KIMI_ANTHROPIC = Dialect("kimi_anthropic", "native", KIMI_V1)
MIMO_ANTHROPIC = Dialect("mimo_anthropic", "native", MIMO_V1)
MINIMAX_ANTHROPIC = Dialect("minimax_anthropic", "native", MINIMAX_RESPONSE_V1)
BEDROCK_CLAUDE = Dialect("bedrock_claude", "native", ANTHROPIC_CLAUDE_V1)
BEDROCK_PLAIN = Dialect("bedrock_plain", "native")
GEMINI = Dialect("gemini", "native", GOOGLE_GEMINI_V1)
OLLAMA = Dialect("ollama", "native")
OLLAMA_TAGS = Dialect("ollama_tags", "think_tags")
AI_SDK = Dialect("ai_sdk", "native")
