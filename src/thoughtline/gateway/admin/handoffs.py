"""What became of handoffs, by the records that are kept: the same on every worker and replica."""

from __future__ import annotations

from thoughtline.continuity.handoffs import report
from thoughtline.gateway.admin.answers import HandoffReport, HandoffRow
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.records import Record

MOST_TURNS = 2000
"""Turns that are looked at, newest first: ten pages of the store."""


async def handoff_report(request: AdminRequest) -> Whole:
    records: list[Record] = []
    cursor: str | None = None
    while len(records) < MOST_TURNS:
        page = await request.state.store.list_entries(Filter(), MAX_PAGE, cursor)
        records += [entry.record for entry in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
    rows = [HandoffRow.of(one) for one in report(records)]
    return Whole(HandoffReport(rows, len(records), cursor is None))
