"""Why a Converse turn ended and what it cost, in shared words."""

from __future__ import annotations

from thoughtline.formats.endings import FinishWords, UsageMembers
from thoughtline.formats.json_text import encode
from thoughtline.values.turns import Usage

FINISH = FinishWords(
    known={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter",
    },
    written={
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
    },
)
USAGE = UsageMembers(
    "/usage",
    input="inputTokens cacheReadInputTokens cacheWriteInputTokens",
    output="outputTokens",
    cached="cacheReadInputTokens",
)


def encode_usage(usage: Usage) -> bytes:
    known = {"inputTokens": usage.input - usage.cached, "outputTokens": usage.output}
    return encode({**known, "cacheReadInputTokens": usage.cached, "totalTokens": usage.input + usage.output})
