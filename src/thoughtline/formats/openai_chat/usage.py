"""Why a chat turn ended and what it cost, in shared words."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, decode, encode
from thoughtline.values.turns import Finish, FinishReason, Usage


class _Details(Struct, gc=False):
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: _Details | None = None
    prompt_tokens_details: _Details | None = None


_decoder = msgspec.json.Decoder(_Usage)

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "length": "length",
    "MAX_TOKENS": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "TOOL_CALL": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
    "ERROR": "error",
}


def decode_usage(raw: Raw) -> Usage:
    usage = decode(_decoder, raw, "/usage")
    out = usage.completion_tokens_details or _Details()
    into = usage.prompt_tokens_details or _Details()
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        out.reasoning_tokens or 0,
        into.cached_tokens or 0,
        raw.copy(),
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


def decode_finish(native: str | None) -> Finish | None:
    return Finish(_REASONS.get(native, "other"), native) if native else None


def encode_finish(finish: Finish | None) -> bytes:
    if finish is None:
        return bytes(NULL)
    if finish.native in _REASONS and finish.native.islower():
        return encode(finish.native)
    return encode("stop" if finish.reason == "other" else finish.reason)
