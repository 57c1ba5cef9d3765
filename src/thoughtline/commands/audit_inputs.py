"""What `thoughtline audit` can be given: a request, many of them, a client's session, or the id of a request.

Each becomes requests to audit, and says at which line of the file a place in them stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from thoughtline.clients.session_files import SessionRequest, session_requests, why_untold
from thoughtline.commands.admin_client import AdminClient
from thoughtline.formats.json_text import span_at
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.turns import FormatName

_ID = re.compile(r"[0-9a-f]{16}")
_KEEP = "Set `[debug] keep_bodies = true`, reload (SIGHUP), and send the request again."


class AuditInput(NamedTuple):
    """A request to audit. `locate` gives line and column, from 1, of a place in it; the rest is what is known of it."""

    body: bytes
    locate: Callable[[str], tuple[int, int]]
    provider: str = ""
    model: str = ""
    format: FormatName | None = None


def is_request_id(name: str) -> bool:
    """Whether a request of a gateway is meant, and no file."""
    return _ID.fullmatch(name) is not None and not Path(name).exists()


def read_inputs(text: bytes) -> list[AuditInput]:
    """The requests in a file. Raises `DecodeError` where there are none."""
    if _is_object(text):
        return [AuditInput(text, lambda place: position_of(text, place))]
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise DecodeError("the file is empty")
    for number, line in lines:
        if not _is_object(line):
            raise DecodeError(f"line {number} is not a JSON object" if len(lines) > 1 else "it is not a JSON object")
    if (why := why_untold(text)) is not None:
        raise DecodeError(f"{why}: audit one of its requests instead, by its id")
    sessions = session_requests(lines)
    if sessions is None:
        return [_of_line(number, line) for number, line in lines]
    if not sessions:
        raise DecodeError("this session has no requests")
    return [_of_session(one) for one in sessions]


def _of_line(number: int, line: bytes) -> AuditInput:
    return AuditInput(line, lambda place: (number, position_of(line, place)[1]))


def _of_session(request: SessionRequest) -> AuditInput:
    return AuditInput(request.body, lambda place: (request.line_of(place), 1), format=request.format)


def _is_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def position_of(body: bytes, place: str) -> tuple[int, int]:
    """Line and column, from 1, of the value at a pointer, or of the nearest thing around it that is there."""
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in place.split("/")[1:]]
    while steps:
        found = span_at(body, steps)
        if found is not None:
            start = found[0]
            return body.count(b"\n", 0, start) + 1, start - body.rfind(b"\n", 0, start)
        steps.pop()
    return 1, 1


class _Bodies(Struct, rename="camel"):
    client: str | None = None
    upstream: str | None = None
    is_cut: bool = False


class _Tried(Struct, rename="camel"):
    format: FormatName
    is_translated: bool = False


class _Request(Struct, rename="camel"):
    """What is needed of the answer of `GET /api/requests/{id}`."""

    provider: str
    model: str
    tried: list[_Tried] = []
    bodies: _Bodies | None = None


async def request_input(client: AdminClient, id: str) -> AuditInput:
    """A request as the client sent it; where it was translated, as it went up. Raises `Declined` if nobody kept it."""
    try:
        answer = await client.ask("GET", f"/api/requests/{id}")
    except Declined as error:
        if error.status != 404:
            raise
        raise Declined(
            404, "unknown_request", f"No request {id} is remembered.", "Only the latest requests are kept."
        ) from None
    request = msgspec.json.decode(answer, type=_Request)
    last = request.tried[-1] if request.tried else None
    bodies = request.bodies
    kept = (bodies.upstream if last is not None and last.is_translated else bodies.client) if bodies else None
    if kept is None:
        raise Declined(404, "no_body", "The gateway keeps no bodies, or no longer has this one.", _KEEP)
    if bodies is not None and bodies.is_cut:
        raise Declined(413, "body_cut", "The kept body is cut short.", "Audit it from a file.")
    body = kept.encode()
    return AuditInput(
        body, lambda place: position_of(body, place), request.provider, request.model, last.format if last else None
    )
