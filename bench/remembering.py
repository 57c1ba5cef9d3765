"""What it costs that requests are remembered: `python -m bench.remembering`.

A gateway in this process, with an upstream that answers at once, and nobody listens. For conversations of some lengths,
all of whose turns are restored: the time that goes into remembering a request (the notes of its turns, what is kept of
it, the figures of the day), the time that all of the request takes here, and the ratio. Nothing is timed inside a
stream: how many times something is kept is counted, for one of 1 and one of 500 chunks.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway import proxy, recent
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import NoKeys
from thoughtline.gateway.in_flight import InFlight
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.state import State, make_state
from thoughtline.replay.turn_plans import NotesOfTurns
from thoughtline.settings import Settings
from thoughtline.stores import open_store

REQUESTS = 300
TURNS = (0, 10, 100)
JSON = [("content-type", "application/json")]
EVENTS = [("content-type", "text/event-stream")]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


class Answered:
    """A response that is there."""

    tells_length = False
    encoding = ""

    def __init__(self, headers: list[tuple[str, str]], pieces: list[bytes]) -> None:
        self.status, self.headers, self._pieces = 200, headers, pieces[::-1]
        self.kind = self.header("content-type")

    def header(self, name: str) -> str:
        return dict(self.headers).get(name, "")

    async def read(self) -> bytes | None:
        return self._pieces.pop() if self._pieces else None

    async def close(self) -> None:
        """There is nothing to close."""


class AtOnce:
    """Upstreams that answer at once."""

    def __init__(self) -> None:
        self.headers, self.pieces = JSON, [b""]
        self.in_flight = InFlight()

    async def send(self, *args: object, **named: object) -> Answered:
        return Answered(self.headers, list(self.pieces))

    async def close(self) -> None:
        """There is nothing to close."""


class UnderWay(dict[str, proxy.Exchange]):
    """The exchanges under way, as a class of its own: a method of `dict` itself can't be watched."""


class Spent:
    """Seconds and calls that go into some functions, by how often they are called from outside each other."""

    def __init__(self) -> None:
        self.seconds, self.calls, self._depth = 0.0, 0, 0

    def watch(self, owner: object, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **named: Any) -> Any:
            self.calls += 1
            self._depth += 1
            began = time.perf_counter()
            try:
                return inner(*args, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - began

        setattr(owner, name, timed)

    def leave_out(self, owner: object, name: str) -> None:
        """A function that is called by those watched, and would be without them."""
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(*args, **named)
            finally:
                self.seconds -= time.perf_counter() - began

        setattr(owner, name, timed)


def message(number: int) -> dict[str, Any]:
    call = {"id": f"call_{number:024x}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    return {"role": "assistant", "content": f"step {number}", "tool_calls": [call]}


def answer(number: int) -> bytes:
    turn = {**message(number), "reasoning_content": f"thought {number} " * 20}
    return json.dumps(
        {"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": turn}]}
    ).encode()


def body(turns: int, *, streams: bool = False) -> bytes:
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(turns):
        history += [message(number), {"role": "tool", "tool_call_id": f"call_{number:024x}", "content": "a" * 400}]
    return json.dumps({"model": "deepseek-v4-pro", "messages": history, "tools": TOOLS, "stream": streams}).encode()


async def ask(app: Gateway, content: bytes) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/deepseek/v1/chat/completions",
        "raw_path": b"/deepseek/v1/chat/completions",
        "query_string": b"",
        "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer x"), (b"user-agent", b"OpenAI/Python 2")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
        "scheme": "http",
    }
    messages = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(event: MutableMapping[str, Any]) -> None:
        """Nobody reads it, but an error would be cheaper than an answer."""
        if event.get("status", 200) != 200:
            raise AssertionError(event)

    await app(scope, receive, send)


async def main() -> None:
    async def opened() -> State:
        settings = Settings(providers=PROVIDERS)
        return make_state(settings, await open_store("memory://", settings.store), NoKeys(), Journal())

    app, upstreams = Gateway(opened), AtOnce()
    await app.start()
    app.state = app.state._replace(upstreams=upstreams)  # type: ignore[arg-type] # all that is asked of it
    app.state.recent.under_way = UnderWay()
    spent = Spent()
    for owner, name in ((UnderWay, "__setitem__"), (recent.Recent, "end"), (proxy, "served_of")):
        spent.watch(owner, name)
    spent.leave_out(recent, "_line")  # the journal's, remembered or not
    for name in ("put", "keep", "put_stripped", "put_unrestored", "lose", "not_find"):
        spent.watch(NotesOfTurns, name)
    for number in range(max(TURNS)):
        upstreams.pieces = [answer(number)]
        await ask(app, body(number))
    print("turns   µs to remember   µs in all   ratio")
    for turns in TURNS:
        content, ratios, costs, totals = body(turns), [], [], []
        for _ in range(REQUESTS):
            spent.seconds, began = 0.0, time.perf_counter()
            await ask(app, content)
            total = time.perf_counter() - began
            costs.append(spent.seconds * 1e6)
            totals.append(total * 1e6)
            ratios.append(spent.seconds / total)
        median = statistics.median
        print(f"{turns:>5} {median(costs):>16.1f} {median(totals):>11.1f} {100 * median(ratios):>6.2f} %")
    for chunks in (1, 500):
        chunk = b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
        upstreams.headers, upstreams.pieces = EVENTS, [chunk] * chunks
        spent.calls = 0
        await ask(app, body(0, streams=True))
        print(f"stream of {chunks} chunks: {spent.calls} calls")
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
