"""Why an interaction ended and what it cost, in shared words."""

from __future__ import annotations

from thoughtline.formats.endings import FinishWords, UsageMembers
from thoughtline.formats.json_text import encode
from thoughtline.values.turns import Usage

FINISH = FinishWords(
    known={
        "completed": "stop",
        "requires_action": "tool_calls",
        "incomplete": "length",
        "budget_exceeded": "length",
        "failed": "error",
        "cancelled": "other",
    },
    written={
        "stop": "completed",
        "tool_calls": "requires_action",
        "length": "incomplete",
        "content_filter": "incomplete",
        "error": "failed",
        "other": "completed",
    },
)
UNENDED = ("queued", "in_progress")
"""An interaction that goes on in the background."""

USAGE = UsageMembers(
    "/usage",
    input="total_input_tokens",
    output="total_output_tokens total_thought_tokens",  # thoughts are counted beside the answer
    reasoning="total_thought_tokens",
    cached="total_cached_tokens",
)


def encode_usage(usage: Usage) -> bytes:
    return encode(
        {
            "total_input_tokens": usage.input,
            "total_output_tokens": usage.output - usage.reasoning,
            "total_thought_tokens": usage.reasoning,
            "total_cached_tokens": usage.cached,
            "total_tokens": usage.input + usage.output,
        }
    )
