"""What to set in a client, as `thoughtline connect` says it, and when each client was last seen."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.requests import AdminRequest
from thoughtline.gateway.admin.status_answers import ConnectView
from thoughtline.values.errors import Declined


class ConnectQuery(Struct, frozen=True):
    """Which client, for whose model. `url` is the gateway as that client reaches it; as it was asked, if not given."""

    client: str | None = None
    provider: str | None = None
    model: str | None = None
    url: str | None = None


async def connect_view(request: AdminRequest, query: ConnectQuery) -> ConnectView:
    raise Declined(501, "not_yet", "Not yet.")
