"""Client keys over the admin API: what `thoughtline keys` can do, but for opening the gateway to everybody."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from thoughtline.gateway.admin.status_answers import KeyMade, KeysRevoked, KeysView
from thoughtline.gateway.state import State
from thoughtline.values.errors import Declined


class KeyFilter(Struct, frozen=True):
    """The id of a key, or a name, which is all keys of that name."""

    id: str


class KeyBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A key to make. `expires` is how long it is good, as in `30d`; without it, until it is revoked."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    requests_per_minute: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    concurrent_streams: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    expires: str | None = None
    plain_content: bool = False


async def keys_view(state: State) -> KeysView:
    raise Declined(501, "not_yet", "Not yet.")


async def add_key(state: State, body: bytes) -> KeyMade:
    raise Declined(501, "not_yet", "Not yet.")


async def revoke_key(state: State, name_or_id: str) -> KeysRevoked:
    raise Declined(501, "not_yet", "Not yet.")
