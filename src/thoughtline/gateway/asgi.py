"""The few things that are said over ASGI: a whole answer, or an error."""

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
    """An answer that is one body."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_json(send: Send, status: int, body: bytes, headers: Headers | None = None) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send_whole(send, status, [(b"content-type", b"application/json"), length, *(headers or [])], body)


# --- errors of our own, in the words of the client's format -----------------------------------------------------------
# So that its SDK raises what its user expects. Each has a stable code and a remedy. Errors of a provider are not ours:
# they pass unchanged.


def as_declined(error: ThoughtlineError) -> Declined:
    """Any error of ours, as a refusal: its message may be shown, for it never holds content."""
    if isinstance(error, Declined):
        return error
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("_")
    return Declined(error.status, code, str(error))


def error_body(error: Declined, format: FormatName | None, request_id: str) -> bytes:
    """The body that tells a client of this format what is wrong and what to do."""
    message = f"{error} {error.remedy}".strip()
    reply = ErrorReply(error.status, message, error.code, is_ours=True, request_id=request_id)
    return FORMATS[format or USUAL.name].errors.write(reply)


def retry_after(error: Declined) -> Headers:
    """The header that says when to come again, where that is known."""
    seconds = error.retry_after_seconds
    return [] if seconds is None else [(b"retry-after", str(math.ceil(seconds)).encode())]
