"""Answers on their way to the client, and clients that leave: our own server reports it at once, others when asked."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from thoughtline.engine import capture as capture_module
from thoughtline.engine.capture import captured_at
from thoughtline.gateway.in_flight import GATEWAY, InFlight
from thoughtline.gateway.relay import HAS_LEFT, LONG_ANSWER_BYTES, ON_DISCONNECT, Disconnect
from thoughtline.gateway.saving import Abandoned
from thoughtline.replay.keys import Spot
from thoughtline.values.items import Text
from thoughtline.values.records import Record
from thoughtline.values.turns import Reply


async def _gone() -> Any:
    return {"type": "http.disconnect"}


def _served(scope: dict[str, Any], leaves: bool) -> Disconnect:
    """An exchange that waits for an answer; without one it is cancelled as soon as its client has left."""
    disconnect = Disconnect(60.0, Abandoned(), InFlight())

    async def serve() -> None:
        disconnect.listen(scope, _gone, GATEWAY)
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
def test_a_client_that_leaves_is_not_waited_for(scope: dict[str, Any], leaves: bool) -> None:
    """However the gateway learns it."""
    disconnect = _served(scope, leaves)
    assert disconnect.has_left
    assert disconnect.is_over
    assert not scope.get(ON_DISCONNECT)


def test_the_record_of_a_long_answer_is_made_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It blocks no other request, and is found anyway."""
    threads: dict[int, str] = {}

    def capture(spot: Spot, reply: Reply, *more: Any, **named: Any) -> tuple[Record, ...]:
        (text,) = (item.text for item in reply.candidates[0].turn.items if isinstance(item, Text))
        threads[len(text)] = threading.current_thread().name
        return captured_at(spot, reply, *more, **named)

    async def answer(got: Got, out: Out) -> None:
        words = "a" * (LONG_ANSWER_BYTES if b"much" in got.body else 3)
        message = {"role": "assistant", "content": words, "reasoning_content": "thought"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        await out.whole(200, json.dumps({"id": "1", "model": "m", "choices": [choice]}).encode())

    monkeypatch.setattr(capture_module, "captured_at", capture)
    with upstream(answer) as up, running({"deepseek": up.url}) as gateway:
        for words in ("much", "little"):
            messages = [{"role": "user", "content": words}]
            body = {"model": "deepseek-v4-pro", "messages": messages}
            response = HTTP.post(f"{gateway.url}/deepseek/chat/completions", json=body)
            assert response.status_code == 200
    assert len(threads) == 2
    assert threads[LONG_ANSWER_BYTES].startswith("thoughtline-work")
    assert not threads[3].startswith("thoughtline-work")
