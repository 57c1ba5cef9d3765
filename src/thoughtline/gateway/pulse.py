"""Keep-alive signs for a client while the upstream sends nothing: clients' watchdogs end a silent stream.

Claude Code ends one after 180 s, Codex after 300 s. A provider that does not stream its thinking, or queues a request,
may take longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from thoughtline.gateway.asgi import Message, Send


class PulsedSend:
    """Sends to a client, and calls `beat` whenever nothing was sent for `seconds`.

    One timer serves many messages, because most streams are never silent that long.
    """

    def __init__(self, send: Send, seconds: float, beat: Callable[[Send], Awaitable[None]]) -> None:
        self._send = send
        self._seconds = seconds
        self._beat = beat
        self._is_sending = False
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._look)
        self._beating: asyncio.Task[None] | None = None

    async def __call__(self, message: Message) -> None:
        self._is_sending = True
        try:
            await self._send(message)
        finally:
            self._is_sending = False
            self._sent_at = self._loop.time()

    def stop(self) -> None:
        """Stop: the answer is over."""
        self._timer.cancel()
        if self._beating is not None:
            self._beating.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        is_silent = self._sent_at + self._seconds <= now
        is_idle = not self._is_sending and (self._beating is None or self._beating.done())
        if is_silent and is_idle:  # a client that reads nothing needs no sign
            self._beating = self._loop.create_task(self._run())
        self._timer = self._loop.call_at(
            now + self._seconds if is_silent else self._sent_at + self._seconds, self._look
        )

    async def _run(self) -> None:
        await self._beat(self)
