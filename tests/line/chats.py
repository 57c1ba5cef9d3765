"""Requests of a chat client that forgets reasoning, and a server with scripted answers."""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from typing import Any

from tests.sim.served_simulators import listening
from thoughtline_sim.app import Receive, Scope, Send

Json = dict[str, Any]

PATH = "/v1/chat/completions"
HEADERS = {"authorization": "Bearer key-of-a-test", "content-type": "application/json"}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
USER = {"role": "user", "content": "How is the weather?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
THOUGHT = "I should look it up."
MESSAGE = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


def request(*messages: Json, **more: object) -> bytes:
    body = {"model": "deepseek-v4-pro", "tools": TOOLS, "messages": [USER, *messages], **more}
    return json.dumps(body).encode()


NEXT = request(MESSAGE, RESULT)
"""The request after the first one, without the model's reasoning."""


def whole() -> bytes:
    message = {**MESSAGE, "reasoning_content": THOUGHT}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "r", "model": "deepseek-v4-pro", "choices": [choice]}).encode()


def chunk(delta: Json, finish: str | None = None) -> Json:
    return {"id": "r", "model": "deepseek-v4-pro", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CHUNKS = (
    chunk({"role": "assistant", "reasoning_content": THOUGHT}),
    chunk({"tool_calls": [{"index": 0, **CALL}]}),
    chunk({}, "tool_calls"),
)


def events() -> list[bytes]:
    return [*(b"data: " + json.dumps(one).encode() + b"\n\n" for one in CHUNKS), b"data: [DONE]\n\n"]


def restored(body: bytes) -> list[str]:
    """The reasoning of the model's turns in a request."""
    messages = json.loads(body)["messages"]
    return [message.get("reasoning_content", "") for message in messages if message["role"] == "assistant"]


class Answer:
    """A server's answer: pieces of a body, sent one by one. `stalls`: it then sends nothing more while the client
    listens."""

    def __init__(
        self, *pieces: bytes, status: int = 200, kind: str = "application/json", stalls: bool = False, **headers: str
    ) -> None:
        self.pieces = pieces
        self.status = status
        self.stalls = stalls
        self.headers = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}


def streamed() -> Answer:
    return Answer(*events(), kind="text/event-stream")


class Told:
    """A server that answers each request with `answer`, and keeps the requests."""

    def __init__(self, answer: Callable[[bytes], Answer]) -> None:
        self._answer = answer
        self.bodies: list[bytes] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.url = listening(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _live(receive, send)
            return
        self.headers.append(dict(scope["headers"]))
        self.bodies.append(await _body(receive))
        answer = self._answer(self.bodies[-1])
        head = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        for piece in answer.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if answer.stalls:
            await receive()  # that whoever asked has left
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message: MutableMapping[str, Any] = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
