"""Contracts, built in and overridden, with learned corrections; audits of requests."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw, Struct

from thoughtline.engine.audit import audit
from thoughtline.engine.learned import key_of
from thoughtline.gateway.admin.answers import (
    Audit,
    ContractsView,
    ContractView,
    CorrectionView,
    Deleted,
    EvidenceView,
    moment,
)
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.masking import masked_url
from thoughtline.providers import Contract, canonical_name, facts
from thoughtline.replay.refusals import Correction
from thoughtline.terminal import counted
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.turns import FormatName


class ContractsFilter(Struct, frozen=True):
    """Selects a correction; without it, all."""

    key: str | None = None


async def contracts_view(request: AdminRequest) -> Whole:
    """Includes what other replicas have learned by now."""
    state = request.state
    await state.lessons.refresh()
    now, overrides = state.clock(), state.settings.contracts
    rows = {**facts().contracts, **overrides}
    views = [_contract(row, name in overrides) for name, row in rows.items()]
    learned = [_correction(one) for one in state.lessons.corrections if one.holds_at(now)]
    return Whole(ContractsView(views, learned, len(state.lessons.refused)))


async def unlearn(request: AdminRequest) -> Whole:
    deleted = await request.state.lessons.forget(decode_query(request.query, ContractsFilter).key)
    return Whole(Deleted(deleted), done=f"{counted(deleted, 'correction')} deleted")


def _contract(row: Contract, is_overridden: bool) -> ContractView:
    return ContractView.of(
        row,
        dialect=row.dialect.name,
        carrier=row.dialect.carrier,
        ladder=list(row.ladder),
        source=str(row.source),
        is_overridden=is_overridden,
    )


def _correction(one: Correction) -> CorrectionView:
    return CorrectionView.of(
        one,
        key=key_of(one),
        endpoint=masked_url(one.endpoint),
        evidence=EvidenceView.of(one.evidence),
        learned_at=moment(one.learned_at),
        expires_at=moment(one.expires_at),
    )


# --- auditing a request: wrapped with its audit options, or bare ------------------------------------------------------


class AuditQuery(Struct, frozen=True):
    """The destination of the body: if given here, the body is the request itself."""

    provider: str | None = None
    model: str | None = None
    format: FormatName | None = None


class AuditBody(Struct, frozen=True):
    """A request, as JSON or as its text, and its destination."""

    request: Raw
    provider: str = ""
    model: str = ""
    format: FormatName | None = None


async def audited(request: AdminRequest) -> Whole:
    """Audit a request in a thread, because a long conversation takes a while."""
    body = _audit_body(request.body, decode_query(request.query, AuditQuery))
    provider = canonical_name(body.provider)
    try:
        findings = await asyncio.to_thread(audit, bytes(body.request), provider, body.model, body.format)
    except DecodeError as error:
        raise Declined(error.status, "unreadable_request", f"The request can't be read: {error}.") from None
    return Whole(Audit(findings))


def _audit_body(body: bytes, query: AuditQuery) -> AuditBody:
    if query != AuditQuery() or not _is_wrapped(body):
        return AuditBody(Raw(body), query.provider or "", query.model or "", query.format)
    try:
        decoded = msgspec.json.decode(body, type=AuditBody)
    except msgspec.ValidationError as error:
        raise Declined(400, "bad_body", f"{error}.", "See GET /api/openapi.json, AuditBody.") from None
    return msgspec.structs.replace(decoded, request=_unquoted(decoded.request))


def _is_wrapped(body: bytes) -> bool:
    try:
        return "request" in msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _unquoted(request: Raw) -> Raw:
    """Return a request that was given as text."""
    text = bytes(request)
    if not text.startswith(b'"'):
        return request
    return Raw(msgspec.json.decode(text, type=str).encode("utf-8", "surrogatepass"))
