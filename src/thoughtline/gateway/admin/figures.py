"""Figures: over time as a chart has them, and in sums by what requests have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal

from thoughtline.gateway.admin import recent
from thoughtline.gateway.admin.exports import csv_answer
from thoughtline.gateway.admin.filters import (
    DAY_SECONDS,
    RequestFilter,
    Span,
    TableFormat,
    group_test,
    is_filtered,
    span_of,
)
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.admin.status_answers import Figures, NumberRow, NumbersView, Series
from thoughtline.gateway.recent import STEP_SECONDS, STEPS, StepSums
from thoughtline.gateway.state import State
from thoughtline.stores.history import DAY, Group, Sums

MONTH_SECONDS = 30.0 * DAY

By = Literal["provider", "model", "client", "caller", "tenant", "route", "outcome", "code", "action", "day"]


class SeriesQuery(RequestFilter, frozen=True, kw_only=True):
    """Of which requests, and when; the last 24 hours if nothing is said."""

    format: TableFormat = "json"


class NumbersQuery(RequestFilter, frozen=True, kw_only=True):
    """Sums by what, of which requests, and when; the last 30 days if nothing is said."""

    by: By = "provider"
    format: TableFormat = "json"


async def series_view(request: AdminRequest) -> Whole:
    """All workers and replicas together, a number for each step."""
    state, query = request.state, decode_query(request.query, SeriesQuery)
    span = span_of(query, state.clock(), DAY_SECONDS)
    assert span is not None
    step = span.step(state.clock())
    last = int(span.until - 0.001) // step * step
    first = last - (max(1, round(span.seconds / step)) - 1) * step
    if state.recent.history.history.is_kept:
        await state.recent.history.flush()
        groups = await _chosen(state, query)
        sums = await state.recent.history.history.sums(step, first, last + step, groups, "time")
        before = total(await state.recent.history.history.sums(step, 2 * first - last - step, first, groups, "group"))
    else:
        sums, before = await _sums_of_workers(state), Sums()
    times = range(first, last + step, step)
    found = [sums.get(at) or Sums() for at in times]
    series = Series(
        step_seconds=step,
        started_at=state.recent.started_at,
        times=list(times),
        store=[2 if one.degraded else 1 if one.slow else 0 for one in found],
        own_ms=[_mean(one.own_ms, one.requests) for one in found],
        upstream_ms=[_mean(one.upstream_ms, one.requests) for one in found],
        **{name: [getattr(one, name) for one in found] for name in _COUNTED},
        total=figures_of(total(dict(enumerate(found)))),
        before=figures_of(before),
        is_kept=state.recent.history.history.is_kept,
    )
    if query.format == "csv":
        rows = [figures_of(one, at=datetime.fromtimestamp(at, UTC)) for at, one in zip(times, found, strict=True)]
        return csv_answer(rows, ("at",), "series")
    return Whole(series)


_COUNTED = (
    *("requests", "avoided", "restored", "inherited", "blank", "stripped", "missing", "healed", "dropped", "withheld"),
    *("refused", "errors", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"),
)


async def _sums_of_workers(state: State) -> dict[int, Sums]:
    """The last 24 hours as this process and its neighbours have counted them, where no history is kept."""
    first = int(state.clock()) // STEP_SECONDS * STEP_SECONDS - (STEPS - 1) * STEP_SECONDS
    found: dict[int, Sums] = {}
    for steps in (state.recent.series.since(first), *await recent.other_steps(state, first)):
        for step in steps:
            found.setdefault(step.at, Sums()).add(_as_sums(step))
    return found


def _as_sums(step: StepSums) -> Sums:
    names = ("requests", "avoided", "restored", "missing", "healed", "refused", "errors", "own_ms", "upstream_ms")
    return Sums(
        **{name: getattr(step, name) for name in names}, slow=int(step.store == 1), degraded=int(step.store == 2)
    )


async def numbers_view(request: AdminRequest) -> Whole:
    """Sums of a range, and of the one before it."""
    state, query = request.state, decode_query(request.query, NumbersQuery)
    span = span_of(query, state.clock(), MONTH_SECONDS)
    assert span is not None
    await state.recent.history.flush()
    groups, chosen = await state.recent.history.history.groups(), await _chosen(state, query)
    if query.by == "day":
        by_day = await range_sums(state, span, chosen, "time")
        rows = [_row(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d"), one) for at, one in sorted(by_day.items())]
    else:
        sums = await range_sums(state, span, chosen, "group")
        names = grouped(groups, sums, lambda group: str(getattr(group, query.by)))
        rows = sorted((_row(name, one) for name, one in names.items()), key=lambda row: (-row.requests, row.name))
    if query.format == "csv":
        return csv_answer(rows, (), "numbers")
    before = await range_sums(state, span.before, chosen, "group")
    now = total(await range_sums(state, span, chosen, "group"))
    size = await state.recent.history.history.size()
    view = NumbersView(
        by=query.by,
        since=datetime.fromtimestamp(span.since, UTC),
        until=datetime.fromtimestamp(span.until, UTC),
        rows=rows,
        total=figures_of(now),
        before=figures_of(total(before)),
        is_kept=state.recent.history.history.is_kept,
        kept_requests=size.entries,
        kept_bytes=size.bytes,
    )
    return Whole(view)


async def range_sums(
    state: State, span: Span, groups: frozenset[int] | None, by: Literal["time", "group"]
) -> dict[int, Sums]:
    """Of a range, by steps that are as long as it allows; by time they are days."""
    if by == "time":
        first = int(span.since) // DAY * DAY
        return await state.recent.history.history.sums(DAY, first, int(span.until) + 1, groups, by)
    step = span.step(state.clock())
    first = -(-int(span.since) // step) * step
    return await state.recent.history.history.sums(step, first, int(span.until) + 1, groups, by)


def grouped(groups: dict[int, Group], sums: dict[int, Sums], name_of: Callable[[Group], str]) -> dict[str, Sums]:
    """Sums of groups under a name that several may share."""
    found: dict[str, Sums] = {}
    for key, one in sums.items():
        if key in groups:
            found.setdefault(name_of(groups[key]), Sums()).add(one)
    return found


def total(sums: dict[int, Sums]) -> Sums:
    """All of them together."""
    return added(sums.values())


def added(several: Iterable[Sums]) -> Sums:
    found = Sums()
    for one in several:
        found.add(one)
    return found


async def _chosen(state: State, query: RequestFilter) -> frozenset[int] | None:
    if not is_filtered(query):
        return None
    fits = group_test(query)
    return frozenset(key for key, group in (await state.recent.history.history.groups()).items() if fits(group))


def figures_of(sums: Sums, at: datetime | None = None) -> Figures:
    values = {name: getattr(sums, name) for name in (*_COUNTED, "checkpoints")}
    own, upstream = _mean(sums.own_ms, sums.requests), _mean(sums.upstream_ms, sums.requests)
    return Figures(**values, own_ms=own, upstream_ms=upstream, at=at)


def _row(name: str, sums: Sums) -> NumberRow:
    values = {name: getattr(sums, name) for name in (*_COUNTED, "checkpoints")}
    own, upstream = _mean(sums.own_ms, sums.requests), _mean(sums.upstream_ms, sums.requests)
    return NumberRow(**values, own_ms=own, upstream_ms=upstream, name=name)


def _mean(value: float, count: int) -> float | None:
    return round(value / count, 3) if count else None
