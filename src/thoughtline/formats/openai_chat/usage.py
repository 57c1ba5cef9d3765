"""Why a chat turn ended and what it cost, in shared words."""

from __future__ import annotations

from thoughtline.formats.endings import FinishWords, UsageMembers
from thoughtline.formats.json_text import encode
from thoughtline.values.turns import Usage

FINISH = FinishWords(
    known={
        "stop": "stop",
        "eos": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    },
    written={
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    },
    foreign={
        "COMPLETE": "stop",
        "STOP_SEQUENCE": "stop",
        "MAX_TOKENS": "length",
        "TOOL_CALL": "tool_calls",
        "ERROR": "error",
    },
)
USAGE = UsageMembers(
    "/usage",
    input="prompt_tokens",
    output="completion_tokens",
    reasoning="completion_tokens_details.reasoning_tokens",
    cached="prompt_tokens_details.cached_tokens",
)
COHERE_USAGE = UsageMembers(
    "/usage",
    input="tokens.input_tokens",
    output="tokens.output_tokens",
    reasoning="tokens.reasoning_tokens",
    cached="cached_tokens",
)


def encode_usage(usage: Usage) -> bytes:
    return encode(
        {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        }
    )
