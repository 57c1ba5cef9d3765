"""What the browser looks at: a gateway before strict simulators, and clients that make something to see.

with world() as one:
    one.log_in(page)
    one.chat("Fix it", session="s").ask("deepseek", "deepseek-v4-pro")
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
from msgspec.structs import replace
from playwright.sync_api import Page

from tests.gateway.managed_gateways import TOKEN, TOOLS, Managed, managed
from tests.gateway.test_healing import STRICT, lost_elsewhere
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import Provider
from thoughtline.settings import DashboardSettings, DebugSettings, RouteSettings, Settings

Json = dict[str, Any]

SENTENCE = "The `reasoning_content` in the thinking mode must be passed back to the API."
PROGRAM = "claude-cli/2.0.14 (external, cli)"


class Chat:
    """A client of Chat Completions that keeps nothing of what models think, whomever it asks."""

    def __init__(self, http: httpx.Client, opening: str, session: str, key: str = "someone", program: str = "") -> None:
        self._http = http
        self._headers = {"authorization": f"Bearer {key}", "x-thoughtline-session": session}
        if program:
            self._headers["user-agent"] = program
        self.history: list[Json] = [{"role": "user", "content": opening}]

    def ask(self, provider: str, model: str) -> httpx.Response:
        """The next turn of that model, taken into the history."""
        body = {"model": model, "messages": self.history, "tools": TOOLS}
        response = self._http.post(f"/{provider}/v1/chat/completions", json=body, headers=self._headers)
        if response.status_code == 200:
            self._take(response.json()["choices"][0]["message"])
        return response

    def _take(self, message: Json) -> None:
        message.pop("reasoning_content", None)
        calls = message.get("tool_calls") or []
        self.history.append(message)
        self.history += [{"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls]
        if not calls:
            self.history.append({"role": "user", "content": "go on"})


class SlowStream:
    """A provider that says its first words, and the rest when it is let."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    async def answer(self, got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(_chunk({"role": "assistant", "content": "One "}, None))
        await out.until(self.may_end.is_set)
        await out.chunk(_chunk({"content": "moment."}, "stop") + b"data: [DONE]\n\n")
        await out.end()


def _chunk(delta: Json, finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    said = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "slow-1", "choices": [choice]}
    return f"data: {json.dumps(said)}\n\n".encode()


async def refuse(got: Got, out: Out) -> None:
    """A provider that nothing helps with."""
    error = {"message": SENTENCE, "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
    await out.whole(400, json.dumps({"error": error}).encode())


async def fail(got: Got, out: Out) -> None:
    """A provider that is overloaded."""
    await out.whole(503, b'{"error":{"message":"overloaded"}}')


class World:
    """The gateway, and who asks it."""

    def __init__(self, gateway: Managed, slow: SlowStream) -> None:
        self.gateway = gateway
        self.slow = slow
        self.url = gateway.url

    def log_in(self, page: Page, path: str = "/") -> None:
        page.goto(self.url + path)
        page.get_by_label("Admin token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.locator(".shell").wait_for()

    def chat(self, opening: str, session: str, key: str = "someone", program: str = "") -> Chat:
        return Chat(self.gateway.anyone, opening, session, key, program)

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """While a client of the slow provider has got the first words of its answer."""
        self.slow.may_end.clear()
        body = {"model": "slow-1", "messages": [{"role": "user", "content": "Say"}], "stream": True}
        headers = {"authorization": "Bearer someone", "user-agent": PROGRAM}
        with httpx.stream("POST", f"{self.url}/slow/v1/chat/completions", json=body, headers=headers) as response:
            pieces = response.iter_bytes()
            next(pieces)
            yield
            self.slow.may_end.set()
            list(pieces)

    def refused(self) -> str:
        """The id of a request that its provider refuses, whatever is done."""
        chat = self.chat("Mend the tokenizer", "refused")
        chat.history += lost_turn()
        response = chat.ask("wall", "deepseek-v4-pro")
        assert response.status_code == 400
        return response.headers["x-thoughtline-request"]

    def healed(self) -> str:
        """The id of a request that its provider takes after a correction."""
        dialogue = lost_elsewhere(STRICT[0], "seen in a browser")
        dialogue.base = f"{self.url}/acme"
        response = dialogue.post()
        assert response.status_code == 200, response.text
        return response.headers["x-thoughtline-request"]


def lost_turn() -> list[Json]:
    call = {"id": "call_00_lost", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_00_lost", "content": "1 failed"},
    ]


@contextlib.contextmanager
def world(
    takes_keys: bool = False,
    store_url: str = "memory://",
    keep_text: bool = False,
    keep_bodies: bool = True,
    has_route: bool = False,
) -> Iterator[World]:
    """DeepSeek and Kimi, one that nobody has listed and is as strict, one with a key, a slow one, one that refuses."""
    slow = SlowStream()
    with upstream(slow.answer) as one, upstream(refuse) as wall, upstream(fail) as down:
        rows = {
            "acme": Provider("acme", served("deepseek", "reseller").url, ("openai_chat",)),
            "keyed": Provider("keyed", served("deepseek").url, ("openai_chat",), api_keys=("a-key",)),
            "slow": Provider("slow", one.url, ("openai_chat",)),
            "wall": Provider("wall", wall.url, ("openai_chat",)),
            "down": Provider("down", down.url, ("openai_chat",), api_keys=("a-key",)),
        }
        settings = replace(
            Settings(),
            providers=rows,
            debug=DebugSettings(keep_bodies),
            dashboard=DashboardSettings(keep_text),
            routes={"steady": RouteSettings("steady", ("down/model-1", "keyed/deepseek-v4-pro"))} if has_route else {},
        )
        with managed(settings, store_url, takes_keys=takes_keys) as gateway:
            yield World(gateway, slow)
