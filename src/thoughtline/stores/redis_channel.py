"""What processes tell each other through a Redis or Valkey server: its publish and subscribe, which keeps nothing.

In a cluster a message reaches every node, so one connection to the node of the address is enough.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from thoughtline.stores.redis import FAILURES, unavailable
from thoughtline.stores.settings import StoreSettings

WAIT_SECONDS = 60.0


class RedisChannel:
    """Topics carry the number of the database: what is published is heard in all of them."""

    max_bytes = 48 * 2**10

    def __init__(self, url: str, settings: StoreSettings) -> None:
        timeout = settings.timeout_seconds
        options: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        options["retry"] = Retry(NoBackoff(), 0)  # what was missed meanwhile must be asked for again
        self._client = Redis.from_url(url.replace("redis-cluster:", "redis:", 1), **options)
        self._prefix = f"thoughtline:{self._client.connection_pool.connection_kwargs.get('db') or 0}:"
        self._heard: PubSub | None = None

    async def open(self) -> None:
        await self.close()
        heard = self._client.pubsub(ignore_subscribe_messages=True)
        try:
            await heard.connect()  # type: ignore[no-untyped-call]  # the driver has no types there
        except FAILURES as error:
            raise unavailable(error) from error
        self._heard = heard

    async def follow(self, topic: str) -> None:
        assert self._heard is not None
        try:
            await self._heard.subscribe(self._prefix + topic)
        except FAILURES as error:
            raise unavailable(error) from error

    async def leave(self, topic: str) -> None:
        assert self._heard is not None
        try:
            await self._heard.unsubscribe(self._prefix + topic)
        except FAILURES as error:
            raise unavailable(error) from error

    async def publish(self, topic: str, message: bytes) -> None:
        try:
            await self._client.publish(self._prefix + topic, message)
        except FAILURES as error:
            raise unavailable(error) from error

    async def next(self) -> tuple[str, bytes]:
        assert self._heard is not None
        while True:
            try:
                message = await self._heard.get_message(timeout=WAIT_SECONDS)
            except FAILURES as error:
                raise unavailable(error) from error
            if message is not None:
                return message["channel"].decode().removeprefix(self._prefix), message["data"]

    async def close(self) -> None:
        heard, self._heard = self._heard, None
        with suppress(*FAILURES):
            if heard is not None:
                await heard.aclose()  # type: ignore[no-untyped-call]  # the driver has no types there
            await self._client.aclose()
