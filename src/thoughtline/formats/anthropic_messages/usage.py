"""Why a Messages turn ended and what it cost, in shared words."""

from __future__ import annotations

from msgspec import Raw

from thoughtline.formats.endings import FinishWords, UsageMembers
from thoughtline.formats.json_text import NULL, encode, members, set_members
from thoughtline.values.turns import Usage

FINISH = FinishWords(
    known={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "other",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    },
    written={
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    },
)
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
USAGE = UsageMembers(
    "/usage",
    input=" ".join(_INPUT),  # Anthropic counts cached input apart; here it is part of the input
    output="output_tokens",
    reasoning="output_tokens_details.thinking_tokens",
    cached="cache_read_input_tokens",
)


def together(begun: Raw, ended: Raw) -> Raw:
    """The usage of a stream: what its start said of the input, what its end said of all. Some servers tell the input at
    the start alone, others write zeros into one of the two."""
    if bytes(begun)[:1] != b"{" or bytes(ended)[:1] != b"{":
        return ended
    first, last = members(begun), members(ended)
    kept = [
        (name, first[name]) for name in _INPUT if name in first and _count(first[name]) > _count(last.get(name, NULL))
    ]
    rest = [(name, value) for name, value in first.items() if name not in last and name not in _INPUT]
    return Raw(set_members(ended, [(name, bytes(value)) for name, value in (*kept, *rest)]))


def _count(raw: Raw) -> int:
    text = bytes(raw)
    return int(text) if text.isdigit() and len(text) < 19 else 0


def encode_usage(usage: Usage | None) -> bytes:
    usage = usage or Usage()
    return encode(
        {
            "input_tokens": usage.input - usage.cached,
            "output_tokens": usage.output,
            "cache_read_input_tokens": usage.cached,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
        }
    )
