"""Where records are kept: one protocol, four stores.

    Record ─ save ─▶ LayeredStore ─▶ MemoryStore     in front, 2,000 entries
                                 └─▶ SqliteStore | RedisStore | PostgresStore     durable, shared
    keys ─ find ──▶  memory first, then the durable store ─▶ Records, newest first

A `Row` is a record as the durable stores write it: digests that hold the tenant, counts, and its `Packer`'s bytes
(compressed, and encrypted where there is a key). A `Deletion` is remembered, so that no slow writer undoes it.
`Migration`s bring an older layout up to date.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import parse_qs

from thoughtline.stores.base import (
    Channel,
    Clock,
    Deletion,
    Entry,
    Filter,
    Found,
    Generation,
    Note,
    Page,
    Saved,
    SessionSummary,
    Share,
    Stats,
    Store,
)
from thoughtline.stores.layered import LayeredStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.packing import Packer
from thoughtline.stores.settings import StoreSettings, decode_duration, decode_size, default_url, keys_from_environment
from thoughtline.values.errors import StoreRefused

if TYPE_CHECKING:
    from thoughtline.stores.sqlite import Synchronous

__all__ = [
    "Channel",
    "Clock",
    "Deletion",
    "Entry",
    "Filter",
    "Found",
    "Generation",
    "LayeredStore",
    "MemoryStore",
    "Note",
    "Page",
    "Saved",
    "SessionSummary",
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

Maker: TypeAlias = Callable[[str, StoreSettings, Clock, Packer], Store]
ChannelMaker: TypeAlias = Callable[[str, StoreSettings], Channel]


def sqlite_folder(url: str) -> Path | None:
    """Where the file of a SQLite address is to be; None for other addresses."""
    path = url.removeprefix("sqlite:///").partition("?")[0]
    return Path(path).absolute().parent if url.startswith("sqlite:///") and path else None


def _sqlite(url: str, settings: StoreSettings, clock: Clock, packer: Packer) -> Store:
    path, _, query = url.removeprefix("sqlite://").partition("?")
    options = parse_qs(query)
    synchronous = options.pop("synchronous", ["normal"])[0]
    if len(path) < 2 or not path.startswith("/") or options or synchronous not in ("normal", "full"):
        raise StoreRefused("a SQLite address is sqlite:///path, or sqlite:///path?synchronous=full")
    module = import_module("thoughtline.stores.sqlite")
    return cast(
        Store, module.SqliteStore(Path(path[1:]).absolute(), settings, clock, packer, cast("Synchronous", synchronous))
    )


def _redis(url: str, settings: StoreSettings, clock: Clock, packer: Packer) -> Store:
    return cast(Store, _driver("redis", "redis").RedisStore.at(url, settings, clock, packer))


def _postgres(url: str, settings: StoreSettings, clock: Clock, packer: Packer) -> Store:
    return cast(Store, _driver("postgres", "asyncpg").PostgresStore(url, settings, clock, packer))


def _redis_channel(url: str, settings: StoreSettings) -> Channel:
    module = import_module("thoughtline.stores.redis_channel")
    return cast(Channel, module.RedisChannel(url, settings))


def _postgres_channel(url: str, settings: StoreSettings) -> Channel:
    module = import_module("thoughtline.stores.postgres_channel")
    return cast(Channel, module.PostgresChannel(url, settings))


DURABLE: dict[str, Maker] = {
    "sqlite": _sqlite,
    "redis": _redis,
    "rediss": _redis,
    "redis-cluster": _redis,
    "postgresql": _postgres,
    "postgres": _postgres,
}
"""Durable stores by the scheme of their address."""

CHANNELS: dict[str, ChannelMaker] = {
    "redis": _redis_channel,
    "rediss": _redis_channel,
    "redis-cluster": _redis_channel,
    "postgresql": _postgres_channel,
    "postgres": _postgres_channel,
}
"""Those that processes of several machines share, and by which they can talk."""


def is_in_memory(url: str) -> bool:
    """Whether a store at this address keeps nothing beyond its process."""
    return url.startswith("memory:")


def is_shared(url: str) -> bool:
    """Whether processes of several machines can share the store at this address."""
    return url.partition(":")[0] in CHANNELS


def channel_at(url: str, settings: StoreSettings) -> Channel:
    """How processes that share the store at this address talk, not yet open."""
    return CHANNELS[url.partition(":")[0]](url, settings)


async def open_store(url: str, settings: StoreSettings | None = None, clock: Clock = time.time) -> Store:
    """The store at an address: memory alone, or memory in front of a durable store.

    Raises `StoreRefused`, `NewerStore` or `WrongKey` where a person has to change something. A durable store that is
    only down is no error: memory goes on alone, and the durable store is opened when it is back.
    """
    settings = settings or StoreSettings()
    if is_in_memory(url):
        memory = MemoryStore(settings, clock)
        await memory.open()
        return memory
    store = LayeredStore(durable_store(url, settings, clock), settings, clock)
    await store.open()
    return store


def durable_store(url: str, settings: StoreSettings, clock: Clock) -> Store:
    """The durable store at an address, not yet open and with nothing in front."""
    scheme = url.partition(":")[0]
    if scheme not in DURABLE:
        known = ", ".join(("memory", *DURABLE))
        raise StoreRefused(f"a store's address begins with one of {known}, not {scheme[:20]!r}")
    packer = Packer(settings.encryption_key, settings.previous_encryption_key)
    return DURABLE[scheme](url, settings, clock, packer)


def _driver(name: str, package: str) -> ModuleType:
    """A store's module, which imports its driver. The extra has the store's name."""
    try:
        return import_module(f"thoughtline.stores.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise StoreRefused(f"{name} needs its driver: pip install 'thoughtline[{name}]'") from None
