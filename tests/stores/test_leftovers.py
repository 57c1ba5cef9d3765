"""Deleted records leave nothing behind: no pointer, no count, no name."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
from redis.asyncio import Redis

from tests.stores.places import SETTINGS, START, Place, arrivals, turn
from thoughtline.stores import Filter, Store

TABLES = ("records", "lookups", "scopes")


async def left(place: Place) -> int:
    """The number of rows or keys, without those that belong to no record."""
    if place.url.startswith("sqlite"):
        connection = sqlite3.connect(place.url.removeprefix("sqlite:///"))
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]
        connection.close()
        return int(sum(counts)) + arrivals(place.url)
    if place.url.startswith("postgres"):
        server = await asyncpg.connect(place.url)
        counts = [await server.fetchval(f"SELECT count(*) FROM thoughtline.{table}") for table in TABLES]
        await server.close()
        return sum(counts)
    client = Redis.from_url(place.url.replace("redis-cluster:", "redis:"))
    names = [bytes(name) for name in await client.keys("thoughtline:{*")]  # type: ignore[arg-type]  # the client's stubs say str
    await client.aclose()
    return len([name for name in names if name[-2:] not in (b":d", b":a", b":g")])


async def by_deletion(store: Store, place: Place) -> None:
    await store.delete(Filter())
    await store.clean()
    await store.save([turn(99)])
    place.clock.advance(SETTINGS.ttl_seconds + 1)
    await store.clean()


async def by_expiry(store: Store, place: Place) -> None:
    place.clock.advance(SETTINGS.ttl_seconds + 1)
    await store.clean()


@pytest.mark.parametrize("go", [by_deletion, by_expiry])
async def test_nothing_is_left(durable: Place, go: Callable[[Store, Place], Awaitable[None]]) -> None:
    """After a deletion, and after expiry."""
    store = await durable.open()
    for number in range(450):
        await store.save([turn(number, at=START + number / 1000, session=f"s{number % 7}", shared=("ok",))])
    await store.clean()  # SQLite has put them into their places then
    assert await left(durable) > 450
    await go(store, durable)
    assert await left(durable) == 0


async def test_deletions_and_notes_are_forgotten_in_time(durable: Place) -> None:
    """After a day, a deletion no longer applies."""
    store = await durable.open()
    durable.clock.advance(1)
    await store.delete(Filter())
    await store.delete(Filter(tenant="tenant"))
    durable.clock.advance(2 * 86400)
    await store.clean()
    await store.save([turn(1)])
    assert (await store.stats()).disk_entries == 1
