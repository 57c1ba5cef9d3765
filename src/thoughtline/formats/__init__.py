"""The wire formats: one package for each, ending in a `Wire`, the value that has everything in which formats differ.

    request   bytes ── decode_request ──> Transcript ── encode_request ──> bytes
    response  bytes ── decode_response ─> Reply ─────── encode_response ─> bytes
    stream    bytes ── stream_decoder ──> events ────── stream_encoder ──> bytes
    error     bytes ── read_error ──────> ErrorReply ── write_error ─────> bytes

A format knows typed turns and nothing else: no provider's rules, and no other format unless it wraps that one in an
envelope or framing of its own (`gemini_code_assist`, `bedrock_invoke`). Differences between servers of one format are
a `Dialect`. Modules that all formats share: `wire` (the facts that a format must state), `paths`,
`errors`, `json_text` (reading JSON with places, splicing it), `conversation` (edited turns back into their body),
`framing`, `aws_event_stream`, `streaming`, `texts`, `think_tags` and `reasoning_details`.
"""

from __future__ import annotations

from collections.abc import Mapping

from thoughtline.formats import (
    anthropic_messages,
    bedrock_converse,
    bedrock_invoke,
    command_code_generate,
    gemini_code_assist,
    gemini_generate,
    gemini_interactions,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from thoughtline.formats.wire import BodyCodec, Wire
from thoughtline.values.turns import FormatName

__all__ = ["FORMATS", "USUAL", "BodyCodec", "Wire"]

_WIRES = (
    openai_chat.WIRE,
    openai_responses.WIRE,
    anthropic_messages.WIRE,
    gemini_generate.WIRE,
    gemini_code_assist.WIRE,
    gemini_interactions.WIRE,
    ollama_chat.WIRE,
    bedrock_converse.WIRE,
    bedrock_invoke.WIRE,
    command_code_generate.WIRE,
)

FORMATS: Mapping[FormatName, Wire] = {wire.name: wire for wire in _WIRES}
"""Every format that clients and providers speak."""

USUAL: Wire = openai_chat.WIRE
"""The format of a client or provider that names none."""
