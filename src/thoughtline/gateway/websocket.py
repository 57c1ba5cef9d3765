"""Responses over a WebSocket: a `response.create` is served as a POST to the same address, events are sent as frames.

So a frame has everything that a POST has: its caller, limits, routing, restoring and capture, the journal. A connection
also knows its latest response, for requests that bring only what came after it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import Raw

from thoughtline.engine.capture import log_problem
from thoughtline.engine.threads import WORK_SHARE, WorkShare
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, is_given
from thoughtline.gateway.access import opens_from_page
from thoughtline.gateway.asgi import Message, Receive, Scope, Send, as_declined, error_body, retry_after
from thoughtline.gateway.cors import allowed_origin
from thoughtline.gateway.frames import (
    Answer,
    LatestConversation,
    TurnRequest,
    error_frame,
    prewarmed,
    read_frame,
    turn_of,
)
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.incoming import IS_COUNTED, Incoming, admitted, keys_to_ask_with
from thoughtline.gateway.relay import HAS_LEFT, ON_DISCONNECT, report_disconnect
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.stored_responses import not_found
from thoughtline.gateway.upstream_socket import HELD_SOCKET, HeldSocket
from thoughtline.gateway.websocket_protocol import WebSocket
from thoughtline.values.errors import Declined, ThoughtlineError

IDLE_SECONDS = 900.0
"""How long a connection may be idle. Codex opens a new one when it needs it."""

AGE_SECONDS = 3600.0
"""The same as OpenAI. An active turn is finished."""

MAX_HELD_BYTES = 128 * 2**20
"""Memory for the conversations of all connections. Codex sends a conversation whole when it is no longer known."""

MAX_ERROR_BYTES = 2**20

MAX_BAD_FRAMES = 16
"""Consecutive invalid frames before a connection is closed. An honest client stops at the first."""

_SITE = b"sec-fetch-site"
Result = TypeVar("Result")

_FORMAT = next(name for name, wire in FORMATS.items() if "websocket" in wire.quirks)
"""The format that is spoken over WebSockets."""


class HeldConversations:
    """The latest conversation of each connection; the least recently used are dropped first."""

    def __init__(self) -> None:
        self._held: dict[object, LatestConversation] = {}
        self._bytes = 0

    def hold(self, owner: object, conversation: LatestConversation) -> None:
        self.release(owner)
        self._held[owner] = conversation
        self._bytes += len(conversation.input)
        while self._bytes > MAX_HELD_BYTES:
            self.release(next(iter(self._held)))

    def find(self, owner: object, name: str) -> LatestConversation | None:
        held = self._held.get(owner)
        return held if held is not None and held.id == name else None

    def release(self, owner: object) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            self._bytes -= len(held.input)


class Application(Protocol):
    """The gateway, which answers each POST."""

    state: State
    conversations: HeldConversations

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]: ...


async def serve(application: Application, route: Route, socket: WebSocket) -> None:
    """Serve a connection, from its upgrade to its end."""
    state = application.state
    try:
        await _check(state, route, socket.scope)
    except ThoughtlineError as error:
        declined = as_declined(error)
        state.journal.say("websocket refused", declined.code)
        headers = [(b"content-type", b"application/json")]
        socket.refuse(declined.status, headers, error_body(declined, _FORMAT, ""))
        return
    state.metrics.websockets.inc(1)
    connection = Connection(application, socket)
    try:
        if socket.accept():
            await connection.run()
    finally:
        state.metrics.websockets.inc(-1)
        connection.close()
        if socket.problem:
            state.journal.say("websocket closed", f"{socket.problem}, {connection.tenant}")


async def _check(state: State, route: Route, scope: Scope) -> None:
    """Check who may connect: anyone who may send requests. Pages need an allowed origin, because browsers don't apply
    CORS to WebSockets."""
    headers = dict(scope["headers"])
    is_page = opens_from_page(headers)
    if is_page:  # cross-site, like a browser marks a POST: no page may use a gateway key
        scope["headers"] = [*(pair for pair in scope["headers"] if pair[0] != _SITE), (_SITE, b"cross-site")]
    query = scope["query_string"].decode("latin-1")
    incoming = Incoming(state, scope, _nothing, route=route, headers=headers, query=query)
    incoming.caller = await admitted(state, scope)
    if is_page and not allowed_origin(headers, state.settings.server):
        raise Declined(403, "cross_site", "A website may not open a websocket here.", "Add it to cors in [server].")
    if route.provider is not None:  # otherwise each frame names the target
        await keys_to_ask_with(incoming, state.settings.providers[route.provider])


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


class Connection:
    """One client, with one turn at a time."""

    def __init__(self, application: Application, socket: WebSocket) -> None:
        self._application = application
        self._socket = socket
        self._opened = asyncio.get_running_loop().time()
        self._has_left = False
        self._bad_frames = 0
        self.tenant = ""
        self._turn_scope: Scope | None = None
        self._upstream = HeldSocket(application.state.replayer.work_for)
        socket.on_disconnect = self._leave

    async def run(self) -> None:
        """Serve frames one after the other, until the client disconnects or the time is over."""
        socket, now = self._socket, asyncio.get_running_loop().time
        ends = self._opened + AGE_SECONDS
        while now() < ends:
            try:
                text = await socket.receive(min(ends, now() + IDLE_SECONDS))
            except TimeoutError:
                if now() < ends:
                    socket.close(1000, "idle")
                    return
                break
            if text is None:
                socket.close(1001, "the server stops")
                return
            turn = await self._guarded(self._read(text))
            del text  # release the request during the answer
            if turn is not None:
                self._bad_frames = 0
                await self._guarded(self._ask(turn))
            del turn
            if self._bad_frames >= MAX_BAD_FRAMES:
                socket.fail(1008, "too many bad frames")
                return
        await self._send_error(_too_old())
        socket.close(1000, "websocket_connection_limit_reached")

    async def _guarded(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Report any failure in a frame, and keep the connection."""
        try:
            return await work
        except ThoughtlineError as error:
            await self._refuse(as_declined(error))
        except Exception as error:
            log_problem("a frame failed", error)
            await self._refuse(Declined(500, "internal", "Something went wrong here.", "The log says where."))
        return None

    async def _count(self) -> None:
        """Count a frame as a request of its caller. Raises if the caller may not ask, or not now."""
        state = self._application.state
        caller = await admitted(state, self._socket.scope)
        self.tenant = caller.tenant
        state.limits.admit(caller.key, time.monotonic())

    async def _read(self, text: bytes) -> TurnRequest | None:
        """Return the request of a frame; None if it is already answered."""
        await self._count()
        WORK_SHARE.set(WorkShare(self.tenant, len(text)))
        conversations, work = self._application.conversations, self._application.state.replayer.work_for(text)
        frame = await work(partial(read_frame, text))
        stream_id = frame.members.get("stream_id", NULL)
        if is_given(stream_id):
            refusal = Declined(
                400, "unsupported_parameter", "Unsupported parameter: stream_id.", "Open a connection each."
            )
            await self._refuse(refusal, stream_id)
            return None
        earlier = conversations.find(self, frame.previous)
        turn = await work(partial(turn_of, frame, self._socket.scope["headers"], earlier))
        if not frame.is_prewarm:
            return turn
        if turn.input is None:
            raise not_found(frame.previous)
        # No provider is asked. The next frame continues from this one's content.
        name = f"resp_prewarm_{random.getrandbits(128):032x}"
        conversations.hold(self, LatestConversation(name, turn.input))
        for event in prewarmed(frame, name, time.time()):
            await self._socket.send(event)
        return None

    async def _ask(self, turn: TurnRequest) -> None:
        """Send a POST to the address of the upgrade."""
        answer, turn_input = _AnswerOut(self._socket), turn.input
        scope = self._turn_scope = {
            **self._socket.scope,
            "type": "http",
            "method": "POST",
            "headers": turn.headers,
            ON_DISCONNECT: HAS_LEFT if self._has_left else None,
            HELD_SOCKET: self._upstream,
            IS_COUNTED: True,
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": turn.take_body(), "more_body": False}

        try:
            await self._application(scope, receive, answer.send)
        finally:
            self._turn_scope = None
        await answer.finish()
        held = answer.events.conversation(turn_input) if turn_input is not None else None
        if held is not None:
            self._application.conversations.hold(self, held)

    def close(self) -> None:
        """Release everything held for the connection."""
        self._application.conversations.release(self)
        self._upstream.close()

    def _leave(self) -> None:
        self._has_left = True
        if self._turn_scope is not None:
            report_disconnect(self._turn_scope)

    async def _refuse(self, declined: Declined, stream_id: Raw | None = None) -> None:
        """Answer an invalid frame."""
        self._bad_frames += 1
        self._application.state.journal.say("websocket frame refused", f"{declined.code}, {self.tenant}")
        await self._send_error(declined, stream_id)

    async def _send_error(self, declined: Declined, stream_id: Raw | None = None) -> None:
        body = error_body(declined, _FORMAT, "")
        await self._socket.send(error_frame(declined.status, retry_after(declined), body, stream_id))


class _AnswerOut:
    """Sends the messages of an exchange as frames."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._status = 0
        self._headers: Headers = []
        self._is_stream = False
        self._body = b""
        self.events = Answer()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
            given = dict(self._headers)
            kind = given.get(b"content-type", b"")
            self._is_stream = self._status == 200 and kind.startswith(b"text/event-stream")
            return
        data = message.get("body", b"")
        if not self._is_stream:
            self._body = (self._body + data)[:MAX_ERROR_BYTES]
            return
        for text in self.events.feed(data):
            await self._socket.send(text)

    async def finish(self) -> None:
        """End the answer. A client that does not know yet that its turn is over gets an error."""
        if self._is_stream:
            for text in self.events.finish():
                await self._socket.send(text)
        if self.events.is_over:
            return
        status, body = self._status, self._body
        if status == 200 or not status:
            status, body = 502, error_body(_broken_off(), _FORMAT, "")
        await self._socket.send(error_frame(status, self._headers, body))


def _broken_off() -> Declined:
    return Declined(502, "upstream_failed", "The answer broke off before its end.", "Send the request again.")


def _too_old() -> Declined:
    message = f"This connection is older than {AGE_SECONDS / 60:.0f} minutes."
    return Declined(400, "websocket_connection_limit_reached", message, "Open another one.")
