"""Whoever leaves is heard: from our own server at once, from others by asking."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from thoughtline.gateway.relay import HAS_LEFT, ON_DISCONNECT, Disconnect
from thoughtline.gateway.saving import Abandoned


async def _gone() -> Any:
    return {"type": "http.disconnect"}


def _served(scope: dict[str, Any], leaves: bool) -> Disconnect:
    """An exchange that waits for an answer; without one it is cancelled as soon as its client has left."""
    disconnect = Disconnect(60.0, Abandoned())

    async def serve() -> None:
        disconnect.listen(scope, _gone)
        if leaves:
            scope[ON_DISCONNECT]()
        await asyncio.get_running_loop().create_future()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(serve())
    disconnect.stop()
    return disconnect


@pytest.mark.parametrize(
    ("scope", "leaves"),
    [({ON_DISCONNECT: None}, True), ({ON_DISCONNECT: HAS_LEFT}, False), ({}, False)],
    ids=["told", "left before", "another server"],
)
def test_who_leaves_is_not_waited_for(scope: dict[str, Any], leaves: bool) -> None:
    """Whichever way that is heard."""
    disconnect = _served(scope, leaves)
    assert disconnect.has_left
    assert disconnect.is_over
    assert not scope.get(ON_DISCONNECT)
