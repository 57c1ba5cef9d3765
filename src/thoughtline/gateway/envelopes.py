"""Errors of our own, in the words of the client's format, so that its SDK raises what its user expects.

Each has a stable code and a remedy. Errors of a provider are not ours: they pass unchanged.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from thoughtline.formats.json_text import encode
from thoughtline.values.errors import Declined, ThoughtlineError
from thoughtline.values.turns import FormatName

Json: TypeAlias = dict[str, Any]

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_AWS_TYPES = {401: "UnrecognizedClientException", 403: "AccessDeniedException", 429: "ThrottlingException"}


def as_declined(error: ThoughtlineError) -> Declined:
    """Any error of ours, as a refusal: its message may be shown, for it never holds content."""
    if isinstance(error, Declined):
        return error
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("_")
    return Declined(error.status, code, str(error))


def envelope(error: Declined, format: FormatName | None, request_id: str) -> bytes:
    """The body that tells a client of this format what is wrong and what to do."""
    message = f"{error} {error.remedy}".strip()
    return encode(_written(error, format, message, request_id))


def _written(error: Declined, format: FormatName | None, message: str, request_id: str) -> Json:
    status, code = error.status, error.code
    match format:
        case "anthropic_messages":
            kind = _ANTHROPIC_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
            told: Json = {"type": kind, "message": message, "code": code}
            if code.startswith("thread_"):  # where Anthropic's SDK looks for it
                told["details"] = {"error_code": code}
            return {"type": "error", "error": told, "request_id": request_id}
        case "gemini_generate":
            word = _GOOGLE_STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "thoughtline"}
            return {"error": {"code": status, "message": message, "status": word, "details": [info]}}
        case "ollama_chat":
            return {"error": message, "code": code}
        case "bedrock_converse":
            kind = _AWS_TYPES.get(status, "ValidationException" if status < 500 else "InternalServerException")
            return {"__type": kind, "message": message, "code": code}
        case _:
            kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}
