"""Helpers to send a whole answer or an error over ASGI."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from thoughtline.formats import FORMATS, USUAL
from thoughtline.gateway.headers import Headers
from thoughtline.values.errors import Declined, ErrorReply, ThoughtlineError
from thoughtline.values.turns import FormatName

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


async def send_whole(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send an answer with one body."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_json(send: Send, status: int, body: bytes, headers: Headers | None = None) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send_whole(send, status, [(b"content-type", b"application/json"), length, *(headers or [])], body)


# --- our own errors, in the client's format ---------------------------------------------------------------------------
# This makes the client's SDK raise the error its user expects. Each has a stable code and a remedy. A provider's errors
# are passed on unchanged.


def as_declined(error: ThoughtlineError) -> Declined:
    """Turn any of our errors into a response. Their messages may be shown because they never contain content."""
    if isinstance(error, Declined):
        return error
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("_")
    return Declined(error.status, code, str(error))


def error_body(error: Declined, format: FormatName | None, request_id: str) -> bytes:
    """Return the body of an error in this client's format."""
    message = f"{error} {error.remedy}".strip()
    reply = ErrorReply(error.status, message, error.code, is_ours=True, request_id=request_id)
    return FORMATS[format or USUAL.name].errors.write(reply)


def retry_after(error: Declined) -> Headers:
    """Return a `retry-after` header, if the time is known."""
    seconds = error.retry_after_seconds
    return [] if seconds is None else [(b"retry-after", str(math.ceil(seconds)).encode())]
