"""Why a Responses turn ended and what it cost, in shared words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import decode, encode
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.turns import Finish, FinishReason, Usage


class _Out(Struct, gc=False):
    reasoning_tokens: int | None = None


class _In(Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: _Out | None = None
    input_tokens_details: _In | None = None


_decoder = msgspec.json.Decoder(_Usage)

_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


def decode_usage(raw: Raw) -> Usage:
    usage = decode(_decoder, raw, "/usage")
    reasoning = usage.output_tokens_details.reasoning_tokens if usage.output_tokens_details else 0
    cached = usage.input_tokens_details.cached_tokens if usage.input_tokens_details else 0
    return Usage(usage.input_tokens or 0, usage.output_tokens or 0, reasoning or 0, cached or 0, raw.copy())


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
        case "length":
            return [("status", b'"incomplete"'), ("incomplete_details", b'{"reason":"max_output_tokens"}')]
        case "content_filter":
            return [("status", b'"incomplete"'), ("incomplete_details", b'{"reason":"content_filter"}')]
        case "error":
            return [("status", b'"failed"')]
        case _:
            return [("status", b'"completed"')]
