"""What the official SDKs say to a body or a stream: each is read with the types that their clients use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import anthropic.types
import openai.types.chat
import openai.types.responses
from google.genai import types as google
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from thoughtline.values.turns import FormatName

_RESPONSE_EVENT: TypeAdapter[Any] = TypeAdapter(openai.types.responses.ResponseStreamEvent)
_MESSAGE_EVENT: TypeAdapter[Any] = TypeAdapter(anthropic.types.RawMessageStreamEvent)


class _OllamaFunction(BaseModel):
    name: str
    arguments: dict[str, Any]


class _OllamaCall(BaseModel):
    function: _OllamaFunction
    id: str | None = None


class _OllamaMessage(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: str
    content: str
    thinking: str | None = None
    tool_calls: list[_OllamaCall] | None = None


class _OllamaLikely(BaseModel):
    model_config = ConfigDict(extra="forbid")
    token: str
    logprob: float
    bytes: list[int] | None = None


class _OllamaToken(_OllamaLikely):
    top_logprobs: list[_OllamaLikely] | None = None


class _OllamaLine(BaseModel):
    """Ollama's API docs, response of `/api/chat`."""

    model_config = ConfigDict(extra="forbid")
    model: str
    created_at: str
    message: _OllamaMessage
    done: bool
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    logprobs: list[_OllamaToken] | None = None


class _StreamPart(BaseModel):
    """`TextStreamPart` of the AI SDK, as far as Command Code sends it."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)
    type: Literal[
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "tool-call",
        "finish-step",
        "finish",
        "error",
    ]
    id: str | None = None
    text: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input: dict[str, Any] | None = None
    provider_metadata: dict[str, dict[str, Any]] | None = None
    finish_reason: Literal["stop", "length", "tool-calls", "content-filter", "error", "other", "unknown"] | None = None
    usage: dict[str, Any] | None = None
    total_usage: dict[str, Any] | None = None
    error: Any = None


def check_body(format: FormatName, body: bytes) -> None:
    """A whole response, read strictly."""
    match format:
        case "openai_chat":
            openai.types.chat.ChatCompletion.model_validate_json(body)
        case "openai_responses":
            openai.types.responses.Response.model_validate_json(body)
        case "anthropic_messages":
            anthropic.types.Message.model_validate_json(body)
        case "gemini_generate":
            google.GenerateContentResponse.model_validate_json(body)
        case "command_code_generate":
            check_stream(format, body)
        case _:
            _OllamaLine.model_validate_json(body)


def check_stream(format: FormatName, stream: bytes) -> None:
    """Every event of a stream, read strictly."""
    for payload in payloads(format, stream):
        match format:
            case "openai_chat":
                openai.types.chat.ChatCompletionChunk.model_validate_json(payload)
            case "openai_responses":
                _RESPONSE_EVENT.validate_json(payload)
            case "anthropic_messages":
                if json.loads(payload)["type"] != "ping":
                    _MESSAGE_EVENT.validate_json(payload)
            case "gemini_generate":
                google.GenerateContentResponse.model_validate_json(payload)
            case "command_code_generate":
                _StreamPart.model_validate_json(payload)
            case _:
                _OllamaLine.model_validate_json(payload)


def payloads(format: FormatName, stream: bytes) -> Iterator[bytes]:
    """The JSON of each event."""
    if format in ("ollama_chat", "command_code_generate"):
        yield from (line for line in stream.split(b"\n") if line)
        return
    for line in stream.split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield line.removeprefix(b"data: ")


# --- requests ---------------------------------------------------------------------------------------------------------

_REQUESTS: dict[str, TypeAdapter[Any]] = {
    "openai_chat": TypeAdapter(openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming),
    "openai_responses": TypeAdapter(openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming),
    "anthropic_messages": TypeAdapter(anthropic.types.message_create_params.MessageCreateParamsNonStreaming),
}


def _with_some_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """Recordings and cases have words in place of bytes: only the shape is checked."""
    return value | {"data": "AAAA"} if "mimeType" in value and "data" in value else value


def check_request(format: FormatName, body: bytes) -> None:
    """A request that does not stream, read with the types that the SDK's own methods take."""
    if format in _REQUESTS:
        _REQUESTS[format].validate_json(body)
    elif format == "gemini_generate":
        known = json.loads(body, object_hook=_with_some_bytes)
        TypeAdapter(list[google.Content]).validate_python(known["contents"])
        google.GenerationConfig.model_validate(known.get("generationConfig", {}))
        TypeAdapter(list[google.Tool]).validate_python(known.get("tools", []))
        google.ToolConfig.model_validate(known.get("toolConfig", {}))
