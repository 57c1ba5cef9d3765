"""Whether settings can be run with: one check for the start, for every reload, and for what the admin API changes."""

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
    """The settings to run with. Raises `SettingsError` with all that is wrong.

    While a gateway is `running`, what can't change stays as it is. Then both have to be good: the settings as the next
    start would find them, and what would be in force now.
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
    """The same before anything runs, with the keys of the store: whether the store works at the moment. Raises also
    where it can't be used as it is."""
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
    """A file that can never be made is a mistake in its address; a server that is down is not."""
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
    """Address, store and workers stay until a restart."""
    now = running.server
    server = replace(settings.server, host=now.host, port=now.port, workers=now.workers)
    kept = {"store_url": running.store_url, "store": running.store, "bus_directory": running.bus_directory}
    return replace(settings, server=server, **kept)


def _store_problems(settings: Settings) -> list[InputProblem]:
    """What is wrong with the address or the encryption key of a store, without asking it."""
    if settings.store_url.startswith("memory:"):
        return []
    try:
        durable_store(settings.store_url, settings.store, time.time)
    except StoreError as error:
        remedy = "fix url or encryption_key in [store], or THOUGHTLINE_STORE, THOUGHTLINE_ENCRYPTION_KEY"
        return [InputProblem("settings", "store", str(error), remedy)]
    return []


def _worker_problems(settings: Settings) -> list[InputProblem]:
    """Workers talk to each other over Unix sockets, which Windows has not."""
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
    """Keys that nobody knows yet may be there: until they are known, nobody gets in without one."""
    are_required = keys.would_be_required(settings.server.require_client_keys) is not False
    error = check_exposure(settings, has_client_keys=are_required)
    return list(error.problems) if error is not None else []
