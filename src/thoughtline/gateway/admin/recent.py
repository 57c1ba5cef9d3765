"""The latest requests: a page of them, one explained, and figures over time; of all workers, and of replicas through
the store.

    own requests ─┐
    neighbours  ──┼─▶ rows, newest first ─▶ a page;   one by its id ─▶ a view
    replicas    ──┘
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, get_args

import msgspec
from msgspec import Struct

from thoughtline.gateway.admin.request_answers import RequestOutcome, RequestPage, RequestRow, RequestView
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.admin.status_answers import Series
from thoughtline.gateway.asking import PER_NOTE
from thoughtline.gateway.explaining import correction_words, row_of, view_of
from thoughtline.gateway.recent import STEP_SECONDS, STEPS, Served, StepSums
from thoughtline.gateway.state import State
from thoughtline.providers import canonical_name
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.errors import Declined, StoreError
from thoughtline.values.records import Key


class RequestsQuery(Struct, frozen=True):
    """Selects the requests that match every given value, and a page of them; `limit` is 1 to 200.

    Case does not matter; `provider` may be an alias, `session` and `tenant` match by their beginning. `caller` is the
    name of a client key. `status` is one (`400`) or a class (`4xx`). A value with `!` before it means all others.
    `text` is searched for in ids, models, callers, sessions, paths, errors and summaries.
    """

    session: str | None = None
    tenant: str | None = None
    caller: str | None = None
    client: str | None = None
    provider: str | None = None
    model: str | None = None
    status: str | None = None
    outcome: str | None = None
    text: str | None = None
    limit: int = 50
    cursor: str | None = None


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


async def requests_page(request: AdminRequest) -> Whole:
    state, query = request.state, decode_query(request.query, RequestsQuery)
    limit = min(max(query.limit, 1), MAX_PAGE)
    if query.outcome is not None and _wanted(query.outcome) not in get_args(RequestOutcome):
        known = ", ".join(get_args(RequestOutcome))
        raise Declined(400, "bad_query", f"There is no outcome {query.outcome[:40]!r}.", f"One of {known}.")
    if query.cursor is not None:
        _place_of(query.cursor)
    query = msgspec.structs.replace(query, limit=limit + 1)
    others = await state.recent.asking.ask(_encode(AskRows(query)))
    rows = {row.id: row for row in fitting(map(RequestRow.of, await state.recent.replicas.views(state.store)), query)}
    for body in others.bodies:
        rows |= {row.id: row for row in msgspec.json.decode(body, type=list[RequestRow])}
    rows |= {row.id: row for row in _own_rows(state, query)}
    found = sorted(rows.values(), key=_place, reverse=True)
    cursor = _cursor(found[limit - 1]) if len(found) > limit else None
    return Whole(RequestPage(found[:limit], cursor, others.is_whole))


async def request_view(request: AdminRequest) -> Whole:
    """Explain a request, by its id or the beginning of it. Raises if it is unknown."""
    state, name = request.state, request.names["id"]
    found = state.recent.find(name)
    if found is not None:
        return Whole(await _own_view(state, found))
    for body in (await state.recent.asking.ask(_encode(AskView(name)))).bodies:
        if (view := msgspec.json.decode(body, type=RequestView | None)) is not None:
            return Whole(view)
    for view in await state.recent.replicas.views(state.store):
        if name and view.id.startswith(name):
            return Whole(view)
    raise Declined(
        404, "unknown_request", f"Nothing is remembered of the request {name[:80]!r}.", "GET /api/requests lists all."
    )


async def share(state: State) -> None:
    """Write the requests since the last call for other replicas to read, if there can be any."""
    replicas, ended = state.recent.replicas, state.recent.ended
    if replicas.are_there and ended > replicas.written:
        served = state.recent.newest(min(ended - replicas.written, PER_NOTE))
        views = [msgspec.structs.replace(await _own_view(state, one), bodies=None) for one in served]
        await replicas.tell(state.store, views, state.clock())
        replicas.written = ended


async def series_view(request: AdminRequest) -> Whole:
    """Sum up all workers, with a number for each step of the day."""
    state = request.state
    last = int(state.clock()) // STEP_SECONDS * STEP_SECONDS
    first = last - (STEPS - 1) * STEP_SECONDS
    total = {at: StepSums(at) for at in range(first, last + 1, STEP_SECONDS)}
    others = await state.recent.asking.ask(_encode(AskSteps(first)))
    their_steps = [msgspec.json.decode(body, type=list[StepSums]) for body in others.bodies]
    for steps in (state.recent.series.since(first), *their_steps):
        for step in steps:
            if step.at in total:
                total[step.at].add(step)
    every = list(total.values())
    names = ("requests", "avoided", "restored", "missing", "healed", "refused", "errors", "store")
    series = Series(
        step_seconds=STEP_SECONDS,
        started_at=state.recent.started_at,
        times=[step.at for step in every],
        own_ms=[_mean(step.own_ms, step.requests) for step in every],
        upstream_ms=[_mean(step.upstream_ms, step.requests) for step in every],
        **{name: [getattr(step, name) for step in every] for name in names},
    )
    return Whole(series)


async def seen(state: State) -> Seen:
    """Return what all workers have seen."""
    others = await state.recent.asking.ask(_encode(AskSeen()))
    every = [_own_seen(state), *(msgspec.json.decode(body, type=Seen) for body in others.bodies)]
    return Seen(_latest(one.agents for one in every), _latest(one.keys for one in every))


def fitting(rows: Iterable[RequestRow], query: RequestsQuery) -> list[RequestRow]:
    """Return the rows that match a query, up to its limit, newest first."""
    before = _place_of(query.cursor) if query.cursor is not None else None
    found = [row for row in rows if _fits(row, query) and (before is None or _place(row) < before)]
    return sorted(found, key=_place, reverse=True)[: query.limit]


def _own_rows(state: State, query: RequestsQuery) -> list[RequestRow]:
    return fitting((row_of(served, state.bus.name) for served in state.recent.all()), query)


async def _own_view(state: State, served: Served) -> RequestView:
    learned: dict[str, list[str]] = {}
    for one in state.lessons.corrections:
        learned.setdefault(f"{one.provider}/{one.model}", []).append(correction_words(one))
    return view_of(
        served,
        state.bus.name,
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


def _fits(row: RequestRow, query: RequestsQuery) -> bool:
    provider, status = (query.provider or "").removeprefix("!").lower(), row.status
    tests = (
        (query.provider, row.provider.lower() in (provider, canonical_name(provider))),
        (query.status, _wanted(query.status) in (str(status), f"{status // 100}xx")),
        (query.model, row.model.lower() == _wanted(query.model)),
        (query.outcome, row.outcome == _wanted(query.outcome)),
        (query.client, row.client.lower() == _wanted(query.client)),
        (query.caller, row.caller.lower() == _wanted(query.caller)),
        (query.session, (row.session or "").lower().startswith(_wanted(query.session))),
        (query.tenant, row.tenant.lower().startswith(_wanted(query.tenant))),
    )
    if any(wanted and fits is wanted.startswith("!") for wanted, fits in tests):
        return False
    return query.text is None or query.text.lower() in _text(row)


def _wanted(value: str | None) -> str:
    return (value or "").removeprefix("!").lower()


def _text(row: RequestRow) -> str:
    words = (row.id, row.path, row.provider, row.model, row.session, row.client, row.caller, row.code, row.message)
    return "\n".join(filter(None, (*words, row.summary))).lower()


def _place(row: RequestRow) -> tuple[int, str]:
    """Return the sort key: its start in microseconds, and its id."""
    return round(row.at.timestamp() * 1_000_000), row.id


def _cursor(row: RequestRow) -> str:
    at, name = _place(row)
    return f"{at:x}.{name}"


def _place_of(cursor: str) -> tuple[int, str]:
    at, _, name = cursor.partition(".")
    try:
        return int(at, 16), name
    except ValueError:
        raise Declined(400, "bad_cursor", "This cursor belongs to no page.", "Begin without one.") from None


def _mean(total: float, count: int) -> float | None:
    return round(total / count, 3) if count else None


def _latest(several: Iterable[dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in several:
        for name, at in one.items():
            found[name] = max(at, found.get(name, 0.0))
    return found
