"""Validates settings: one check for the start, for every reload, and for changes through the admin API."""

from __future__ import annotations

import socket
import time

from msgspec.structs import replace

from thoughtline.gateway.client_keys import ClientKeys, KeyMark, KnowsKeys
from thoughtline.gateway.signing import can_sign
from thoughtline.settings import Settings, check_exposure
from thoughtline.stores import LayeredStore, durable_store, open_store, sqlite_folder
from thoughtline.values.errors import InputProblem, SettingsError, StoreError


def checked(settings: Settings, keys: KnowsKeys, running: Settings | None = None) -> Settings:
    """Return the settings to run with. Raises `SettingsError` with all problems.

    In a `running` gateway, settings that can't change at runtime keep their values. Then both must be valid: the
    settings as the next start would read them, and those in effect now.
    """
    in_force = settings if running is None else _kept(settings, running)
    problems = [
        *_store_problems(settings),
        *_worker_problems(settings),
        *_signing_problems(settings),
        *_exposure(settings, keys),
        *_exposure(in_force, keys),
    ]
    if problems:
        raise SettingsError(list(dict.fromkeys(problems)))
    return in_force


async def check_start(settings: Settings, mark: KeyMark) -> bool:
    """Check settings before the start, with the keys in the store. Returns whether the store works now; also raises if
    it can't be used as it is."""
    if problems := _store_problems(settings):
        raise SettingsError(problems)
    _check_folder(settings.store_url)
    store = await open_store(settings.store_url, settings.store)
    try:
        checked(settings, await ClientKeys.load(store, mark=mark))
        return not isinstance(store, LayeredStore) or store.is_settled
    finally:
        await store.close()


def _check_folder(url: str) -> None:
    """A file that can never be created is a mistake in its address; a server that is down is not."""
    folder = sqlite_folder(url)
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        remedy = "name another with --store sqlite:///PATH, or keep nothing on disk with --store memory://"
        problem = InputProblem(str(folder), "store.url", f"this folder can't be created: {error.strerror}", remedy)
        raise SettingsError([problem]) from None


def _kept(settings: Settings, running: Settings) -> Settings:
    """Address, store and workers stay the same until a restart."""
    now = running.server
    server = replace(settings.server, host=now.host, port=now.port, workers=now.workers)
    kept = {"store_url": running.store_url, "store": running.store, "bus_directory": running.bus_directory}
    return replace(settings, server=server, **kept)


def _store_problems(settings: Settings) -> list[InputProblem]:
    """Return problems of a store's address or encryption key, without connecting."""
    if settings.store_url.startswith("memory:"):
        return []
    try:
        durable_store(settings.store_url, settings.store, time.time)
    except StoreError as error:
        remedy = "fix url or encryption_key in [store], or THOUGHTLINE_STORE, THOUGHTLINE_ENCRYPTION_KEY"
        return [InputProblem("settings", "store", str(error), remedy)]
    return []


def _worker_problems(settings: Settings) -> list[InputProblem]:
    """Workers need Unix sockets, which Windows does not have."""
    if settings.server.workers == 1 or hasattr(socket, "AF_UNIX"):
        return []
    return [InputProblem("settings", "server.workers", "this system can't run several workers", "set workers = 1")]


def _signing_problems(settings: Settings) -> list[InputProblem]:
    if can_sign():
        return []
    return [
        InputProblem("settings", f"providers.{name}.auth", "signing needs botocore", "pip install 'thoughtline[aws]'")
        for name, provider in settings.providers.items()
        if provider.auth == "aws"
    ]


def _exposure(settings: Settings, keys: KnowsKeys) -> list[InputProblem]:
    """Unknown keys may exist: until they are loaded, every caller needs one."""
    are_required = keys.would_be_required(settings.server.require_client_keys) is not False
    error = check_exposure(settings, has_client_keys=are_required)
    return list(error.problems) if error is not None else []
