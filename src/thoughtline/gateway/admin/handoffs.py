"""What became of handoffs, by the records that are kept: the same on every worker and replica."""

from __future__ import annotations

from thoughtline.continuity.handoffs import Handoffs, report
from thoughtline.gateway.admin.answers import HandoffReport, HandoffRow
from thoughtline.gateway.state import State
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.records import Record

MOST_TURNS = 2000
"""Turns that are looked at, newest first: ten pages of the store."""


async def handoff_report(state: State) -> HandoffReport:
    records: list[Record] = []
    cursor: str | None = None
    while len(records) < MOST_TURNS:
        page = await state.store.list_entries(Filter(), MAX_PAGE, cursor)
        records += [entry.record for entry in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
    return HandoffReport([_row(one) for one in report(records)], len(records), cursor is None)


def _row(one: Handoffs) -> HandoffRow:
    return HandoffRow(
        route=one.route,
        has_checkpoints=one.has_checkpoints,
        count=one.count,
        added_chars=one.added_chars,
        added_tokens=one.added_tokens,
        finishes=one.finishes,
        followed=one.followed,
        tool_errors=one.tool_errors,
        bad_calls=one.bad_calls,
        retries=one.retries,
    )
