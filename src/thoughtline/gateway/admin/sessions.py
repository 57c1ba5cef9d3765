"""Sessions, and the turns of one with what was done for each."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.answers import SessionPage, SessionRow, SessionView, moment
from thoughtline.gateway.admin.cache import entries_page, turn_answer
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.state import State
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.errors import Declined


class SessionsQuery(Struct, frozen=True, rename="camel"):
    """A tenant, and a maximum number; `limit` is clamped to 1 to 200."""

    tenant: str | None = None
    limit: int = 50


class SessionQuery(Struct, frozen=True, rename="camel"):
    """A tenant, if two have a session of one name, and a page; `limit` is clamped to 1 to 200."""

    tenant: str | None = None
    limit: int = MAX_PAGE
    cursor: str | None = None


async def sessions_page(request: AdminRequest) -> Whole:
    query = decode_query(request.query, SessionsQuery)
    found = await request.state.store.sessions(query.tenant, min(max(query.limit, 1), MAX_PAGE))
    rows = [SessionRow(one.session, one.tenant, one.entries, one.chars, moment(one.newest_at)) for one in found]
    return Whole(SessionPage(rows))


async def session_view(request: AdminRequest) -> Whole:
    """Raises if there is no such session, or several."""
    state, session, query = request.state, request.names["id"], decode_query(request.query, SessionQuery)
    if "\0" in session:
        raise _unknown(session)  # no store can hold such a name, and some fail on it
    tenant = await _only_tenant(state, session) if query.tenant is None else query.tenant
    page = await entries_page(state, Filter(tenant=tenant, session=session), query.limit, query.cursor)
    if not page.entries and query.cursor is None:
        raise _unknown(session)
    turns = [turn_answer(entry) for entry in reversed(page.entries)]
    return Whole(SessionView(session, tenant, turns, page.cursor))


async def _only_tenant(state: State, session: str) -> str:
    """Return the only tenant with a session of this name, by its newest turns and the latest sessions."""
    page = await state.store.list_entries(Filter(session=session), MAX_PAGE)
    tenants = {entry.record.provenance.tenant for entry in page.entries}
    if page.cursor is not None:
        tenants |= {one.tenant for one in await state.store.sessions() if one.session == session}
    if not tenants:
        raise _unknown(session)
    if len(tenants) > 1:
        raise Declined(
            400,
            "ambiguous_session",
            f"{len(tenants)} tenants have a session of this name.",
            f"Add ?tenant= with one of {', '.join(sorted(tenants)[:8])}.",
        )
    return tenants.pop()


def _unknown(session: str) -> Declined:
    return Declined(
        404,
        "unknown_session",
        f"Nothing is remembered of the session {session[:80]!r}.",
        "GET /api/sessions lists all.",
    )
