"""The envelopes that errors come in: contracts.md, point (d) of each family. Wording stands with the rules."""

from __future__ import annotations

from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import Json, compact

OCTETS = "application/octet-stream"
"""DeepSeek sends its errors as this (recorded)."""


def openai_error(
    message: str,
    status: int = 400,
    param: str | None = None,
    code: str | None = None,
    content_type: str = "application/json",
) -> Rejection:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return Rejection(status, compact(body), message, content_type)


def deepseek_error(message: str) -> Rejection:
    return openai_error(message, code="invalid_request_error", content_type=OCTETS)


def kimi_error(message: str) -> Rejection:
    return Rejection(400, compact({"error": {"message": message, "type": "invalid_request_error"}}), message)


def mimo_error(sentence: str, is_streaming: bool = False) -> Rejection:
    """The sentence is in `param`, the code a string; a streaming request gets the same JSON behind `data:`."""
    body = compact({"error": {"code": "400", "message": "Param Incorrect", "param": sentence, "type": ""}})
    return Rejection(400, b"data:" + body if is_streaming else body, sentence)


def anthropic_error(message: str, request_id: str = "req_011CSimulatedRequest0000") -> Rejection:
    error = {"type": "invalid_request_error", "message": message}
    return Rejection(400, compact({"type": "error", "error": error, "request_id": request_id}), message)


def thread_not_found(message: str) -> Rejection:
    error = {"type": "not_found_error", "message": message, "details": {"error_code": "thread_not_found"}}
    body = {"type": "error", "error": error, "request_id": "req_011CSimulatedRequest0000"}
    return Rejection(404, compact(body), message)


def bedrock_error(message: str) -> Rejection:
    headers = (("x-amzn-errortype", "ValidationException"),)
    return Rejection(400, compact({"message": message}), message, headers=headers)


def gemini_error(message: str, is_in_array: bool = False) -> Rejection:
    """A streaming call without `alt=sse`, and the OpenAI-compatible API, get the object inside an array."""
    body: Json = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    content_type = "application/json; charset=UTF-8"
    return Rejection(400, compact([body] if is_in_array else body), message, content_type)


def xai_error(message: str) -> Rejection:
    """Flat, and `error` is a string."""
    return Rejection(400, compact({"code": "invalid-argument", "error": message}), message)


def mistral_extra_forbidden(places: list[tuple[list[Json], Json]]) -> Rejection:
    """One detail for each extra key: where it stands, and what it held."""
    details = [
        {"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": held}
        for place, held in places
    ]
    error = {"object": "error", "message": {"detail": details}, "type": "invalid_request_error"}
    return Rejection(422, compact({**error, "param": None, "code": None}), "Extra inputs are not permitted")


def mistral_error(message: str) -> Rejection:
    body = {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Rejection(400, compact(body), message)


def groq_error(message: str) -> Rejection:
    return Rejection(400, compact({"error": {"message": message, "type": "invalid_request_error"}}), message)


def cerebras_error(message: str) -> Rejection:
    """Flat."""
    body = {
        "message": message,
        "type": "invalid_request_error",
        "param": "validation_error",
        "code": "wrong_api_format",
    }
    return Rejection(400, compact(body), message)


def plain_error(message: str) -> Rejection:
    """Ollama's: a string."""
    return Rejection(400, compact({"error": message}), message)


def copilot_error(message: str) -> Rejection:
    body = {"error": {"message": message, "code": "invalid_request_body"}}
    return Rejection(400, compact(body), message)


def openrouter_error(upstream: Rejection, provider_name: str) -> Rejection:
    """The upstream's own body, as a string, inside OpenRouter's."""
    metadata = {"raw": upstream.body.decode(), "provider_name": provider_name, "is_byok": True}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return Rejection(400, compact({"error": error, "user_id": "user_simulated"}), upstream.message)
