"""The settings in effect, without their secrets; and changing those that can change at runtime."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway import shared_settings
from thoughtline.gateway.admin.answers import ContinuityView, ProviderView, SettingsView, TagsView
from thoughtline.gateway.admin.requests import AdminRequest, Whole, nearest
from thoughtline.gateway.checking import checked
from thoughtline.gateway.masking import MASK, masked, masked_url
from thoughtline.gateway.shared_settings import SettingsPatch
from thoughtline.settings import ContentTable, Settings, StoreTable
from thoughtline.values.errors import Declined, SettingsError

Json: TypeAlias = Any


async def settings_view(request: AdminRequest) -> Whole:
    """Return the settings by the store's current state, which this process may follow with a delay."""
    state = request.state
    shared = await shared_settings.load(state.store)
    return Whole(_view(shared_settings.merged(state.admin.loaded, shared), shared, has_token=bool(state.admin.token)))


async def change_settings(request: AdminRequest) -> Whole:
    """Apply a merge patch (RFC 7396): it sets values for every worker and replica; null restores the file's value."""
    state, patch = request.state, decode_patch(request.body)
    shared = shared_settings.patched(await shared_settings.load(state.store), patch)
    try:
        checked(shared_settings.merged(state.admin.loaded, shared), state.keys, state.admin.loaded)
    except SettingsError as error:
        raise Declined(400, "bad_setting", str(error), "The settings in force are unchanged.") from None
    await shared_settings.keep(state.store, patch, state.clock())
    state.admin.signals.wake.set()
    return (await settings_view(request))._replace(done=request.body.decode("utf-8", "replace"))


def decode_patch(body: bytes) -> SettingsPatch:
    """Decode a patch. Raises `Declined` for a name that can't be set here, or an invalid value."""
    try:
        given: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Declined(400, "bad_json", "The body is not valid JSON.", "") from None
    for name in _names(given):
        if name not in shared_settings.NAMES:
            remedy = nearest(name, shared_settings.NAMES)
            raise Declined(400, "unknown_setting", f"{name[:80]!r} can't be set here.", remedy)
    try:
        return msgspec.convert(_with_whole_numbers(given), SettingsPatch)
    except msgspec.ValidationError as error:
        raise Declined(400, "bad_setting", f"{error}.", "See GET /api/openapi.json, SettingsPatch.") from None


def _with_whole_numbers(given: Json) -> Json:
    """Convert whole floats: 3.0 is an integer in JSON Schema."""
    if not isinstance(given, dict):
        return given
    return {
        table: {name: _whole(value) for name, value in values.items()} if isinstance(values, dict) else values
        for table, values in given.items()
    }


def _whole(value: Json) -> Json:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _names(given: Json) -> list[str]:
    """Return the settings that a patch names, with their tables: `continuity.count`."""
    if not isinstance(given, dict):
        return []
    tables = {name.partition(".")[0] for name in shared_settings.NAMES}
    names = [f"{table}.{name}" for table, values in given.items() if isinstance(values, dict) for name in values]
    return [*names, *(table for table, values in given.items() if table not in tables and not isinstance(values, dict))]


def _view(settings: Settings, shared: SettingsPatch, *, has_token: bool) -> SettingsView:
    secrets = {
        "url": masked_url(settings.store_url),
        "encryption_key": masked(settings.store.encryption_key),
        "previous_encryption_key": masked(settings.store.previous_encryption_key),
    }
    return SettingsView(
        server=replace(settings.server, admin_token=MASK if has_token else None),
        store=StoreTable(**{**asdict(settings.store), **secrets}),
        providers={name: _provider(settings, row) for name, row in settings.providers.items()},
        routes={name: list(row.targets) for name, row in settings.routes.items()},
        route_continuity={name: row.continuity for name, row in settings.routes.items() if row.continuity},
        default_provider=settings.default_provider,
        replay=settings.replay,
        continuity=ContinuityView(**asdict(settings.continuity)),
        translation=settings.translation,
        tags=TagsView(settings.tags or ("markers" if settings.continuity.enabled else "off")),
        content=ContentTable(settings.content),
        debug=settings.debug,
        dashboard=settings.dashboard,
        contracts=sorted(settings.contracts),
        shared=sorted(shared_settings.values_of(shared)),
    )


def _provider(settings: Settings, row: Provider) -> ProviderView:
    return ProviderView(
        base_url=masked_url(row.base_url),
        formats=list(row.formats),
        auth=row.auth,
        api_keys=len(row.api_keys),
        headers=sorted(row.headers),
        contract=row.contract,
        dialect=row.dialect,
        continuity=row.continuity,
        tags=row.tags,
        content=row.content,
        is_configured=row.name in settings.configured,
    )
