"""The application: which address is served by what.

Management and probes have fixed addresses; every other one is a client's request, or a provider's address to pass on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from thoughtline.errors import ThoughtlineError
from thoughtline.gateway.asgi import Receive, Scope, Send, send_json, send_whole
from thoughtline.gateway.proxy import Exchange
from thoughtline.gateway.routing import route_of
from thoughtline.gateway.state import State

MakeState: TypeAlias = Callable[[], Awaitable[State]]
"""Opens the store and all else, in the loop that will serve."""

Handler: TypeAlias = Callable[[State, Scope, Receive, Send], Awaitable[None]]

REFRESH_SECONDS = 5.0
"""How old another replica's lessons, keys and settings may be here."""


class Address(NamedTuple):
    """A fixed address."""

    method: str
    path: str
    serve: Handler


async def _probe(state: State, scope: Scope, receive: Receive, send: Send) -> None:
    """Claude Code asks `HEAD /` or `HEAD /api/hello` before anything else."""
    await send_whole(send, 200, [(b"content-length", b"0")], b"")


async def _health(state: State, scope: Scope, receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


async def _ready(state: State, scope: Scope, receive: Receive, send: Send) -> None:
    """Ready while requests can be served, which a failing store does not prevent: it is told."""
    await send_json(send, 200, b'{"status":"ready","store":"%b"}' % state.store_health.encode())


async def _upgrade(state: State, scope: Scope, receive: Receive, send: Send) -> None:
    """Codex tries a websocket first, and falls back at once on 426 (on 404 only after 6 s of trying)."""
    body = b'{"error":{"message":"websockets are not served here; POST instead","code":"upgrade_required"}}'
    await send_json(send, 426, body, [(b"upgrade", b"HTTP/1.1")])


ADDRESSES: tuple[Address, ...] = (
    Address("HEAD", "/", _probe),
    Address("HEAD", "/api/hello", _probe),
    Address("GET", "/api/hello", _health),
    Address("GET", "/healthz", _health),
    Address("GET", "/readyz", _ready),
)


class Gateway:
    """ASGI over a state that a reload replaces."""

    state: State

    def __init__(self, make_state: MakeState) -> None:
        self._make_state = make_state
        self._fixed = {(one.method, one.path): one.serve for one in ADDRESSES}
        self._refreshing: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        state, method, path = self.state, scope["method"], scope["path"]
        fixed = self._fixed.get((method, path))
        if fixed is not None:
            await fixed(state, scope, receive, send)
            return
        if method == "GET" and any(name == b"upgrade" for name, _ in scope["headers"]):
            await _upgrade(state, scope, receive, send)
            return
        raw = scope.get("raw_path")
        route = route_of(method, raw.decode("latin-1") if raw else path, state.settings.providers)
        await Exchange(state, scope, route).run(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except ThoughtlineError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        self.state = await self._make_state()
        await self.state.lessons.refresh()
        self._refreshing = asyncio.ensure_future(self._refresh())

    async def stop(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
        self.state.journal.flush()
        await self.state.upstreams.close()
        await self.state.store.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self.state.lessons.refresh()
