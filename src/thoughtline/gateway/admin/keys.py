"""Client keys over the admin API: everything that `thoughtline keys` can do, except opening the gateway to all
callers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.gateway.admin import recent
from thoughtline.gateway.admin.answers import moment
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.admin.status_answers import KeyMade, KeysRevoked, KeysView, KeyView
from thoughtline.gateway.client_keys import ClientKey, ClientKeys
from thoughtline.gateway.state import State
from thoughtline.stores.settings import decode_duration
from thoughtline.terminal import counted
from thoughtline.values.errors import Declined, StoreError

_FIRST = "The first key closes the gateway to callers without one; `thoughtline keys clear` undoes that."
_OPTIONAL = "The settings have require_client_keys = false: callers without a key still get in."
_LAST = "No valid key is left, and the gateway stays closed. Add another, or delete all with `thoughtline keys clear`."
_UNKEPT = "This store keeps no keys."


class KeyFilter(Struct, frozen=True):
    """The id of a key, or a name, which selects all keys of that name."""

    id: str


class KeyBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A key to make. `expires` is how long it is valid, as in `30d`; without it, until it is revoked."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    requests_per_minute: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    concurrent_streams: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    expires: Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,4}[smhd]$")] | None = None
    plain_content: bool = False
    replay: ReplayMode | None = None


async def keys_view(request: AdminRequest) -> Whole:
    state = request.state
    keys = state.keys.listed() if isinstance(state.keys, ClientKeys) else ()
    can_change = isinstance(state.keys, ClientKeys) and state.durable is not None
    note = _UNKEPT if not can_change else _note(state, is_first=not keys)
    return Whole(KeysView(await _views(state, keys), bool(state.keys.are_required), can_change, note))


async def add_key(request: AdminRequest) -> Whole:
    state, keys, body = request.state, _kept(request.state), _decoded(request.body)
    name = body.name.strip()
    if not name or not name.isprintable():
        raise Declined(400, "bad_body", "A name has 1 to 100 printable characters.", "")
    is_first = keys.is_empty
    secret, key = await keys.add(
        name,
        requests_per_minute=body.requests_per_minute,
        concurrent_streams=body.concurrent_streams,
        content="plain" if body.plain_content else None,
        replay=body.replay,
        expires_at=None if body.expires is None else state.clock() + _seconds(body.expires),
    )
    state.admin.signals.wake.set()
    made = KeyMade((await _views(state, (key,)))[0], secret, _note(state, is_first=is_first))
    return Whole(made, done=f"client key {key.id} made for {key.name}")


async def revoke_key(request: AdminRequest) -> Whole:
    state, name_or_id = request.state, decode_query(request.query, KeyFilter).id
    keys = _kept(state)
    gone = await keys.revoke(name_or_id)
    if not gone:
        raise Declined(404, "unknown_key", "No valid key has this id or name.", "GET /api/keys lists all.")
    is_last = not any(key.is_good(state.clock()) for key in keys.listed())
    state.admin.signals.wake.set()
    revoked = [msgspec.structs.replace(key, revoked=True) for key in gone]
    answer = KeysRevoked(await _views(state, revoked), _LAST if is_last else "")
    return Whole(answer, done=f"{counted(len(revoked), 'client key')} revoked")


def _kept(state: State) -> ClientKeys:
    if not isinstance(state.keys, ClientKeys) or state.durable is None:
        raise Declined(409, "no_keys_here", _UNKEPT, "Name a durable store in [store] url.")
    return state.keys


def _decoded(body: bytes) -> KeyBody:
    try:
        return msgspec.json.decode(body, type=KeyBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Declined(400, "bad_body", f"{error}.", "See GET /api/openapi.json, KeyBody.") from None


def _seconds(text: str) -> float:
    try:
        return decode_duration(text)
    except StoreError as error:
        raise Declined(400, "bad_body", f"expires: {error}.", "For example 30d.") from None


def _note(state: State, *, is_first: bool) -> str:
    if state.settings.server.require_client_keys is False:
        return _OPTIONAL
    return _FIRST if is_first else ""


async def _views(state: State, keys: tuple[ClientKey, ...] | list[ClientKey]) -> list[KeyView]:
    used, now = (await recent.seen(state)).keys, state.clock()
    return [
        KeyView(
            key.id,
            key.name,
            key.tenant,
            state="revoked" if key.revoked else "good" if key.is_good(now) else "expired",
            created_at=moment(key.created_at),
            expires_at=None if key.expires_at is None else moment(key.expires_at),
            last_used=moment(used[key.id]) if key.id in used else None,
            requests_per_minute=key.requests_per_minute,
            concurrent_streams=key.concurrent_streams,
            plain_content=key.content == "plain",
            replay=key.replay,
        )
        for key in keys
    ]
