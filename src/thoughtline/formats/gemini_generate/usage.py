"""Why a Gemini turn ended and what it cost, in shared words."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import decode, encode
from thoughtline.values.items import Item, ToolCall
from thoughtline.values.turns import Finish, FinishReason, Usage


class _Usage(Struct, gc=False):
    promptTokenCount: int | None = None  # noqa: N815 - the wire's spelling
    candidatesTokenCount: int | None = None  # noqa: N815 - the wire's spelling
    thoughtsTokenCount: int | None = None  # noqa: N815 - the wire's spelling
    cachedContentTokenCount: int | None = None  # noqa: N815 - the wire's spelling


_decoder = msgspec.json.Decoder(_Usage)

_REASONS: dict[str, FinishReason] = {
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
}
_NATIVE: dict[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "OTHER",
    "other": "OTHER",
}


def decode_usage(raw: Raw) -> Usage:
    """Gemini counts thoughts beside the answer; here they are part of the output."""
    usage = decode(_decoder, raw, "/usageMetadata")
    thoughts = usage.thoughtsTokenCount or 0
    output = (usage.candidatesTokenCount or 0) + thoughts
    return Usage(usage.promptTokenCount or 0, output, thoughts, usage.cachedContentTokenCount or 0, raw.copy())


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


def decode_finish(native: str | None, items: tuple[Item, ...] | list[Item]) -> Finish | None:
    """Gemini says STOP for calls too: the items tell."""
    if not native:
        return None
    if native == "STOP" and any(isinstance(item, ToolCall) for item in items):
        return Finish("tool_calls", native)
    return Finish(_REASONS.get(native, "other"), native)


def encode_finish(finish: Finish) -> bytes:
    return encode(finish.native if finish.native in _REASONS else _NATIVE[finish.reason])
