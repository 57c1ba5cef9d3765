"""How processes on a shared store communicate: one suite over Redis, a cluster and PostgreSQL, with real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.stores.places import own_database
from tests.stores.servers import Postgres, Valkey
from thoughtline.stores import Channel, StoreSettings, channel_at, is_shared
from thoughtline.values.errors import StoreUnavailable

SETTINGS = StoreSettings(timeout_seconds=10)


@pytest.fixture(params=("redis", "cluster", "postgres"))
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Channel, Channel]]:
    url = request.getfixturevalue(f"{request.param}_url")
    one, other = channel_at(url, SETTINGS), channel_at(url, SETTINGS)
    for channel in (one, other):
        await channel.open()
        await channel.follow("news")
    yield one, other
    await one.close()
    await other.close()


async def received(channel: Channel) -> tuple[str, bytes]:
    async with asyncio.timeout(30):
        return await channel.next()


async def test_all_receive_in_order(pair: tuple[Channel, Channel]) -> None:
    """From any sender, including itself; any bytes, up to the maximum size of a message."""
    one, _ = pair
    words = [bytes(range(256)), b"", b"x" * one.max_bytes]
    for word in words:
        await one.publish("news", word)
    for channel in pair:
        assert [await received(channel) for _ in words] == [("news", word) for word in words]


async def test_only_what_is_followed(pair: tuple[Channel, Channel]) -> None:
    """Topics come and go while others are followed."""
    one, other = pair
    await one.publish("rows", b"before")
    await other.follow("rows")
    await one.publish("rows", b"now")
    assert await received(other) == ("rows", b"now")
    await other.leave("rows")
    await one.publish("rows", b"after")
    await one.publish("news", b"last")
    assert await received(other) == ("news", b"last")
    assert await received(one) == ("news", b"last")


async def test_opened_again(pair: tuple[Channel, Channel]) -> None:
    """A new connection, which follows no topic yet."""
    one, other = pair
    await one.open()
    await one.follow("rows")
    await other.publish("news", b"not this")
    await other.publish("rows", b"this")
    assert await received(one) == ("rows", b"this")


@pytest.mark.parametrize("make", [Valkey, Postgres])
async def test_a_server_that_goes(make: type[Valkey] | type[Postgres]) -> None:
    """Receivers and senders get an error; when the server is back, so is the channel."""
    server = make()
    channel = channel_at(server.url, SETTINGS)
    await channel.open()
    await channel.follow("news")
    waiting = asyncio.ensure_future(received(channel))
    await channel.publish("news", b"first")
    assert await waiting == ("news", b"first")
    waiting = asyncio.ensure_future(received(channel))
    await asyncio.sleep(0)
    await asyncio.to_thread(server.stop)
    with pytest.raises(StoreUnavailable):
        await waiting
    with pytest.raises(StoreUnavailable):
        await channel.publish("news", b"to nobody")
    with pytest.raises(StoreUnavailable):
        await channel.open()
    await asyncio.to_thread(server.start)
    await channel.open()
    await channel.follow("news")
    await channel.publish("news", b"again")
    assert await received(channel) == ("news", b"again")
    await channel.close()
    server.remove()


async def test_databases_are_apart(redis_url: str) -> None:
    """Two numbers of one Redis server are separate, though the server's channels have no numbers."""
    with own_database(redis_url) as first, own_database(redis_url) as second:
        one, other = channel_at(first, SETTINGS), channel_at(second, SETTINGS)
        for channel in (one, other):
            await channel.open()
            await channel.follow("news")
        await one.publish("news", b"one")
        await other.publish("news", b"other")
        assert (await received(one), await received(other)) == (("news", b"one"), ("news", b"other"))
        await one.close()
        await other.close()


def test_which_are_shared() -> None:
    """Between machines, not only between processes of one."""
    schemes = ("redis", "rediss", "redis-cluster", "postgresql", "postgres")
    assert all(is_shared(f"{scheme}://a") for scheme in schemes)
    assert not any(map(is_shared, ("sqlite:///a", "memory://")))
