"""Live events: requests that begin, stream and end, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from thoughtline.gateway.admin.requests import AdminRequest, Stream
from thoughtline.gateway.journal import Journal
from thoughtline.values.errors import Declined

KEEP_ALIVE_SECONDS = 15.0
MAX_LISTENERS = 64


def require_room(journal: Journal) -> None:
    """Raise if there are so many listeners that each line costs too much."""
    if journal.listeners >= MAX_LISTENERS:
        raise Declined(
            429, "too_many_listeners", f"There are already {MAX_LISTENERS} listeners.", "Close another page."
        )


async def listened(request: AdminRequest) -> Stream:
    require_room(request.state.journal)
    return Stream(events(request.state.journal), "text/event-stream")


async def events(journal: Journal, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> AsyncGenerator[bytes, None]:
    """Yield events named by their phase, `lost` with the number that a slow listener missed, and comments when idle."""
    listener = journal.listen()
    try:
        yield b": listening\n\n"
        while True:
            try:
                async with asyncio.timeout(keep_alive_seconds):
                    row = await listener.next()
            except TimeoutError:
                yield b": nothing\n\n"
                continue
            if lost := listener.take_lost():
                yield _event(b"lost", b'{"count":%d}' % lost)
            yield _event(row.phase.encode(), msgspec.json.encode(row))
    finally:
        journal.leave(listener)


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, data)
