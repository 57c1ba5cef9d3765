"""Auditing a request that somebody sends for it: wrapped with what to audit it as, or as it is."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw, Struct

from thoughtline.auditing import audit
from thoughtline.gateway.admin.answers import Audit
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.providers import canonical_name
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.turns import FormatName


class AuditQuery(Struct, frozen=True):
    """Who would get the body: given here, the body is the request itself."""

    provider: str | None = None
    model: str | None = None
    format: FormatName | None = None


class AuditBody(Struct, frozen=True):
    """A request, as JSON or as the text of it, and who would get it."""

    request: Raw
    provider: str = ""
    model: str = ""
    format: FormatName | None = None


async def audited(request: AdminRequest) -> Whole:
    """What a provider would refuse. In a thread: a long conversation takes a while, and others are being served."""
    asked = _asked(request.body, decode_query(request.query, AuditQuery))
    provider = canonical_name(asked.provider)
    try:
        findings = await asyncio.to_thread(audit, bytes(asked.request), provider, asked.model, asked.format)
    except DecodeError as error:
        raise Declined(error.status, "unreadable_request", f"The request can't be read: {error}.") from None
    return Whole(Audit(findings))


def _asked(body: bytes, query: AuditQuery) -> AuditBody:
    if query != AuditQuery() or not _is_wrapped(body):
        return AuditBody(Raw(body), query.provider or "", query.model or "", query.format)
    try:
        asked = msgspec.json.decode(body, type=AuditBody)
    except msgspec.ValidationError as error:
        raise Declined(400, "bad_body", f"{error}.", "See GET /api/openapi.json, AuditBody.") from None
    return msgspec.structs.replace(asked, request=_unquoted(asked.request))


def _is_wrapped(body: bytes) -> bool:
    try:
        return "request" in msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _unquoted(request: Raw) -> Raw:
    """A request that was given as text."""
    text = bytes(request)
    if not text.startswith(b'"'):
        return request
    return Raw(msgspec.json.decode(text, type=str).encode("utf-8", "surrogatepass"))
