"""Why a Gemini turn ended and what it cost, in shared words."""

from __future__ import annotations

from thoughtline.formats.endings import FinishWords, UsageMembers
from thoughtline.formats.json_text import encode
from thoughtline.values.turns import Usage

FINISH = FinishWords(
    known={
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
        "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "MALFORMED_FUNCTION_CALL": "error",
        "OTHER": "other",
    },
    written={
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "error": "OTHER",
        "other": "OTHER",
    },
)
USAGE = UsageMembers(
    "/usageMetadata",
    input="promptTokenCount",
    output="candidatesTokenCount thoughtsTokenCount",  # Gemini counts thoughts beside the answer
    reasoning="thoughtsTokenCount",
    cached="cachedContentTokenCount",
)


def encode_usage(usage: Usage) -> bytes:
    return encode(
        {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "cachedContentTokenCount": usage.cached,
            "totalTokenCount": usage.input + usage.output,
        }
    )
