"""Whether the client is still there. One that has left may still be served for a while: for its record's sake."""

from __future__ import annotations

import asyncio
from typing import Any

from thoughtline.gateway.asgi import Receive

LISTEN_AFTER_SECONDS = 0.05
"""An exchange that is over by then has cost a timer (0.7 µs) instead of a task that is cancelled (5 µs). Nothing is
missed: the server tells whoever asks later, too, that a client has left."""

DRAIN_SECONDS = 120.0
"""How long an exchange may go on without its client. A model's longest answers take a minute or two."""


class Departure:
    """Listens for the client's leaving, and ends the task that serves it when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._listening: asyncio.Task[None] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.has_left = False
        self.is_over = False

    def listen(self, receive: Receive) -> None:
        """From when the whole request was read: all that can still be heard of the client is that it leaves."""
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(LISTEN_AFTER_SECONDS, self._begin, receive, task)

    def _begin(self, receive: Receive, serving: asyncio.Task[Any]) -> None:
        self._listening = asyncio.ensure_future(self._listen(receive, serving))

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._listening is not None:
            self._listening.cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    async def _listen(self, receive: Receive, serving: asyncio.Task[Any]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._deadline = asyncio.get_running_loop().call_later(self._seconds, self._end, serving)

    def _end(self, serving: asyncio.Task[Any]) -> None:
        """For who waits, and for who is between two waits: a cancellation can be lost in what is awaited."""
        self.is_over = True
        serving.cancel()
