"""Everything that an exchange held is freed at its end: requests must not pile up until a garbage collection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.commands.doctor.scripted_servers import closed_port
from tests.gateway.gateways import Running, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from tests.sim.served_simulators import served
from thoughtline.engine.capture import StreamWatch, Watch
from thoughtline.gateway.answer_stages import Down
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.proxy import Exchange
from thoughtline.gateway.relay import Relay
from thoughtline.gateway.translating import Translate

CHAT = "/deepseek/v1/chat/completions"
GEMINI = "/deepseek/v1beta/models/deepseek-v4-pro"
SAID = "Hello.\nscript:\nthink: A greeting.\nsay: Hello to you."
OURS = (Exchange, Incoming, Attempt, Down, Relay, Translate, Watch, StreamWatch)

Ask = Callable[[Running], object]


def chat(gateway: Running, *, is_streaming: bool = False) -> int:
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": SAID}], "stream": is_streaming}
    return HTTP.post(gateway.url + CHAT, json=body).status_code


def gemini(gateway: Running, action: str) -> int:
    body = {"contents": [{"role": "user", "parts": [{"text": SAID}]}]}
    return HTTP.post(f"{gateway.url}{GEMINI}:{action}", json=body).status_code


def leave(gateway: Running) -> int:
    """A client that disconnects in the middle of a stream."""
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "slowly"}], "stream": True}
    with httpx.Client() as client, client.stream("POST", gateway.url + CHAT, json=body) as response:
        next(response.iter_raw())
        return response.status_code


WAYS: dict[str, tuple[Ask, int]] = {
    "whole": (chat, 200),
    "streamed": (lambda gateway: chat(gateway, is_streaming=True), 200),
    "translated": (lambda gateway: gemini(gateway, "generateContent"), 200),
    "translated and streamed": (lambda gateway: gemini(gateway, "streamGenerateContent?alt=sse"), 200),
    "tokens that are estimated": (lambda gateway: gemini(gateway, "countTokens"), 200),
    "refused by the provider": (
        lambda gateway: HTTP.post(gateway.url + CHAT, json={"model": "deepseek-v4-pro", "messages": 1}).status_code,
        400,
    ),
    "no JSON": (lambda gateway: HTTP.post(gateway.url + CHAT, content=b"{").status_code, 400),
    "passed through": (lambda gateway: HTTP.get(f"{gateway.url}/deepseek/other").status_code, 404),
    "nobody there": (lambda gateway: HTTP.post(f"{gateway.url}/kimi/v1/chat/completions", json={}).status_code, 502),
}


@contextlib.contextmanager
def uncollected() -> Iterator[set[int]]:
    """No collection for a while. Returns what other tests of this process have left."""
    gc.collect()
    gc.disable()
    try:
        yield {id(one) for one in gc.get_objects() if type(one) in OURS}
    finally:
        gc.enable()


def left(gateway: Running, before: set[int]) -> list[str]:
    """Objects of exchanges that still exist when the gateway is idle."""
    names: list[str] = []
    for _ in range(200):
        gateway.wait_for(asyncio.sleep(0))
        names = [type(one).__name__ for one in gc.get_objects() if type(one) in OURS and id(one) not in before]
        if not names:
            break
    return names


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_of_an_exchange(way: str) -> None:
    """However it ended."""
    ask, status = WAYS[way]
    here = {"deepseek": served("deepseek").url, "kimi": f"http://127.0.0.1:{closed_port()}"}
    with running(here) as gateway:
        assert ask(gateway) == status
        with uncollected() as before:
            for _ in range(3):
                ask(gateway)
            assert left(gateway, before) == []


def test_nothing_is_left_of_one_whose_client_left() -> None:
    """Including its listener."""
    may_end = threading.Event()

    async def slowly(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n')
        await out.until(may_end.is_set)
        await out.end()

    with upstream(slowly) as up, running({"deepseek": up.url}) as gateway, uncollected() as before:
        with gateway.listening() as next_line:
            assert leave(gateway) == 200
            may_end.set()
            assert next_line().status == 200
        assert left(gateway, before) == []
