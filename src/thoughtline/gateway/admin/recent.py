"""Requests: a page of them, and one explained; of all workers and replicas, of now and of before.

own requests ─┐
neighbours  ──┼─▶ rows, newest first ─▶ a page;   one by its id ─▶ a view
history     ──┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thoughtline.gateway.admin.answers import moment
from thoughtline.gateway.admin.exports import csv_answer, har_answer
from thoughtline.gateway.admin.filters import (
    RequestsQuery,
    check,
    exact_session,
    group_of_row,
    group_test,
    is_filtered,
    session_fits,
    span_of,
    text_fits,
)
from thoughtline.gateway.admin.request_answers import RequestPage, RequestRow, RequestView
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.explaining import correction_words, row_of, view_of
from thoughtline.gateway.recent import Served, StepSums
from thoughtline.gateway.state import State
from thoughtline.stores.base import MAX_PAGE
from thoughtline.stores.history import Group, Kept, Where, merged
from thoughtline.values.errors import Declined, StoreError
from thoughtline.values.records import Key

MAX_SEARCHED = 2000
"""Requests whose words are looked through for one page; the next page goes on from there."""

SEARCHED_AT_ONCE = 500


class AskRows(Struct, frozen=True, tag=True):
    """Ask another worker for its requests."""

    query: RequestsQuery


class AskView(Struct, frozen=True, tag=True):
    """Ask for one of them."""

    id: str


class AskSteps(Struct, frozen=True, tag=True):
    """Ask for its figures since this time."""

    since: float


class AskSeen(Struct, frozen=True, tag=True):
    """Ask which agents and keys it has seen."""


class Seen(Struct, frozen=True):
    """When user agents and client keys were last seen, in seconds since the epoch."""

    agents: dict[str, float]
    keys: dict[str, float]


class RequestQuery(Struct, frozen=True):
    """How one request is shown: as JSON, or as HAR 1.2, which browsers open."""

    format: Literal["json", "har"] = "json"


Question: TypeAlias = AskRows | AskView | AskSteps | AskSeen
_questions = msgspec.json.Decoder(Question)
_encode = msgspec.json.Encoder().encode


async def answer(state: State, body: bytes) -> bytes:
    """Answer another worker."""
    question: Question = _questions.decode(body)
    match question:
        case AskRows(query):
            return _encode(_own_rows(state, query))
        case AskView(id):
            found = state.recent.find(id)
            return _encode(None if found is None else await _own_view(state, found))
        case AskSteps(since):
            return _encode(state.recent.series.since(since))
        case AskSeen():
            return _encode(_own_seen(state))


async def other_steps(state: State, since: float) -> list[list[StepSums]]:
    """The figures of other workers since then."""
    others = await state.recent.asking.ask(_encode(AskSteps(since)))
    return [msgspec.json.decode(body, type=list[StepSums]) for body in others.bodies]


async def requests_page(request: AdminRequest) -> Whole:
    state, query = request.state, decode_query(request.query, RequestsQuery)
    limit = min(max(query.limit, 1), MAX_PAGE)
    check(query)
    if query.cursor is not None:
        _place_of(query.cursor)
    if (span := span_of(query, state.clock(), usual=None)) is not None:  # `now` is the same for all workers
        query = msgspec.structs.replace(query, range=None, since=_iso(span.since), until=_iso(span.until))
    query = msgspec.structs.replace(query, limit=limit + 1)
    others = await state.recent.asking.ask(_encode(AskRows(query)))
    before, searched = await _former_rows(state, query)
    rows = {row.id: row for row in before}
    for body in others.bodies:
        rows |= {row.id: row for row in msgspec.json.decode(body, type=list[RequestRow])}
    rows |= {row.id: row for row in _own_rows(state, query)}
    found = sorted(rows.values(), key=_place, reverse=True)
    cursor = _cursor(_place(found[limit - 1])) if len(found) > limit else None
    found = found[:limit]
    if searched is not None:  # what is older than this may have been overlooked
        found = [row for row in found if _place(row) >= searched]
        cursor = _cursor(searched)
    if query.format == "csv":
        return csv_answer(found, RequestRow.__struct_encode_fields__, "requests")
    return Whole(RequestPage(found, cursor, others.is_whole))


async def request_view(request: AdminRequest) -> Whole:
    """By its id, or the beginning of it. Raises where none is known."""
    query = decode_query(request.query, RequestQuery)
    view = await _view(request.state, request.names["id"])
    return har_answer(view) if query.format == "har" else Whole(view)


async def _view(state: State, name: str) -> RequestView:
    found = state.recent.find(name)
    if found is not None:
        return await _own_view(state, found)
    for body in (await state.recent.asking.ask(_encode(AskView(name)))).bodies:
        if (view := msgspec.json.decode(body, type=RequestView | None)) is not None:
            return view
    kept = await state.recent.history.history.find(name) if name and "\0" not in name else None
    served = state.recent.history.served(kept) if kept is not None else None
    if served is not None:
        return await _own_view(state, served)
    raise Declined(
        404, "unknown_request", f"Nothing is remembered of the request {name[:80]!r}.", "GET /api/requests lists all."
    )


async def seen(state: State) -> Seen:
    """Return what all workers have seen."""
    others = await state.recent.asking.ask(_encode(AskSeen()))
    every = [_own_seen(state), *(msgspec.json.decode(body, type=Seen) for body in others.bodies)]
    return Seen(_latest(one.agents for one in every), _latest(one.keys for one in every))


def fitting(rows: Iterable[RequestRow], query: RequestsQuery) -> list[RequestRow]:
    """Return the rows that match a query, up to its limit, newest first."""
    before = _place_of(query.cursor) if query.cursor is not None else None
    fits = _row_test(query)
    found = [row for row in rows if fits(row) and (before is None or _place(row) < before)]
    return sorted(found, key=_place, reverse=True)[: query.limit]


def _own_rows(state: State, query: RequestsQuery) -> list[RequestRow]:
    return fitting(map(row_of, state.recent.all()), query)


def _row_test(query: RequestsQuery) -> Callable[[RequestRow], bool]:
    in_group, span, text = group_test(query), span_of(query, 0.0, usual=None), query.text

    def fits(row: RequestRow) -> bool:
        if span is not None and not span.since <= row.at.timestamp() < span.until:
            return False
        if not (in_group(group_of_row(row)) and session_fits(query, row.session)):
            return False
        return text is None or text_fits(_texts(row), text)

    return fits


# --- those of the history ---------------------------------------------------------------------------------------------


async def _former_rows(state: State, query: RequestsQuery) -> tuple[list[RequestRow], tuple[int, str] | None]:
    """The rows of the history that a query means. Of a search that did not come to its end, also how far it came."""
    writer = state.recent.history
    if not writer.history.is_kept:
        return [], None
    groups = await writer.history.groups()
    where, chosen = _where(query), _chosen(groups, query)
    if query.text is None:
        kept, searched = await _pages(state, where, chosen, query), None
    else:
        kept, searched = await _found(state, where, groups, chosen, query)
    rows = [row_of(served) for one in kept if (served := writer.served(one)) is not None]
    return rows, searched


def _where(query: RequestsQuery) -> Where:
    span = span_of(query, 0.0, usual=None)
    before = _place_of(query.cursor) if query.cursor is not None else None
    if span is None:
        return Where(before=before)
    return Where(round(span.since * 1_000_000), round(span.until * 1_000_000), before)


def _chosen(groups: dict[int, Group], query: RequestsQuery) -> frozenset[int] | None:
    if not is_filtered(query):
        return None
    fits = group_test(query)
    return frozenset(key for key, group in groups.items() if fits(group))


async def _pages(state: State, where: Where, chosen: frozenset[int] | None, query: RequestsQuery) -> list[Kept]:
    history, session = state.recent.history.history, exact_session(query)
    where = msgspec.structs.replace(where, groups=chosen)
    if not query.session:
        return await history.page(where, query.limit)
    if session is not None:  # as it is written, or in small letters, as most are
        wheres = [msgspec.structs.replace(where, session=one, is_prefix=True) for one in {session, session.lower()}]
        return merged([await history.page(one, query.limit) for one in wheres], query.limit)
    found: list[Kept] = []  # all others than some sessions
    while len(found) < query.limit and (some := await history.page(where, SEARCHED_AT_ONCE)):
        found += [one for one in some if session_fits(query, one.session)]
        where = msgspec.structs.replace(where, before=some[-1][:2])
    return found[: query.limit]


async def _found(
    state: State, where: Where, groups: dict[int, Group], chosen: frozenset[int] | None, query: RequestsQuery
) -> tuple[list[Kept], tuple[int, str] | None]:
    """Find a text in names, sessions and ids; if it is in none of them, in the words of requests that failed."""
    text = (query.text or "").lower()
    allowed = frozenset(groups) if chosen is None else chosen
    named = frozenset(key for key in allowed if text_fits(map(str, msgspec.structs.astuple(groups[key])), text))
    first = msgspec.structs.replace(where, before=None)
    if await _named(state, first, named, allowed, msgspec.structs.replace(query, limit=1)):
        return await _named(state, where, named, allowed, query), None
    failed = frozenset(key for key in allowed if groups[key].outcome not in ("ok", "restored"))
    matching, searched = await _searched(state, msgspec.structs.replace(where, groups=failed), text, query)
    return [one for one in matching if session_fits(query, one.session)][: query.limit], searched


async def _named(
    state: State, where: Where, named: frozenset[int], allowed: frozenset[int], query: RequestsQuery
) -> list[Kept]:
    """Return the entries whose group, session or id has the text."""
    found = {one.id: one for one in await _pages(state, where, named, query)}
    by_session = msgspec.structs.replace(query, session=query.text)
    if not query.session and exact_session(by_session) is not None:
        found |= {one.id: one for one in await _pages(state, where, allowed, by_session)}
    text = (query.text or "").lower()
    one = await state.recent.history.history.find(text) if "\0" not in text else None
    if one is not None and msgspec.structs.replace(where, groups=allowed).fits(one):
        found[one.id] = one
    return sorted(found.values(), reverse=True)[: query.limit]


async def _searched(
    state: State, where: Where, text: str, query: RequestsQuery
) -> tuple[list[Kept], tuple[int, str] | None]:
    """Entries with a text in their data, and how far the search came if that was not to the end."""
    history, packer = state.recent.history.history, state.recent.history.packer.aside()

    def look(some: list[Kept]) -> list[Kept]:
        wanted = text.encode()
        return [one for one in some if wanted in packer.unseal(one.data, one.id.encode()).lower()]

    found: list[Kept] = []
    for _ in range(MAX_SEARCHED // SEARCHED_AT_ONCE):
        some = await history.page(where, SEARCHED_AT_ONCE)
        found += await asyncio.to_thread(look, some)
        if len(some) < SEARCHED_AT_ONCE or len(found) >= query.limit:
            return found, None
        where = msgspec.structs.replace(where, before=some[-1][:2])
    return found, where.before


# --- one of them ------------------------------------------------------------------------------------------------------


async def _own_view(state: State, served: Served) -> RequestView:
    learned: dict[str, list[str]] = {}
    for one in state.lessons.corrections:
        learned.setdefault(f"{one.provider}/{one.model}", []).append(correction_words(one))
    return view_of(
        served,
        bodies=state.recent.bodies_of(served.id),
        learned=learned,
        overridden=frozenset(state.settings.contracts),
        expired=await _expired(state, served),
    )


async def _expired(state: State, served: Served) -> frozenset[str]:
    """Return the turns without a record that had one which has expired. Only looked up on demand."""
    last = served.attempts[-1] if served.attempts else None
    unknown = [Key(note.record) for note in last.notes or () if note.why == "no_record" and note.record] if last else []
    try:
        return frozenset(await state.store.expired(served.line.tenant, unknown)) if unknown else frozenset()
    except StoreError:
        return frozenset()


def _own_seen(state: State) -> Seen:
    return Seen(state.recent.agents, state.recent.keys)


def _texts(row: RequestRow) -> tuple[Any, ...]:
    return (
        *(row.id, row.path, row.provider, row.model, row.session, row.client, row.caller, row.code, row.message),
        *(row.summary, row.tenant, row.route),
    )


def _place(row: RequestRow) -> tuple[int, str]:
    """Return the sort key: its start in microseconds, and its id."""
    return round(row.at.timestamp() * 1_000_000), row.id


def _cursor(place: tuple[int, str]) -> str:
    at, name = place
    return f"{at:x}.{name}"


def _place_of(cursor: str) -> tuple[int, str]:
    at, _, name = cursor.partition(".")
    try:
        place = int(at, 16), name
    except ValueError:
        place = -1, name
    if not 0 <= place[0] < 2**62 or "\0" in name:
        raise Declined(400, "bad_cursor", "This cursor belongs to no page.", "Begin without one.")
    return place


def _iso(seconds: float) -> str:
    return msgspec.to_builtins(moment(seconds))  # type: ignore[no-any-return] # a datetime's text


def _latest(several: Iterable[dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in several:
        for name, at in one.items():
            found[name] = max(at, found.get(name, 0.0))
    return found
