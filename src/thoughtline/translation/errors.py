"""Errors of an upstream in the envelope of the client's format: the status stays, the sentence is the provider's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from thoughtline.formats.json_text import encode
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.options import ProviderError
from thoughtline.values.turns import FormatName

_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_GOOGLE_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_MAX_DEPTH = 6
MAX_MESSAGE = 8_000
"""Characters of an error page that is no JSON: enough to see what it is."""


def translate_error(status: int, body: bytes, to: FormatName) -> tuple[int, bytes]:
    """An upstream's error for a client of another format."""
    return status, encode_error(decode_error(body), status, to)


def error_body(error: ThoughtlineError, to: FormatName) -> tuple[int, bytes]:
    """An error of ours in the client's envelope. Its message never holds content."""
    place = getattr(error, "place", "") or None
    return error.status, encode_error(ProviderError(str(error), param=place), error.status, to)


def decode_error(body: bytes | Raw) -> ProviderError:
    """What an error says, whichever envelope it came in; one that is no JSON says what it says."""
    text = bytes(body).strip().removeprefix(b"data:").strip()
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ProviderError(str(text[:MAX_MESSAGE], "utf-8", "replace") or "the upstream sent an empty error")
    return _said(value, 0)


def _said(value: Any, depth: int) -> ProviderError:
    match value:
        case str():
            return ProviderError(value)
        case [first, *_] if depth < _MAX_DEPTH:
            return _said(first, depth + 1)
        case {"error": inner} if isinstance(inner, (dict, str, list)) and depth < _MAX_DEPTH:
            said = _said(inner, depth + 1)
            return said if said.code or "code" not in value else _with_code(said, value["code"])
        case dict():
            return _said_by_members(value, depth)
        case _:
            return ProviderError("the upstream failed without saying why")


def _with_code(said: ProviderError, code: Any) -> ProviderError:
    return ProviderError(said.message, said.kind, str(code), said.param)


def _said_by_members(value: dict[str, Any], depth: int) -> ProviderError:
    """The usual members; OpenRouter quotes its upstream in `metadata.raw`, MiMo puts the sentence into `param`."""
    metadata = value.get("metadata")
    quoted = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(quoted, str) and quoted and depth < _MAX_DEPTH:
        return decode_error(quoted.encode())
    message = _text(value, "message", "Message", "detail", "msg", "error")
    param = _text(value, "param")
    if param is not None and " " in param:
        message, param = f"{message or ''}: {param}".removeprefix(": "), None
    if message is None and len(value) == 1 and depth < _MAX_DEPTH:
        return _said(next(iter(value.values())), depth + 1)
    said = message or encode(value).decode()[:MAX_MESSAGE]
    return ProviderError(said, _text(value, "type", "__type", "status"), _text(value, "code"), param)


def _text(value: dict[str, Any], *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
        if isinstance(found, (int, dict, list)) and not isinstance(found, bool) and found:
            return encode(found).decode()
    return None


# --- the client's envelopes -----------------------------------------------------------------------------------------


def error_object(error: ProviderError, status: int, to: FormatName) -> Raw:
    """The error itself, as it stands in a body or in an event of a stream."""
    return Raw(encode(_OBJECTS[to](error, status)))


def error_in_stream(error: Raw, to: FormatName) -> Raw:
    """An upstream's error in mid-stream, as the client's format has it. Its code may say which status it stands for."""
    said = decode_error(error)
    code = said.code or ""
    is_status = code.isascii() and code.isdigit() and 400 <= int(code[:4]) < 600
    return error_object(said, int(code) if is_status else 500, to)


def encode_error(error: ProviderError, status: int, to: FormatName) -> bytes:
    """A whole error body."""
    said = _OBJECTS[to](error, status)
    match to:
        case "anthropic_messages":
            return encode({"type": "error", "error": said, "request_id": None})
        case "bedrock_converse":
            return encode(said)
        case _:
            return encode({"error": said})


def _openai(error: ProviderError, status: int) -> object:
    kind = _OPENAI_KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": error.message, "type": kind, "param": error.param, "code": error.code}


def _anthropic(error: ProviderError, status: int) -> object:
    kind = _ANTHROPIC_KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": kind, "message": error.message}


def _google(error: ProviderError, status: int) -> object:
    word = _GOOGLE_WORDS.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return {"code": status, "message": error.message, "status": word}


def _plain(error: ProviderError, status: int) -> object:
    return error.message


def _amazon(error: ProviderError, status: int) -> object:
    return {"message": error.message}


_OBJECTS: dict[FormatName, Callable[[ProviderError, int], object]] = {
    "openai_chat": _openai,
    "openai_responses": _openai,
    "anthropic_messages": _anthropic,
    "gemini_generate": _google,
    "ollama_chat": _plain,
    "bedrock_converse": _amazon,
    "ai_sdk_ui": _plain,
}
