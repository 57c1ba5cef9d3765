"""A route `team` whose targets answer normally until a test changes that.

with team("one", "two") as (gateway, ups):
    ups.does["one"] = answers(503)
    assert who(ask(gateway)) == "two"
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from tests.gateway.gateways import Running, running
from tests.gateway.upstreams import EVENTS, Answer, Got, Out, Upstream, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.settings import RouteSettings, Settings

Json = dict[str, Any]
Messages = list[Json]
HELLO: Messages = [{"role": "user", "content": "hello"}]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def said(name: str) -> bytes:
    """A whole chat answer of a provider."""
    message = {"role": "assistant", "content": f"I am {name}.", "reasoning_content": f"thought of {name}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "model": name, "choices": [choice]}).encode()


def told(name: str) -> list[bytes]:
    """The events of a streamed answer."""
    deltas: list[tuple[Json, str | None]] = [
        ({"role": "assistant", "reasoning_content": f"thought of {name}"}, None),
        ({"content": f"I am {name}."}, None),
        ({}, "stop"),
    ]
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    return [*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


async def answer_well(name: str, got: Got, out: Out) -> None:
    if json.loads(got.body).get("stream"):
        await out.stream()
        for event in told(name):
            await out.chunk(event)
        await out.end()
    else:
        await out.whole(200, said(name))


class Team:
    """Named upstreams of one format, each answering normally until a test changes that."""

    def __init__(self) -> None:
        self.does: dict[str, Answer] = {}
        self.ups: dict[str, Upstream] = {}

    def answer_of(self, name: str) -> Answer:
        async def answer(got: Got, out: Out) -> None:
            instead = self.does.get(name)
            await (instead(got, out) if instead is not None else answer_well(name, got, out))

        return answer

    def asked(self, name: str) -> int:
        return len(self.ups[name].got)


@contextlib.contextmanager
def team(
    *names: str,
    weights: tuple[int, ...] = (),
    clock: Clock | None = None,
    keys: Mapping[str, tuple[str, ...]] | None = None,
    store_url: str = "memory://",
    shared: Team | None = None,
    has_keys: bool = True,
) -> Iterator[tuple[Running, Team]]:
    """A gateway with a route `team` to these upstreams, in this order; with a key for each, or none."""
    found = shared or Team()
    with contextlib.ExitStack() as stack:
        for name in names:
            if name not in found.ups:
                found.ups[name] = stack.enter_context(upstream(found.answer_of(name)))
        rows = {
            name: Provider(
                name,
                found.ups[name].url,
                ("openai_chat",),
                api_keys=(keys or {}).get(name, (f"key-of-{name}",) if has_keys else ()),
            )
            for name in names
        }
        route = RouteSettings("team", tuple(f"{name}/{name}-1" for name in names), weights)
        settings = Settings(providers=rows, routes={"team": route})
        gateway = stack.enter_context(running({}, settings, store_url, clock=clock or Clock()))
        yield gateway, found


def ask(gateway: Running, messages: Sequence[Json] = HELLO, model: str = "team", **more: Any) -> httpx.Response:
    headers = {"authorization": "Bearer a-key", **more.pop("headers", {})}
    body = {"model": model, "messages": messages, **more}
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def who(response: httpx.Response) -> str:
    """The target that answered, by its header."""
    assert response.status_code == 200, response.text
    return response.headers["x-thoughtline-target"].partition("/")[0]


def answers(status: int, body: bytes = b"{}", *headers: tuple[str, str]) -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, body, *headers)

    return answer


def streams(*events: bytes) -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        for event in events:
            await out.chunk(event)
        await out.end()

    return answer


async def cuts(got: Got, out: Out) -> None:
    out.cut()


async def cuts_after_head(got: Got, out: Out) -> None:
    await out.head(200, EVENTS, ("transfer-encoding", "chunked"))
    out.cut()


def go_on(messages: Messages, response: httpx.Response) -> Messages:
    """Continue the conversation, without the reasoning."""
    message = response.json()["choices"][0]["message"]
    return [*messages, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": "and then?"}]
