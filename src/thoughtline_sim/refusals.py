"""The envelopes of errors: contracts.md, point (d) of each family. Messages are in the rules."""

from __future__ import annotations

from thoughtline_sim.reading import Json
from thoughtline_sim.values import Rejection
from thoughtline_sim.writing import compact

OCTETS = "application/octet-stream"
"""The content type of DeepSeek's errors (recorded)."""
_REQUEST_ID = "req_011CSimulatedRequest0000"


def _rejection(message: str, body: Json, status: int = 400) -> Rejection:
    return Rejection(status, compact(body), message)


def openai_error(
    message: str,
    status: int = 400,
    *,
    param: str | None = None,
    code: str | None = None,
    content_type: str = "application/json",
) -> Rejection:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return Rejection(status, compact(body), message, content_type)


def deepseek_error(message: str) -> Rejection:
    return openai_error(message, code="invalid_request_error", content_type=OCTETS)


def typed_error(message: str) -> Rejection:
    """Kimi's and Groq's: a message and a type."""
    return _rejection(message, {"error": {"message": message, "type": "invalid_request_error"}})


def mimo_error(sentence: str, is_streaming: bool = False) -> Rejection:
    """The message is in `param`, the code a string; a streaming request gets the same JSON after `data:`."""
    body = compact({"error": {"code": "400", "message": "Param Incorrect", "param": sentence, "type": ""}})
    return Rejection(400, b"data:" + body if is_streaming else body, sentence)


def anthropic_error(message: str, code: str = "") -> Rejection:
    """A code goes into the details."""
    error: Json = {"type": "invalid_request_error", "message": message}
    if code:
        error["details"] = {"error_code": code}
    return _rejection(message, {"type": "error", "error": error, "request_id": _REQUEST_ID})


def command_code_error(message: str, status: int = 400, code: str = "BAD_REQUEST") -> Rejection:
    return _rejection(
        message, {"success": False, "error": {"code": code, "status": status, "message": message}}, status
    )


def thread_not_found(message: str) -> Rejection:
    error = {"type": "not_found_error", "message": message, "details": {"error_code": "thread_not_found"}}
    return _rejection(message, {"type": "error", "error": error, "request_id": _REQUEST_ID}, 404)


def bedrock_error(message: str, status: int = 400, kind: str = "ValidationException") -> Rejection:
    return Rejection(status, compact({"message": message}), message, headers=(("x-amzn-errortype", kind),))


def gemini_error(message: str, *, is_in_array: bool = False, status: int = 400) -> Rejection:
    """A streaming call without `alt=sse`, and the OpenAI-compatible API, get the object inside an array."""
    word = "NOT_FOUND" if status == 404 else "INVALID_ARGUMENT"
    body: Json = {"error": {"code": status, "message": message, "status": word}}
    content_type = "application/json; charset=UTF-8"
    return Rejection(status, compact([body] if is_in_array else body), message, content_type)


def gemini_chat_error(message: str) -> Rejection:
    return gemini_error(message, is_in_array=True)


def xai_error(message: str, code: str = "invalid-argument") -> Rejection:
    """Flat, and `error` is a string."""
    return _rejection(message, {"code": code, "error": message})


def mistral_extra_forbidden(places: list[tuple[list[Json], Json]]) -> Rejection:
    """One detail for each extra key: its position, and its value."""
    sentence = "Extra inputs are not permitted"
    details = [{"type": "extra_forbidden", "loc": place, "msg": sentence, "input": held} for place, held in places]
    return _rejection(sentence, _mistral_body({"detail": details}), 422)


def mistral_error(message: str) -> Rejection:
    return _rejection(message, _mistral_body(message))


def mistral_bad_argument(message: str) -> Rejection:
    """An argument that a model does not have (recorded 2026-07)."""
    rest = {"type": "invalid_request_invalid_args", "param": None, "code": "3051", "raw_status_code": 400}
    return _rejection(message, {"object": "error", "message": message, **rest})


def _mistral_body(message: Json) -> Json:
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": None}


def cerebras_error(message: str) -> Rejection:
    """Flat."""
    rest = {"type": "invalid_request_error", "param": "validation_error", "code": "wrong_api_format"}
    return _rejection(message, {"message": message, **rest})


def plain_error(message: str) -> Rejection:
    """Ollama's: a string."""
    return _rejection(message, {"error": message})


def server_error(message: str, *, is_llama: bool) -> Rejection:
    """A template error: llama.cpp's 500 and vLLM's."""
    if is_llama:
        message = f"Jinja Exception: {message}"
        return _rejection(message, {"error": {"code": 500, "message": message, "type": "server_error"}}, 500)
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return _rejection(message, {"error": error}, 500)


def copilot_error(message: str) -> Rejection:
    code = "unsupported_api_for_model" if "is not accessible via" in message else "invalid_request_body"
    return _rejection(message, {"error": {"message": message, "code": code}})


def openrouter_error(upstream: Rejection, provider_name: str) -> Rejection:
    """The upstream's own body, as a string, inside OpenRouter's."""
    metadata = {"raw": upstream.body.decode(), "provider_name": provider_name, "is_byok": True}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return _rejection(upstream.message, {"error": error, "user_id": "user_simulated"})
