"""The last requests: a page of them, one explained, and figures over time."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.request_answers import RequestOutcome, RequestPage, RequestView
from thoughtline.gateway.admin.status_answers import Series
from thoughtline.gateway.state import State
from thoughtline.values.errors import Declined


class RequestsQuery(Struct, frozen=True):
    """Which requests: those that agree with all that is given, and which page of them; `limit` is 1 to 200.

    `provider` and `model` in any case, `provider` by an alias too. `status` is one (`400`) or a class (`4xx`). `text`
    is looked for in ids, models, sessions, paths, errors and summaries.
    """

    session: str | None = None
    tenant: str | None = None
    provider: str | None = None
    model: str | None = None
    status: str | None = None
    outcome: RequestOutcome | None = None
    text: str | None = None
    limit: int = 50
    cursor: str | None = None


async def requests_page(state: State, query: RequestsQuery) -> RequestPage:
    raise Declined(501, "not_yet", "Not yet.")


async def request_view(state: State, id: str) -> RequestView:
    raise Declined(501, "not_yet", "Not yet.")


async def series_view(state: State) -> Series:
    raise Declined(501, "not_yet", "Not yet.")
