"""What processes tell each other through a PostgreSQL database: `LISTEN` and `NOTIFY`, which keep nothing.

One connection each, beside the pool. A pooler that gives connections out by the transaction can't carry it.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from typing import Any

import asyncpg

from thoughtline.stores.postgres import FAILURES, unavailable
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.errors import StoreUnavailable

MAX_WAITING = 4096
"""Messages that were heard and not yet read."""

_PREFIX = "thoughtline_"


class PostgresChannel:
    """Messages are text of less than 8,000 bytes: base64 of three quarters of that."""

    max_bytes = 5800

    def __init__(self, url: str, settings: StoreSettings) -> None:
        self._url, self._timeout = url, settings.timeout_seconds
        self._connection: asyncpg.Connection | None = None
        self._heard: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        await self.close()
        self._heard = asyncio.Queue(MAX_WAITING)
        try:
            self._connection = await asyncpg.connect(self._url, timeout=self._timeout, command_timeout=self._timeout)
        except FAILURES as error:
            raise unavailable(error) from error
        self._connection.add_termination_listener(self._cut)

    async def follow(self, topic: str) -> None:
        await self._say("add_listener", _PREFIX + topic, self._hear)

    async def leave(self, topic: str) -> None:
        await self._say("remove_listener", _PREFIX + topic, self._hear)

    async def publish(self, topic: str, message: bytes) -> None:
        await self._say("execute", "SELECT pg_notify($1, $2)", _PREFIX + topic, b64encode(message).decode())

    async def next(self) -> tuple[str, bytes]:
        heard = await self._heard.get()
        if heard is None:
            raise StoreUnavailable("postgres: the connection was cut")
        return heard

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._cut)
            connection.terminate()

    async def _say(self, method: str, *values: object) -> None:
        """One at a time: a connection does one thing."""
        if self._connection is None:
            raise StoreUnavailable("postgres: not open")
        try:
            async with self._turn:
                await getattr(self._connection, method)(*values)
        except FAILURES as error:
            raise unavailable(error) from error

    def _hear(self, connection: Any, process: int, channel: str, payload: str) -> None:
        if self._heard.full():
            self._cut(connection)  # who comes back asks for what it has missed
            return
        try:
            self._heard.put_nowait((channel.removeprefix(_PREFIX), b64decode(payload)))
        except ValueError:
            return  # somebody else's words

    def _cut(self, connection: Any) -> None:
        while self._heard.full():
            self._heard.get_nowait()
        self._heard.put_nowait(None)
