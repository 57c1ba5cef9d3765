"""Why a Responses turn ended and what it cost, in shared words."""

from __future__ import annotations

from collections.abc import Iterable

from thoughtline.formats.endings import UsageMembers
from thoughtline.formats.json_text import encode
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.turns import Finish, FinishReason, Usage

USAGE = UsageMembers(
    "/usage",
    input="input_tokens",
    output="output_tokens",
    reasoning="output_tokens_details.reasoning_tokens",
    cached="input_tokens_details.cached_tokens",
)
_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


def encode_usage(usage: Usage) -> bytes:
    return encode(
        {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }
    )


def decode_finish(status: str | None, why: str | None, items: Iterable[Item]) -> Finish | None:
    """A response that is still being made has not ended."""
    match status:
        case "completed" | None:
            has_calls = any(isinstance(item, ToolCall) for item in items)
            return Finish("tool_calls" if has_calls else "stop", status or "completed")
        case "incomplete":
            return Finish(_INCOMPLETE.get(why or "", "other"), status)
        case "failed" | "cancelled":
            return Finish("error", status)
        case _:
            return None


def encode_status(finish: Finish | None) -> list[tuple[str, bytes]]:
    """`status`, and why where it is not complete."""
    if finish is None:
        return [("status", b'"in_progress"')]
    match finish.reason:
        case "length" | "content_filter" as reason:
            why = "max_output_tokens" if reason == "length" else reason
            return [("status", b'"incomplete"'), ("incomplete_details", encode({"reason": why}))]
        case "error":
            return [("status", b'"failed"')]
        case _:
            return [("status", b'"completed"')]
