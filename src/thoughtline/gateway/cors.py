"""Which pages of other sites may read the gateway's answers to clients, by `cors` in [server].

An origin is listed or not; there is no `*`, and browser credentials are not accepted: a page brings its own key.
Management addresses are never included. CORS decides who may read answers; `access.py` decides whose key is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from thoughtline.gateway.asgi import Message, Scope, Send, error_body, send_json, send_whole
from thoughtline.gateway.headers import Headers, header_value
from thoughtline.settings import ServerSettings
from thoughtline.values.errors import Declined

MAX_AGE_SECONDS = 600
"""How long a browser may cache a preflight: a removed origin is refused after that."""

_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, -]{1,4096}")
_VARY = (b"vary", b"Origin")


def allowed_origin(headers: Mapping[bytes, bytes], server: ServerSettings) -> bytes:
    """Return the origin of the requesting page, if it may read answers; otherwise nothing."""
    origin = headers.get(b"origin", b"").strip()
    return origin if origin and origin.decode("latin-1") in server.cors else b""


def is_preflight(scope: Scope) -> bool:
    """Whether it is a browser's preflight, which never contains a key."""
    names = {name for name, _ in scope["headers"]}
    return scope["method"] == "OPTIONS" and b"origin" in names and b"access-control-request-method" in names


async def answer_preflight(scope: Scope, send: Send, server: ServerSettings) -> None:
    headers = dict(scope["headers"])
    origin = allowed_origin(headers, server)
    if not origin:
        page = header_value(headers[b"origin"][:200].decode("latin-1")).decode("latin-1")
        refusal = Declined(
            403, "unknown_origin", f"Pages of {page} may not use this gateway.", "Add it to cors in [server]."
        )
        await send_json(send, 403, error_body(refusal, None, ""), [_VARY])
        return
    answer: Headers = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", str(MAX_AGE_SECONDS).encode()),
        (b"vary", b"Origin, Access-Control-Request-Headers"),
    ]
    wanted = headers.get(b"access-control-request-headers", b"")
    if _NAMES.fullmatch(wanted):  # all of them: forwarding is decided elsewhere, and `*` would exclude the key
        answer.append((b"access-control-allow-headers", wanted))
    await send_whole(send, 204, answer, b"")


def readable(scope: Scope, send: Send, server: ServerSettings) -> Send:
    """Wrap `send` so that the requesting page may read answers, if it is listed."""
    added: Headers = [_VARY]
    if origin := allowed_origin(dict(scope["headers"]), server):
        added += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", b"*")]

    async def send_readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_readable
