"""Shared by the tests of the admin API: a gateway with an admin token, and turns for it to store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from msgspec.structs import replace

from tests.gateway.gateways import Running, running
from tests.sim.served_simulators import served
from thoughtline.gateway.guard import Guard
from thoughtline.gateway.state import State
from thoughtline.settings import Settings

Json = dict[str, Any]

TOKEN = "an-admin-token-that-nobody-guesses"
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
CACHE = "/api/cache/reasoning"


def followed(message: Json) -> list[Json]:
    """A model turn in a history, without null members, and what follows it: results, or a user message."""
    calls = message.get("tool_calls") or []
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls]
    turn = {name: value for name, value in message.items() if value is not None or name == "content"}
    return [turn, *(results or [{"role": "user", "content": "go on"}])]


class Pauses:
    """The pauses after wrong tokens; a test need not wait."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def take(self, seconds: float) -> None:
        self.taken.append(seconds)


class Managed:
    """A running gateway with its admin."""

    def __init__(self, gateway: Running, pauses: Pauses) -> None:
        self.gateway = gateway
        self.pauses = pauses
        self.url = gateway.url
        self.admin = httpx.Client(base_url=gateway.url, headers={"authorization": f"Bearer {TOKEN}"})
        self.anyone = httpx.Client(base_url=gateway.url)

    def link(self) -> str:
        """A login link of a new start."""
        guard = Guard(sleep=self.pauses.take)
        self.gateway.app.state = _with_guard(self.gateway.state, guard)
        return f"/login?token={guard.code}"

    def get(self, path: str, **params: str | int) -> Json:
        """Return the JSON at an address, which must exist."""
        response = self.admin.get(path, params=params)
        assert response.status_code == 200, response.text
        found: Json = response.json()
        return found

    def send(
        self,
        history: list[Json],
        key: str = "someone",
        session: str | None = None,
        *,
        provider: str = "deepseek",
        model: str = "deepseek-v4-pro",
        **members: object,
    ) -> httpx.Response:
        """Send one request unchanged."""
        headers = {"authorization": f"Bearer {key}", **({"x-thoughtline-session": session} if session else {})}
        body = {"model": model, "messages": history, "tools": TOOLS, **members}
        return self.anyone.post(f"/{provider}/v1/chat/completions", json=body, headers=headers)

    def ask(
        self,
        opening: str,
        key: str = "someone",
        session: str | None = None,
        provider: str = "deepseek",
        model: str = "deepseek-v4-pro",
        turns: int = 1,
    ) -> list[Json]:
        """Play a conversation of a client that forgets reasoning; return the model's answer as the client got it."""
        history: list[Json] = [{"role": "user", "content": opening}]
        answers = []
        for _ in range(turns):
            response = self.send(history, key, session, provider=provider, model=model)
            assert response.status_code == 200, response.text
            message = response.json()["choices"][0]["message"]
            answers.append(dict(message))
            history += followed({**message, "reasoning_content": None})
        return answers


def _with_guard(state: State, guard: Guard) -> State:
    return state._replace(admin=state.admin._replace(guard=guard))


@contextlib.contextmanager
def managed(
    settings: Settings | None = None,
    store_url: str = "memory://",
    takes_keys: bool = False,
    simulators: Mapping[str, str] | None = None,
    token: str | None = TOKEN,
) -> Iterator[Managed]:
    """A gateway with DeepSeek and Kimi behind it, and an admin token."""
    pauses = Pauses()
    settings = settings or Settings()
    server = replace(settings.server, admin_token=token)
    if simulators is None:
        simulators = {"deepseek": served("deepseek").url, "kimi": served("kimi").url}
    with running(simulators, replace(settings, server=server), store_url, takes_keys=takes_keys) as gateway:
        gateway.app.state = _with_guard(gateway.state, Guard(sleep=pauses.take))
        one = Managed(gateway, pauses)
        try:
            yield one
        finally:
            one.admin.close()
            one.anyone.close()
