"""A client of Responses over a WebSocket, and an upstream for it.

with talking(f"{gateway.url}/openai/v1/responses") as talk:
    answer = talk.ask(input=[...])
    talk.ask(input=[...], previous_response_id=answer.id)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace
from websockets.sync.client import ClientConnection, connect

from tests.gateway.gateways import Running, moved, running
from tests.gateway.upstreams import Answer, Got, Out, Upstream, upstream
from thoughtline.settings import Settings

Json = dict[str, Any]

RESPONSES = "/openai/v1/responses"
USER = {"role": "user", "content": "Hello"}
PATIENCE = 30.0
OVER = ("response.completed", "response.incomplete", "response.failed", "error")
AUTH = {"authorization": "Bearer a-key"}
ASKED: Json = {
    "model": "gpt-5",
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "high", "summary": "auto"},
}
"""The same as Codex sends."""


def text_of(body: Json) -> str:
    """Encode without blanks, like Codex does."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


class Told(NamedTuple):
    """The events of one answer."""

    events: list[Json]

    @property
    def last(self) -> Json:
        return self.events[-1]

    @property
    def id(self) -> str:
        return str(self.last["response"]["id"])

    @property
    def output(self) -> list[Json]:
        return [event["item"] for event in self.events if event["type"] == "response.output_item.done"]

    @property
    def said(self) -> str:
        parts = [part for item in self.output if item["type"] == "message" for part in item["content"]]
        return "".join(part["text"] for part in parts)

    @property
    def error(self) -> tuple[int, str]:
        assert self.last["type"] == "error", self.last
        return self.last["status"], self.last["error"]["code"]


class Talk:
    """One connection."""

    def __init__(self, connection: ClientConnection, asked: Json) -> None:
        self.connection = connection
        self._asked = asked

    def send(self, **body: Any) -> None:
        self.connection.send(text_of({"type": "response.create", **self._asked, **body}))

    def heard(self) -> Told:
        """Return everything up to the end of an answer."""
        events: list[Json] = []
        while not events or events[-1]["type"] not in OVER:
            events.append(json.loads(self.connection.recv(timeout=PATIENCE)))
        return Told(events)

    def ask(self, **body: Any) -> Told:
        self.send(**body)
        return self.heard()

    def closed(self) -> int:
        """Return the code of the server's close; the rest is left unread."""
        with contextlib.suppress(Exception):
            while True:
                self.connection.recv(timeout=PATIENCE)
        return self.connection.protocol.close_code or 0


@contextlib.contextmanager
def talking(
    url: str, headers: Mapping[str, str] = AUTH, trust: ssl.SSLContext | None = None, **asked: Any
) -> Iterator[Talk]:
    address, head = url.replace("http", "ws", 1), dict(headers)
    with connect(
        address, ssl=trust, additional_headers=head, max_size=None, ping_interval=None, proxy=None
    ) as connection:
        yield Talk(connection, {**ASKED, **asked})


def event(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\ndata: {text_of({'type': kind, **members})}\n\n".encode()


def answered(text: str = "hi", name: str = "resp_1") -> bytes:
    """A whole answer of Responses."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    response = {"id": name, "object": "response", "status": "completed", "output": [item], "usage": None}
    return (
        event("response.created", response={**response, "status": "in_progress", "output": []})
        + event("response.output_item.done", output_index=0, item=item)
        + event("response.completed", response=response)
    )


async def say_hi(got: Got, out: Out) -> None:
    """An upstream of Responses."""
    await out.stream()
    await out.chunk(answered())
    await out.end()


@contextlib.contextmanager
def answering(answer: Answer = say_hi, settings: Settings | None = None) -> Iterator[tuple[Upstream, Running]]:
    """An upstream with such answers over HTTP, and a gateway in front of it."""
    with upstream(answer) as up, over_http("openai", up.url, settings) as gateway:
        yield up, gateway


@contextlib.contextmanager
def over_http(name: str, url: str, settings: Settings | None = None, **more: Any) -> Iterator[Running]:
    """A gateway that uses this provider only over HTTP."""
    row = replace(moved(name, url), websocket=False, **more)
    providers = {**(settings or Settings()).providers, name: row}
    with running({}, replace(settings or Settings(), providers=providers), takes_keys="api_keys" in more) as gateway:
        yield gateway


class Held:
    """An upstream that begins its answer, and ends it on command."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    async def __call__(self, got: Got, out: Out) -> None:
        await out.stream()
        whole = answered()
        first = whole.index(b"\n\n") + 2
        await out.chunk(whole[:first])
        await out.until(self.may_end.is_set)
        await out.chunk(whole[first:])
        await out.end()


def begun(talk: Talk) -> None:
    talk.send(input=[USER])
    assert json.loads(talk.connection.recv(timeout=30))["type"] == "response.created"


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition in the gateway, whose event loop runs this."""
    while not holds():
        await asyncio.sleep(0.001)


async def left(gateway: Running) -> None:
    """Wait until no client is connected any more."""
    await until(lambda: not gateway.app.connections.held)
