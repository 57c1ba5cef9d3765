"""The application: which address is served by what.

Management and probes have fixed addresses (`admin.table`); any other one is a client's request, or a provider's address
to pass on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from thoughtline.engine.capture import log_problem
from thoughtline.formats import FORMATS
from thoughtline.gateway import cors, shared_settings, websocket
from thoughtline.gateway.admin import recent
from thoughtline.gateway.admin.dispatch import PATHS as MANAGED
from thoughtline.gateway.admin.dispatch import PREFIXES as MANAGED_PREFIXES
from thoughtline.gateway.admin.dispatch import serve as serve_managed
from thoughtline.gateway.asgi import Receive, Scope, Send, error_body, send_json
from thoughtline.gateway.checking import checked
from thoughtline.gateway.dashboard import is_view
from thoughtline.gateway.in_flight import InFlight
from thoughtline.gateway.proxy import Exchange
from thoughtline.gateway.routing import MAX_PATH_BYTES, Route, route_of
from thoughtline.gateway.shared_settings import SettingsPatch
from thoughtline.gateway.state import State, envelope_key, with_envelope_key, with_shared
from thoughtline.gateway.websocket import HeldConversations
from thoughtline.gateway.websocket_protocol import WebSocket
from thoughtline.values.errors import Declined, SettingsError, StoreError, ThoughtlineError

log = logging.getLogger(__name__)

MakeState: TypeAlias = Callable[[], Awaitable[State]]
"""Opens the store and everything else, on the event loop that will serve."""

_NEVER_SERVED = ("TRACE", "CONNECT")
_SERVED = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

REFRESH_SECONDS = 5.0
"""How often other replicas' lessons, keys and settings are loaded."""


async def _upgrade(send: Send) -> None:
    """Reject a WebSocket. Codex falls back at once on 426 (on 404 only after trying for 6 s)."""
    body = b'{"error":{"message":"no websocket is served here; POST instead","code":"upgrade_required"}}'
    await send_json(send, 426, body, [(b"upgrade", b"HTTP/1.1")])


def _asks_for_websocket(name: bytes, value: bytes) -> bool:
    """Whether a header asks for a WebSocket. Other protocols (Java's client always offers h2c) may be ignored. A
    reverse proxy that does not support WebSockets removes the first header and keeps the second."""
    return (name == b"upgrade" and value.strip().lower() == b"websocket") or name == b"sec-websocket-key"


def _refusal(method: str) -> Declined:
    """Return the error for a request that is not processed at all. TRACE would show a caller the credentials added on
    the way."""
    if method in _NEVER_SERVED:
        return Declined(405, "method_not_allowed", f"{method} is not served here.")
    return Declined(414, "path_too_long", f"A path has at most {MAX_PATH_BYTES} bytes.")


class Gateway:
    """The ASGI application, over a state that a reload replaces."""

    state: State

    def __init__(self, make_state: MakeState) -> None:
        self._make_state = make_state
        self.conversations = HeldConversations()
        self._refreshing: asyncio.Task[None] | None = None
        self._refused: SettingsPatch | None = None

    @property
    def connections(self) -> InFlight:
        return self.state.in_flight

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return an awaitable directly, without a wrapper that every piece of a stream would pass through."""
        if scope["type"] != "http":
            return self._live(receive, send) if scope["type"] == "lifespan" else asyncio.sleep(0)
        state, method, path = self.state, scope["method"], scope["path"]
        raw = scope.get("raw_path") or path.encode("latin-1", "replace")
        if method in ("GET", "HEAD") and is_view(scope, state.settings.providers):
            return serve_managed(state, {**scope, "path": "/", "raw_path": b"/"}, receive, send)
        if len(raw) <= MAX_PATH_BYTES and (path in MANAGED or path.startswith(MANAGED_PREFIXES)):
            # the handler decides which methods it allows
            return serve_managed(state, scope, receive, send)
        if method in _NEVER_SERVED or len(raw) > MAX_PATH_BYTES:
            refusal = _refusal(method)
            headers = [(b"allow", _SERVED), (b"connection", b"close")]
            return send_json(send, refusal.status, error_body(refusal, None, ""), headers)
        if method == "OPTIONS" and cors.is_preflight(scope):
            return cors.answer_preflight(scope, send, state.settings.server)
        if state.settings.server.cors:
            send = cors.readable(scope, send, state.settings.server)
        if method == "GET" and any(_asks_for_websocket(*header) for header in scope["headers"]):
            return _upgrade(send)
        route = state.caches.routes.get((method, raw)) or self._route(method, raw)
        return Exchange(state, scope, receive, route).run(send)

    def _route(self, method: str, raw: bytes) -> Route:
        route = route_of(method, raw.decode("latin-1"), self.state.settings.providers)
        return self.state.caches.routes.keep((method, raw), route)

    def websocket_route(self, path: bytes) -> Route | None:
        """Return the route of a WebSocket at this address; None unless its POST takes a format with WebSockets."""
        if not path.startswith(b"/") or len(path) > MAX_PATH_BYTES:
            return None
        route = self.state.caches.routes.get(("POST", path)) or self._route("POST", path)
        is_served = (
            route.action == "generate" and route.format is not None and "websocket" in FORMATS[route.format].quirks
        )
        return route if is_served else None

    async def serve_websocket(self, route: Route, socket: WebSocket) -> None:
        await websocket.serve(self, route, socket)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except ThoughtlineError as error:
            log.critical("%s", error)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        state = await self._make_state()
        self.state = with_envelope_key(state, await envelope_key(state.settings, state.store))
        self.state.bus.open()
        await self.state.recent.asking.open(self._answer)
        await self.refresh()
        self._refreshing = asyncio.ensure_future(self._refresh())

    async def _answer(self, question: bytes) -> bytes:
        """Answer a question of another worker."""
        return await recent.answer(self.state, question)

    def leave(self) -> None:
        """Disconnect listeners before a shutdown, so that it does not wait for them."""
        self.state.admin.signals.stopping.set()

    async def stop(self) -> None:
        self.leave()
        if self._refreshing is not None:
            self._refreshing.cancel()
        self.state.journal.flush()
        await self.state.bus.close()
        await self.state.recent.asking.close()
        self.state.limits.counts.close()
        self.state.background.work.close()
        await self.state.upstreams.close()
        await self.state.words.close()
        await self.state.store.close()
        if self.state.tracing is not None:
            await asyncio.to_thread(self.state.tracing.close)

    async def refresh(self) -> None:
        """Load other replicas' lessons, settings, and new and revoked keys. On failure, the current ones stay."""
        try:
            await self.state.keys.refresh()
            await self.state.lessons.refresh()
            shared = await shared_settings.load(self.state.store)
            key = await envelope_key(self.state.settings, self.state.store, self.state.services.envelope_key)
            await recent.share(self.state)
            await self.state.words.settle()
        except StoreError as error:
            log.warning("what other replicas did is not known: %s", error)
            return
        self.state = with_envelope_key(self.state, key)
        if shared != self.state.admin.shared:
            self._apply_shared(shared)
        self.state.observe()
        self.state.bus.report_counts()

    def _apply_shared(self, shared: SettingsPatch) -> None:
        """Apply shared settings. Settings that fail a check change nothing, and are reported once."""
        try:
            checked(shared_settings.merged(self.state.admin.loaded, shared), self.state.keys, self.state.admin.loaded)
        except SettingsError as error:
            if shared != self._refused:
                self.state.journal.say("settings not taken over", str(error))
            self._refused = shared
            return
        self.state = with_shared(self.state, shared)

    async def _refresh(self) -> None:
        wake = self.state.admin.signals.wake
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_SECONDS):
                    await wake.wait()
            wake.clear()
            try:
                await self.refresh()
            except Exception as problem:  # any error: without further refreshes, revoked keys would stay valid
                log_problem("what other replicas did could not be taken over", problem)
