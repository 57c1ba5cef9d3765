"""How bytes look: one module (or package) per wire format, each with the same six names.

    request   bytes ── decode_request ──> Transcript ── encode_request ──> bytes
    response  bytes ── decode_response ─> Reply ─────── encode_response ─> bytes
    stream    bytes ── StreamDecoder ───> events ────── StreamEncoder ───> bytes

A format knows typed turns and nothing else: no provider's rules, no other format. What differs between servers of one
format is a `Dialect`, which every one of the six takes. Below the formats stand what they share: `json_text` (reading
JSON with places, splicing it), `conversation` (edited turns back into their body), `framing`, `aws_event_stream`,
`streaming`, `texts`, `think_tags` and `reasoning_details`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from thoughtline.formats import (
    ai_sdk_ui,
    anthropic_messages,
    bedrock_converse,
    gemini_generate,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from thoughtline.formats.lone_surrogates import reading, writing
from thoughtline.formats.texts import Texts
from thoughtline.providers import (
    AI_SDK,
    ANTHROPIC,
    BEDROCK_CLAUDE,
    GEMINI,
    OLLAMA,
    OPENAI_RESPONSES,
    REASONING_CONTENT,
    Dialect,
)
from thoughtline.values.events import Event
from thoughtline.values.turns import FormatName, Reply, Transcript


class DecodesStream(Protocol):
    """Bytes cut anywhere in, events out."""

    def feed(self, data: bytes) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class EncodesStream(Protocol):
    """Events in, bytes out."""

    def encode(self, event: Event) -> bytes: ...

    def finish(self) -> bytes: ...


class BodyCodec(NamedTuple):
    """The four functions for whole bodies."""

    decode_request: Callable[[bytes, Dialect], Transcript]
    encode_request: Callable[[Transcript, Dialect], bytes]
    decode_response: Callable[[bytes, Dialect], Reply]
    encode_response: Callable[[Reply, Dialect], bytes]


class Format(NamedTuple):
    """A row of the table: how to read and write one wire format."""

    name: FormatName
    dialect: Dialect
    stream_decoder: Callable[[Dialect], DecodesStream]
    stream_encoder: Callable[[Dialect], EncodesStream]
    bodies: BodyCodec | None
    texts: Texts | None = None


FORMATS: dict[FormatName, Format] = {
    "openai_chat": Format(
        "openai_chat",
        REASONING_CONTENT,
        openai_chat.StreamDecoder,
        openai_chat.StreamEncoder,
        BodyCodec(
            reading(openai_chat.decode_request),
            writing(openai_chat.encode_request),
            openai_chat.decode_response,
            openai_chat.encode_response,
        ),
        openai_chat.TEXTS,
    ),
    "openai_responses": Format(
        "openai_responses",
        OPENAI_RESPONSES,
        openai_responses.StreamDecoder,
        openai_responses.StreamEncoder,
        BodyCodec(
            reading(openai_responses.decode_request),
            writing(openai_responses.encode_request),
            openai_responses.decode_response,
            openai_responses.encode_response,
        ),
        openai_responses.TEXTS,
    ),
    "anthropic_messages": Format(
        "anthropic_messages",
        ANTHROPIC,
        anthropic_messages.StreamDecoder,
        anthropic_messages.StreamEncoder,
        BodyCodec(
            reading(anthropic_messages.decode_request),
            writing(anthropic_messages.encode_request),
            anthropic_messages.decode_response,
            anthropic_messages.encode_response,
        ),
        anthropic_messages.TEXTS,
    ),
    "gemini_generate": Format(
        "gemini_generate",
        GEMINI,
        gemini_generate.StreamDecoder,
        gemini_generate.StreamEncoder,
        BodyCodec(
            reading(gemini_generate.decode_request),
            writing(gemini_generate.encode_request),
            gemini_generate.decode_response,
            gemini_generate.encode_response,
        ),
        gemini_generate.TEXTS,
    ),
    "ollama_chat": Format(
        "ollama_chat",
        OLLAMA,
        ollama_chat.StreamDecoder,
        ollama_chat.StreamEncoder,
        BodyCodec(
            reading(ollama_chat.decode_request),
            writing(ollama_chat.encode_request),
            ollama_chat.decode_response,
            ollama_chat.encode_response,
        ),
        ollama_chat.TEXTS,
    ),
    "bedrock_converse": Format(
        "bedrock_converse",
        BEDROCK_CLAUDE,
        bedrock_converse.StreamDecoder,
        bedrock_converse.StreamEncoder,
        BodyCodec(
            reading(bedrock_converse.decode_request),
            writing(bedrock_converse.encode_request),
            bedrock_converse.decode_response,
            bedrock_converse.encode_response,
        ),
        bedrock_converse.TEXTS,
    ),
    "ai_sdk_ui": Format("ai_sdk_ui", AI_SDK, ai_sdk_ui.StreamDecoder, ai_sdk_ui.StreamEncoder, None),
}
