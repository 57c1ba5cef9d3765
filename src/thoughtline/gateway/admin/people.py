"""People: those who have a client key of the gateway, and callers that are known by their credential alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from thoughtline.gateway.admin.exports import csv_answer
from thoughtline.gateway.admin.figures import MONTH_SECONDS, added, figures_of, range_sums
from thoughtline.gateway.admin.filters import Range, Span, TableFormat, span_of
from thoughtline.gateway.admin.forgetting import forget_person
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.admin.status_answers import (
    NameShare,
    PeopleView,
    PersonDeleted,
    PersonKey,
    PersonRow,
    PersonView,
)
from thoughtline.gateway.client_keys import ClientKey, ClientKeys
from thoughtline.gateway.state import State
from thoughtline.stores import Filter
from thoughtline.stores.history import Group, Sums, Where
from thoughtline.terminal import counted
from thoughtline.values.errors import Declined


class PeopleQuery(Range, frozen=True, kw_only=True):
    """Of when; the last 30 days if nothing is said."""

    format: TableFormat = "json"


class PersonQuery(Range, frozen=True, kw_only=True):
    """Of when; the last 30 days if nothing is said."""


class _Known(NamedTuple):
    """What is known of all people in a range."""

    span: Span
    groups: dict[int, Group]
    sums: dict[int, Sums]
    keys: tuple[ClientKey, ...]


async def people_view(request: AdminRequest) -> Whole:
    query = decode_query(request.query, PeopleQuery)
    known = await _known(request.state, query)
    tenants = {one.tenant: None for one in known.keys} | {known.groups[key].tenant: None for key in known.sums}
    rows = [await _row(request.state, tenant, known) for tenant in tenants if tenant]
    rows.sort(key=lambda row: (-row.figures.requests, row.name))
    if query.format == "csv":
        return csv_answer(rows, ("id", "name", "lastSeen"), "people")
    return Whole(PeopleView(rows, request.state.recent.history.history.is_kept))


async def person_view(request: AdminRequest) -> Whole:
    """By the tenant, or the name of a client key."""
    state, query = request.state, decode_query(request.query, PersonQuery)
    known = await _known(state, query)
    tenant = await _tenant(state, known, request.names["id"])
    row = await _row(state, tenant, known)
    theirs = {key: sums for key, sums in known.sums.items() if known.groups[key].tenant == tenant}
    by = {
        name: _shares({key: getattr(known.groups[key], name) for key in theirs}, theirs)
        for name in ("provider", "model", "client", "outcome")
    }
    keys = [PersonKey(one.id, one.name, _state_of(one, state.clock())) for one in known.keys if one.tenant == tenant]
    view = PersonView(
        **{name: getattr(row, name) for name in PersonRow.__struct_fields__},
        keys=keys,
        by_provider=by["provider"],
        by_model=by["model"],
        by_client=by["client"],
        by_outcome=by["outcome"],
        turns=await _turns(state, tenant),
        is_kept=state.recent.history.history.is_kept,
    )
    return Whole(view)


async def delete_person(request: AdminRequest) -> Whole:
    """All that is kept of one."""
    state = request.state
    known = await _known(state, PersonQuery(range="366d"))
    tenant = await _tenant(state, known, request.names["id"])
    name = _name(tenant, known)
    sessions = {one.session for one in await state.store.sessions(tenant)}
    gone = await forget_person(state, tenant)
    has_keys = any(one.tenant == tenant and one.is_good(state.clock()) for one in known.keys)
    note = "A client key is still good: revoke it, or new requests are kept again." if has_keys else ""
    answer = PersonDeleted(tenant, name, gone.turns, sessions=len(sessions), requests=gone.requests, note=note)
    done = f"{counted(gone.turns, 'turn')} and {counted(gone.requests, 'request')} of a person deleted"
    return Whole(answer, done=done)


async def _known(state: State, query: Range) -> _Known:
    span = span_of(query, state.clock(), MONTH_SECONDS)
    assert span is not None
    await state.recent.history.flush()
    groups = await state.recent.history.history.groups()
    sums = {key: one for key, one in (await range_sums(state, span, None, "group")).items() if key in groups}
    keys = state.keys.listed() if isinstance(state.keys, ClientKeys) else ()
    return _Known(span, groups, sums, tuple(keys))


async def _tenant(state: State, known: _Known, name: str) -> str:
    """Raises where nothing is known of such a person."""
    tenants = {one.tenant for one in known.keys} | {group.tenant for group in known.groups.values()}
    if name in tenants and name:
        return name
    named = {one.tenant for one in known.keys if one.name == name}
    named |= {group.tenant for group in known.groups.values() if group.caller == name and name}
    if len(named) == 1:
        return named.pop()
    if name and "\0" not in name and (await state.store.sessions(name, 1) or await _turns(state, name)):
        return name
    raise Declined(404, "unknown_person", f"Nothing is known of {name[:80]!r}.", "GET /api/people lists all.")


async def _row(state: State, tenant: str, known: _Known) -> PersonRow:
    ids = frozenset(key for key, group in known.groups.items() if group.tenant == tenant)
    groups = [known.groups[key] for key in ids]
    last = await state.recent.history.history.page(Where(groups=ids), 1)
    return PersonRow(
        id=tenant,
        name=_name(tenant, known),
        clients=sorted({one.client for one in groups if one.client}),
        models=sorted({f"{one.provider}/{one.model}" for one in groups if one.model}),
        last_seen=datetime.fromtimestamp(last[0].at / 1_000_000, UTC) if last else None,
        figures=figures_of(added(sums for key, sums in known.sums.items() if key in ids)),
    )


def _name(tenant: str, known: _Known) -> str:
    """The name that was given to a key of theirs; empty for those who use keys of their own."""
    named = next((one.name for one in known.keys if one.tenant == tenant), "")
    return named or next((one.caller for one in known.groups.values() if one.tenant == tenant and one.caller), "")


async def _turns(state: State, tenant: str) -> int:
    return sum(one.entries for one in await state.store.sessions(tenant)) or len(
        (await state.store.list_entries(Filter(tenant=tenant), 1)).entries
    )


def _shares(names: dict[int, str], sums: dict[int, Sums]) -> list[NameShare]:
    found: dict[str, Sums] = {}
    for key, name in names.items():
        found.setdefault(name, Sums()).add(sums[key])
    shares = [
        NameShare(name, one.requests, one.restored, one.input_tokens + one.output_tokens) for name, one in found.items()
    ]
    return sorted(shares, key=lambda share: (-share.requests, share.name))


def _state_of(key: ClientKey, now: float) -> str:
    return "revoked" if key.revoked else "good" if key.is_good(now) else "expired"
