"""Where a store of each kind lives in a test, its clock, and the turns that are saved in it."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import redis
from redis.asyncio import Redis

from thoughtline.stores import LayeredStore, MemoryStore, Store, StoreSettings, durable_store
from thoughtline.stores.memory import MemoryIndex
from thoughtline.values.items import ReasoningText, Text, ToolCall
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import Provenance

SETTINGS = StoreSettings(clean_seconds=3600, timeout_seconds=10)
START = 1_800_000_000.0
TRUST = SETTINGS.trust_seconds
TAKEN_SECONDS = 600
"""Longer than any test: leftovers of a killed test may be reused then."""


class Clock:
    """A clock that only moves when a test moves it, forward or back."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Place:
    """A kind of store and its address. Each `open` acts as another process on the same place."""

    def __init__(self, kind: str, url: str) -> None:
        self.is_layered = kind.startswith("layered")
        self.url = url
        self.clock = Clock()
        self._opened: list[Store] = []

    async def open(self, settings: StoreSettings = SETTINGS) -> Store:
        store = self.make(settings)
        await store.open()
        self._opened.append(store)
        return store

    def make(self, settings: StoreSettings = SETTINGS) -> Store:
        if self.url.startswith("memory:"):
            return MemoryStore(settings, self.clock)
        durable = durable_store(self.url, settings, self.clock)
        return LayeredStore(durable, settings, self.clock) if self.is_layered else durable

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


async def wipe(url: str) -> None:
    """Empty a database."""
    if url.startswith("redis"):
        client = Redis.from_url(url.replace("redis-cluster:", "redis:"))
        await client.flushdb()
        await client.aclose()
    elif url.startswith("postgres"):
        connection = await asyncpg.connect(url)
        await connection.execute("DROP SCHEMA IF EXISTS thoughtline, thoughtline_words CASCADE")
        await connection.close()


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """A database that no other test on this server uses, while a test runs."""
    with _own_redis(url) if url.startswith("redis") else _own_postgres(url) as own:
        yield own


@contextmanager
def _own_redis(url: str) -> Iterator[str]:
    """One of its numbered databases, 16 by default; 0 is for the stores' own tests."""
    numbered = (urlsplit(url)._replace(path=f"/{number}").geturl() for number in range(1, 16))
    own, client = next(
        (each, client)
        for each in numbered
        if (client := redis.Redis.from_url(each)).set("taken", "by a test", nx=True, ex=TAKEN_SECONDS)
    )
    yield own
    client.flushdb()
    client.close()


@contextmanager
def _own_postgres(url: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    asyncio.run(_say(url, f"CREATE DATABASE {name}"))
    yield urlsplit(url)._replace(path=f"/{name}").geturl()
    asyncio.run(_say(url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _say(url: str, command: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(command)
    await connection.close()


@asynccontextmanager
async def place(kind: str, url: str) -> AsyncIterator[Place]:
    await wipe(url)
    made = Place(kind, url)
    try:
        yield made
    finally:
        await made.close()


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'deep' / 'thoughts.db'}"


def arrivals(url: str) -> int:
    """Saves in the files next to a SQLite database."""
    database = Path(url.removeprefix("sqlite:///"))
    count = 0
    for file in database.parent.glob(f"{database.name}-arrivals-*"):
        if not file.name.endswith(("-wal", "-shm")):
            connection = sqlite3.connect(file)
            count += int(connection.execute("SELECT count(*) FROM arrivals").fetchone()[0])
            connection.close()
    return count


def turn(
    number: int,
    *,
    at: float = START,
    tenant: str = "tenant",
    session: str | None = "session",
    provider: str = "deepseek",
    model: str = "deepseek-v4",
    shared: tuple[str, ...] = (),
    thought: str = "a thought",
) -> Record:
    """A turn with its own lineage, one call, and keys that it shares with others."""
    keys = (f"lineage-v1:{number}", *(f"visible-v1:{name}" for name in shared))
    return Record(
        RecordId(f"record-{number}"),
        Provenance(tenant, provider, "host", "account", model, model, "openai_chat", "deepseek", session=session),
        (ReasoningText(f"{thought} {number}"), Text("hello"), ToolCall("look", "{}", f"call_{number}")),
        tuple(Key(key) for key in keys),
        at,
    )


def room_for(*records: Record) -> int:
    """Memory that these records need, in bytes."""
    index = MemoryIndex(2**30, 1.0)
    for record in records:
        index.put(record, 0.0)
    return index.bytes


def lineage(number: int) -> Key:
    return Key(f"lineage-v1:{number}")


def visible(name: str) -> Key:
    return Key(f"visible-v1:{name}")


async def found(store: Store, number: int, tenant: str = "tenant") -> tuple[Record, ...]:
    return (await store.find(tenant, [lineage(number)]))[lineage(number)]


async def until_settled(store: LayeredStore) -> None:
    """Returns when the durable store works and nothing waits to be written."""
    while not store.is_settled:
        await asyncio.sleep(0.001)
