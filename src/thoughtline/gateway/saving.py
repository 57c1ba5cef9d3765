"""How long the end of a turn waits until it is saved, the saves that took longer, and answers read only for their
records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from thoughtline.gateway.relay import Disconnect

RECENT_SECONDS = 60.0
"""How long after the last late save the store still counts as slow."""

MAX_ABANDONED_BYTES = 64 * 2**20
"""Memory for all answers whose clients have disconnected. A model's longest are a few hundred kilobytes."""


class LateSaves:
    """Late saves of one process since its start."""

    def __init__(self) -> None:
        self._last_at: float | None = None
        self._saving: set[asyncio.Task[None]] = set()
        self.total = self.under_way = 0

    def begin(self) -> None:
        """Count a save that was not done in time."""
        self.total += 1
        self.under_way += 1
        self._last_at = time.monotonic()

    def follow(self, saving: asyncio.Task[None]) -> None:
        """Count a save that continues in the background, until it ends."""
        self.begin()
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        saving.add_done_callback(lambda _: self.end())

    def end(self) -> None:
        """It has ended, successfully or not."""
        self.under_way -= 1

    @property
    def are_recent(self) -> bool:
        return self._last_at is not None and (self.under_way > 0 or time.monotonic() - self._last_at < RECENT_SECONDS)


class Hold(Struct, frozen=True):
    """How long the end of a turn waits for its record, and where later saves are counted.

    `is_brief`: a save ends before anything else could be done.
    """

    seconds: float
    late: LateSaves
    is_brief: bool = False

    async def wait_for(self, save: Coroutine[Any, Any, None]) -> None:
        """Wait for a save, for `seconds` at most."""
        saving = asyncio.create_task(save)
        await asyncio.wait([saving], timeout=self.seconds)
        if saving.done():
            saving.result()
        else:
            self.late.follow(saving)


class Abandoned:
    """Answers that are read on without a client. The newest is the first to be given up."""

    def __init__(self) -> None:
        self._held: dict[Disconnect, int] = {}
        self._bytes = 0

    def hold(self, one: Disconnect, size: int) -> None:
        """Note how many bytes of an answer are kept now."""
        self._bytes += size - self._held.get(one, 0)
        self._held[one] = size
        while self._bytes > MAX_ABANDONED_BYTES:
            newest = next(reversed(self._held))
            self.release(newest)
            newest.give_up()

    def release(self, one: Disconnect) -> None:
        self._bytes -= self._held.pop(one, 0)
