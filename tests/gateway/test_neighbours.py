"""Providers on the gateway's own network, and callers from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.access import Neighbours, look_up
from thoughtline.settings import RouteSettings, ServerSettings, Settings

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STRANGER = {"x-forwarded-for": "203.0.113.9", "authorization": "Bearer own"}


async def _answer(got: Got, out: Out) -> None:
    await out.whole(200, b'{"choices":[]}')


@pytest.fixture(scope="module")
def near() -> Iterator[Upstream]:
    with upstream(_answer) as up:
        yield up


def _settings(near: Upstream, *, insecure: bool = False) -> Settings:
    named = near.url.replace("127.0.0.1", "localhost")
    rows = {
        "bare": Provider("bare", near.url, ("openai_chat",)),
        "named": Provider("named", named, ("openai_chat",)),
        "unkeyed": Provider("unkeyed", near.url, ("openai_chat",), auth="none"),
        "half": Provider("half", "https://far.example", ("openai_chat",), bases={"anthropic_messages": near.url}),
    }
    routes = {"best": RouteSettings("best", ("bare/m",))}
    return Settings(server=ServerSettings(insecure=insecure), providers=rows, routes=routes)


@pytest.fixture(scope="module")
def gateway(near: Upstream) -> Iterator[Running]:
    with running({}, _settings(near)) as one:
        yield one


ADDRESSES = [
    ("bare/v1/chat/completions", BODY),
    ("named/v1/chat/completions", BODY),
    ("unkeyed/v1/chat/completions", BODY),
    ("half/v1/chat/completions", BODY),
    ("bare/v1/messages", BODY),
    ("bare/v1/anything/else", BODY),
    ("ollama/api/chat", BODY),
    ("vllm/v1/responses", {"model": "m", "input": "hi"}),
    ("lmstudio/v1/chat/completions", BODY),
    ("v1/chat/completions", {**BODY, "model": "bare/m"}),
    ("v1/chat/completions", {**BODY, "model": "best"}),
]


@pytest.mark.parametrize(("path", "body"), ADDRESSES)
def test_strangers_are_kept_out(gateway: Running, near: Upstream, path: str, body: dict[str, object]) -> None:
    """However a local provider is asked for, and whatever the caller sends; nothing arrives there."""
    before = len(near.got)
    response = httpx.post(f"{gateway.url}/{path}", json=body, headers=STRANGER)
    assert response.status_code == 403
    assert "provider_not_open" in response.text
    assert len(near.got) == before


def test_this_machine_is_not(gateway: Running) -> None:
    """A caller from this machine is served, and a stranger if the settings allow it."""
    url = "bare/v1/chat/completions"
    assert httpx.post(f"{gateway.url}/{url}", json=BODY).status_code == 200


def test_nobody_is_where_that_is_wanted(near: Upstream) -> None:
    """`insecure = true`."""
    with running({}, _settings(near, insecure=True)) as one:
        assert httpx.post(f"{one.url}/bare/v1/chat/completions", json=BODY, headers=STRANGER).status_code == 200


class Resolver:
    """Host names as a test defines them."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names
        self.asked = 0

    async def __call__(self, host: str) -> list[str]:
        self.asked += 1
        found = self.names.get(host.partition(".")[0])
        if found is None:
            raise OSError("no such name")
        return found


def _at(host: str) -> Provider:
    return Provider("p", f"https://{host}/v1", ("openai_chat",))


@pytest.mark.parametrize(
    ("host", "expected"),
    [("gpu.example", True), ("mixed.example", True), ("far.example", False), ("unknown.example", False)],
)
async def test_names_are_looked_up(host: str, expected: bool) -> None:
    """A public name may resolve to a machine nearby; one such address of several is enough."""
    resolver = Resolver(gpu=["10.0.0.5"], mixed=["8.8.8.8", "::ffff:127.0.0.1"], far=["8.8.8.8"])
    assert await Neighbours(resolver).has(_at(host)) is expected


async def test_a_name_is_looked_up_once_a_minute() -> None:
    """Addresses are never looked up."""
    now = [0.0]
    resolver = Resolver(far=["8.8.8.8"])
    neighbours = Neighbours(resolver, lambda: now[0])
    for moment in (0.0, 59.0, 61.0):
        now[0] = moment
        assert not await neighbours.has(_at("far.example"))
    assert await neighbours.has(_at("10.0.0.1"))
    assert not await neighbours.has(_at("8.8.8.8"))
    assert not await neighbours.has(_at("[2606:4700::1111]"))
    assert resolver.asked == 2


async def test_the_system_is_asked() -> None:
    """With the system's usual resolver."""
    assert set(await asyncio.wait_for(look_up("localhost"), 10)) & {"127.0.0.1", "::1"}
