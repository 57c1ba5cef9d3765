"""Sessions, and one of them as a conversation: what was said, thought and called, and what happened to each turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import Struct

from thoughtline.clients import find
from thoughtline.engine.said import MAX_CHARS, first_words
from thoughtline.gateway.admin.answers import (
    DialogueTurn,
    Saying,
    SayingKind,
    SessionPage,
    SessionRow,
    SessionView,
    moment,
)
from thoughtline.gateway.admin.cache import dialogue_turn, entries_page
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.state import State
from thoughtline.stores import Entry, Filter
from thoughtline.stores.base import MAX_PAGE, SessionSummary
from thoughtline.values.errors import Declined
from thoughtline.values.items import (
    Item,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.records import Record
from thoughtline.values.turns import UNNAMED_SESSION


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
    return Whole(SessionPage(await _rows(request.state, found)))


async def session_view(request: AdminRequest) -> Whole:
    """Raises if there is no such session, or several."""
    state, session, query = request.state, request.names["id"], decode_query(request.query, SessionQuery)
    if "\0" in session:
        raise unknown_session(session)  # no store can hold such a name, and some fail on it
    tenant = await find_tenant(state, session) if query.tenant is None else query.tenant
    page = await entries_page(state, Filter(tenant=tenant, session=session), query.limit, query.cursor)
    if not page.entries and query.cursor is None:
        raise unknown_session(session)
    entries = page.entries[::-1]
    words = await state.words.of(tenant, session, [entry.record for entry in entries])
    turns = [_turn(entry, words.get(entry.record.id)) for entry in entries]
    (row,) = await _rows(state, [await _summary(state, tenant, session, entries)])
    return Whole(SessionView.of(row, keeps_text=state.words.are_kept, turns=turns, cursor=page.cursor))


async def _summary(state: State, tenant: str, session: str, entries: Sequence[Entry]) -> SessionSummary:
    """As the list has it; of a session beyond the latest ones, what this page knows."""
    for one in await state.store.sessions(tenant):
        if one.session == session:
            return one
    records = [entry.record for entry in entries]
    return SessionSummary(
        tenant,
        session,
        entries=len(records),
        chars=sum(record.reasoning_chars for record in records),
        newest_at=max((record.created_at for record in records), default=0.0),
        models=tuple(sorted({f"{record.provenance.provider}/{record.model}" for record in records})),
    )


async def _rows(state: State, found: Sequence[SessionSummary]) -> list[SessionRow]:
    """With what the first turn of each says: who began it, and with which words."""
    places = [(one.tenant, one.session) for one in found]
    firsts = await state.store.openings(places)
    words = await state.words.openings(places)
    rows = []
    for one, place in zip(found, places, strict=True):
        rows.append(_row(one, firsts.get(place), first_words(words.get(place, ()))))
    return rows


def _row(one: SessionSummary, first: Record | None, words: str) -> SessionRow:
    name = one.session if reads_as_a_name(one.session) else ""
    client = first.outcome.client if first is not None and first.outcome is not None else ""
    known = find(client) if client else None
    return SessionRow(
        one.session,
        one.tenant,
        title=name or words or None,
        titled_by="client" if name else "words" if words else "",
        client=client,
        client_title=known.title if known is not None else client,
        model=first.model if first is not None else "",
        models=list(one.models),
        entries=one.entries,
        chars=one.chars,
        started_at=moment(first.created_at) if first is not None else None,
        newest_entry=moment(one.newest_at),
    )


_PARTS = re.compile(r"[\s\-_./:#,]+")
_WORD = re.compile(r"[^\W\d_]+\d{0,2}|\d{1,4}")
_HEX = re.compile(r"[0-9a-f]{8,}", re.IGNORECASE)


def reads_as_a_name(session: str) -> bool:
    """Whether a person chose it: words and short numbers, no identifier that a program made."""
    if session.startswith(UNNAMED_SESSION) or len(session) > 80:
        return False
    parts = [part for part in _PARTS.split(session) if part]
    is_plain = all(_WORD.fullmatch(part) and len(part) <= 24 and not _HEX.fullmatch(part) for part in parts)
    return is_plain and any(part.isalpha() and len(part) > 2 and _is_spelled(part) for part in parts)


def _is_spelled(part: str) -> bool:
    """Random letters change their case in the middle."""
    return part in (part.lower(), part.upper(), part.capitalize()) and any(one in "aeiouyAEIOUY" for one in part[:6])


def _turn(entry: Entry, words: Sequence[Item] | None) -> DialogueTurn:
    before = None if words is None else [_saying(item, "user") for item in words]
    return dialogue_turn(entry, before=before, says=[_saying(item, "answer") for item in entry.record.items])


def _saying(item: Item, text_is: SayingKind) -> Saying:
    match item:
        case Text():
            return _with_text(text_is, item.text)
        case ToolCall():
            return _with_text("call", item.arguments, item.name, item.id or "")
        case ToolResult():
            text = msgspec.json.decode(item.content) if bytes(item.content)[:1] == b'"' else str(item.content)
            return _with_text("result", text, item.name or "", item.call_id or "")
        case ReasoningText():
            return _with_text("thought", item.text) if item.text else Saying("sealed", "")
        case ReasoningSummary():
            return _with_text("thought", item.summary)
        case ReasoningEncrypted():
            return Saying("sealed", "", chars=len(item.data))
        case ReasoningServerToolCall():
            return Saying("other", "", item.tool_name)
        case Unknown():
            return Saying("other", "", item.kind)
        case _:
            assert_never(item)


def _with_text(kind: SayingKind, text: str, name: str = "", call_id: str = "") -> Saying:
    return Saying(kind, text[:MAX_CHARS], name, call_id, chars=len(text))


async def find_tenant(state: State, session: str) -> str:
    """Return the only tenant with a session of this name, by its newest turns and the latest sessions."""
    page = await state.store.list_entries(Filter(session=session), MAX_PAGE)
    tenants = {entry.record.provenance.tenant for entry in page.entries}
    if page.cursor is not None:
        tenants |= {one.tenant for one in await state.store.sessions() if one.session == session}
    if not tenants:
        raise unknown_session(session)
    if len(tenants) > 1:
        raise Declined(
            400,
            "ambiguous_session",
            f"{len(tenants)} tenants have a session of this name.",
            f"Add ?tenant= with one of {', '.join(sorted(tenants)[:8])}.",
        )
    return tenants.pop()


def unknown_session(session: str) -> Declined:
    return Declined(
        404,
        "unknown_session",
        f"Nothing is remembered of the session {session[:80]!r}.",
        "GET /api/sessions lists all.",
    )
