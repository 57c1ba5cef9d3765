"""Dispatches requests by address: checks access, decodes the request, sends the answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncGenerator
from typing import NamedTuple
from urllib.parse import unquote

from thoughtline.formats.encodings import unpacked
from thoughtline.gateway.access import peer_of
from thoughtline.gateway.admin.access import require_admin, require_metrics_reader
from thoughtline.gateway.admin.answers import Failure, Problem
from thoughtline.gateway.admin.requests import AdminRequest, Nothing, Row, Stream, Whole, decode_query
from thoughtline.gateway.admin.table import TABLE
from thoughtline.gateway.admin.trail import record
from thoughtline.gateway.asgi import Receive, Scope, Send, retry_after, send_whole
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.incoming import ClientGone, read_body, visitor_at
from thoughtline.gateway.state import State
from thoughtline.values.errors import Declined, StoreError, ThoughtlineError

log = logging.getLogger(__name__)

_ALWAYS: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
PATHS = frozenset(row.path for row in TABLE)
PREFIXES = (
    "/api/cache/",
    "/api/sessions/",
    "/api/requests/",
    "/api/series/",
    "/api/keys/",
    "/api/routes/",
    "/api/providers/",
    "/api/connect/",
    "/api/handoffs/",
    "/api/settings/",
    "/api/contracts/",
    "/api/audit/",
    "/api/events/",
    "/assets/",
)
"""Prefixes of managed addresses. An address is managed if it is one of ours, or has a prefix that only ours have."""
_LAST_WORD_SECONDS = 1.0


class _Found(NamedTuple):
    """The rows of a path, by method, and the values of its open parts."""

    rows: dict[str, Row]
    names: dict[str, str]


async def serve(state: State, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a management request."""
    request = _request(state, scope)
    try:
        answer = await _answered(request, scope, receive)
    except ClientGone:
        return
    except ThoughtlineError as error:
        answer = refusal(error)
    except Exception as error:
        _log_failure(error)
        answer = refusal(Declined(500, "internal", "Something went wrong here.", "The log says where."))
    record(request, scope["path"], answer, is_open=_is_open(scope["path"]))
    if isinstance(answer, Stream):
        await _send_stream(state, answer, receive, send)
    else:
        await _send_answer(scope["method"], answer, send)


async def _answered(request: AdminRequest, scope: Scope, receive: Receive) -> Whole | Stream:
    visitor_at(request.state, scope)  # raises if its headers are not acceptable
    found = find((scope.get("raw_path") or scope["path"].encode()).decode("latin-1"))
    if found is None:
        await require_admin(request)
        raise Declined(404, "unknown_path", "Unknown address.", "GET /api/openapi.json lists all.")
    row = found.rows.get("GET" if request.method == "HEAD" else request.method)
    await _require_access(row or next(iter(found.rows.values())), request)
    if row is None or (request.method == "HEAD" and row.content_type == "text/event-stream"):
        return _method_refused(request.method, found)
    if row.query is Nothing and row.access == "admin":
        decode_query(request.query, Nothing)
    body = await _body(row, request, receive) if row.body is not None else b""
    return await row.serve(request._replace(names=found.names, body=body))


def _is_open(path: str) -> bool:
    """Whether an address is not for the admin only."""
    found = find(path)
    return found is not None and all(row.access != "admin" for row in found.rows.values())


def find(path: str) -> _Found | None:
    """Return the rows of a path as it was sent, including escapes."""
    segments = path.split("/")
    for row in TABLE:
        names = _names(row.path.split("/"), segments)
        if names is not None:
            return _Found({one.method: one for one in TABLE if one.path == row.path}, names)
    return None


def refusal(error: ThoughtlineError) -> Whole:
    """Return an error in the form of the admin API."""
    match error:
        case Declined():
            problem = Problem(error.code, str(error), error.remedy)
        case StoreError():
            problem = Problem("store_unavailable", str(error), "GET /readyz says when it works again.")
        case _:
            problem = Problem("bad_request", str(error), "")
    headers: tuple[tuple[bytes, bytes], ...] = ((b"www-authenticate", b"Bearer"),) if error.status == 401 else ()
    if isinstance(error, Declined):
        headers = (*headers, *retry_after(error))
    return Whole(Failure(problem), error.status, headers=headers, code=problem.code)


def _names(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    names = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{") and segment:
            names[expected.strip("{}")] = unquote(segment)
        elif unquote(segment) != expected:
            return None
    return names


def _request(state: State, scope: Scope) -> AdminRequest:
    query = scope["query_string"].decode("latin-1")
    return AdminRequest(
        state,
        scope["method"],
        dict(scope["headers"]),
        query=query,
        names={},
        body=b"",
        peer=peer_of(scope),
        scheme=scope.get("scheme", "http"),
        http_version=scope["http_version"],
    )


async def _require_access(row: Row, request: AdminRequest) -> None:
    match row.access:
        case "admin":
            await require_admin(request)
        case "metrics":
            await require_metrics_reader(request)
        case "open":
            pass


def _method_refused(method: str, found: _Found) -> Whole:
    """Refuse a method that an address does not support."""
    allowed = sorted(found.rows)
    if any(row.method == "GET" and row.content_type != "text/event-stream" for row in found.rows.values()):
        allowed.append("HEAD")
    names = ", ".join(allowed)
    problem = Declined(405, "method_not_allowed", f"{method[:20]} is not allowed at this address.", f"Use {names}.")
    return refusal(problem)._replace(headers=((b"allow", names.encode()),))


async def _body(row: Row, request: AdminRequest, receive: Receive) -> bytes:
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    if kind and kind not in row.body_types:
        raise Declined(415, "unsupported_media_type", f"{kind[:60]!r} is not accepted.", f"Send {row.body_types[0]}.")
    limit = row.max_body or request.state.settings.server.max_body_bytes
    body = await read_body(receive, request.headers.get(b"content-length", b""), limit)
    encoding = request.header(b"content-encoding")
    return unpacked(body, encoding, limit) if encoding else body


async def _send_answer(method: str, answer: Whole, send: Send) -> None:
    body = answer.body
    headers = [(b"content-type", answer.content_type.encode()), (b"content-length", str(len(body)).encode())]
    await send_whole(send, answer.status, [*headers, *_ALWAYS, *answer.headers], b"" if method == "HEAD" else body)


async def _send_stream(state: State, answer: Stream, receive: Receive, send: Send) -> None:
    """Send until the client or the server stops: then the stream ends properly, if its client still reads."""
    kind = (b"content-type", answer.content_type.encode())
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *_ALWAYS]})
    tasks = (
        asyncio.ensure_future(_pump(answer.pieces, send)),
        asyncio.ensure_future(_gone(receive)),
        asyncio.ensure_future(state.admin.signals.stopping.wait()),
    )
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for problem in ended:
        if isinstance(problem, Exception):
            _log_failure(problem)
    if state.admin.signals.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def _log_failure(problem: Exception) -> None:
    where = "".join(traceback.format_tb(problem.__traceback__)[-3:])  # its message might quote content
    log.error("a management request failed: %s\n%s", type(problem).__name__, where)


async def _pump(pieces: AsyncGenerator[bytes, None], send: Send) -> None:
    try:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        await pieces.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
