"""Where records are kept: one protocol, four stores.

    Record ─ save ─▶ LayeredStore ─▶ MemoryStore     in front, 2,000 entries
                                └─▶ SqliteStore | RedisStore | PostgresStore     durable, shared
    keys ─ find ──▶  memory first, then the durable store ─▶ Records, newest first

A `Row` is a record in the form that durable stores write: digests that include the tenant, counts, and the bytes from
its `Packer` (compressed, and encrypted if there is a key). A `Deletion` is kept for a while, so that no slow writer
undoes it. `Migration`s update an older layout.
"""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from thoughtline.stores.base import (
    MAIN,
    Channel,
    Clock,
    Entry,
    Filter,
    Found,
    Note,
    Page,
    Saved,
    Share,
    Stats,
    Store,
)
from thoughtline.stores.layered import LayeredStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.packing import Packer
from thoughtline.stores.settings import StoreSettings, decode_duration, decode_size, default_url, keys_from_environment
from thoughtline.values.errors import StoreRefused

__all__ = [
    "Channel",
    "Clock",
    "Entry",
    "Filter",
    "Found",
    "LayeredStore",
    "MemoryStore",
    "Note",
    "Page",
    "Saved",
    "Share",
    "Stats",
    "Store",
    "StoreSettings",
    "channel_at",
    "decode_duration",
    "decode_size",
    "default_url",
    "durable_store",
    "is_in_memory",
    "is_shared",
    "keys_from_environment",
    "open_store",
    "sqlite_folder",
]


class DurableEngine(NamedTuple):
    """The module of a durable store, which imports its driver; its store class; and its channel class, if processes on
    several machines can share it."""

    module: str
    driver: str
    store: str
    channel: str = ""


_REDIS = DurableEngine("redis", "redis", "RedisStore", "RedisChannel")
_POSTGRES = DurableEngine("postgres", "asyncpg", "PostgresStore", "PostgresChannel")

DURABLE = {
    "sqlite": DurableEngine("sqlite", "sqlite3", "SqliteStore"),
    "redis": _REDIS,
    "rediss": _REDIS,
    "redis-cluster": _REDIS,
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}
"""Durable stores by the scheme of their address."""


def sqlite_folder(url: str) -> Path | None:
    """Return the folder for the file of a SQLite address; None for other addresses."""
    path = url.removeprefix("sqlite:///").partition("?")[0]
    return Path(path).absolute().parent if url.startswith("sqlite:///") and path else None


def is_in_memory(url: str) -> bool:
    """Whether a store at this address keeps data only in its own process."""
    return url.startswith("memory:")


def is_shared(url: str) -> bool:
    """Whether processes of several machines can share the store at this address."""
    scheme = url.partition(":")[0]
    return scheme in DURABLE and DURABLE[scheme].channel != ""


def channel_at(url: str, settings: StoreSettings) -> Channel:
    """Return the channel between processes that share the store at this address. It is not open yet."""
    engine = DURABLE[url.partition(":")[0]]
    return cast(Channel, _named(engine, engine.channel)(url, settings))


async def open_store(url: str, settings: StoreSettings | None = None, clock: Clock = time.time) -> Store:
    """Open the store at an address: memory alone, or memory in front of a durable store.

    Raises `StoreRefused`, `NewerStore` or `WrongKey` if a person has to change something. A durable store that is only
    down is not an error: memory works alone until the durable store is back and can be opened.
    """
    settings = settings or StoreSettings()
    store: Store = MemoryStore(settings, clock)
    if not is_in_memory(url):
        store = LayeredStore(durable_store(url, settings, clock), settings, clock)
    await store.open()
    return store


def durable_store(url: str, settings: StoreSettings, clock: Clock, name: str = MAIN) -> Store:
    """Return the durable store at an address, not yet open and without memory in front.

    A store of another name stands beside that of the turns.
    """
    scheme = url.partition(":")[0]
    if scheme not in DURABLE:
        known = ", ".join(("memory", *DURABLE))
        raise StoreRefused(f"a store's address begins with one of {known}, not {scheme[:20]!r}")
    packer = Packer(settings.encryption_key, settings.previous_encryption_key)
    return cast(Store, _named(DURABLE[scheme], DURABLE[scheme].store)(url, settings, clock, packer, name))


def _named(engine: DurableEngine, name: str) -> Any:
    """Import a class from an engine's module. The extra has the same name as the module."""
    try:
        return getattr(import_module(f"thoughtline.stores.{engine.module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != engine.driver:
            raise
        extra = f"needs its driver: pip install 'thoughtline[{engine.module}]'"
        why = extra if engine.driver != "sqlite3" else "is not part of this Python: use one that has sqlite3"
        raise StoreRefused(f"{engine.module} {why}") from None
