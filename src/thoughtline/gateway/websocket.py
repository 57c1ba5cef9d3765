"""Responses over a WebSocket: a `response.create` is served as a POST to the same address, events go out as frames.

So all that holds for a POST holds for a frame: who asks, limits, routing, what is restored and captured, the journal.
What a connection adds is what the latest response was, for requests that bring only what came after it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable
from functools import partial
from typing import Protocol

from msgspec import Raw

from thoughtline.formats.json_text import NULL, is_given
from thoughtline.gateway.asgi import Message, Receive, Scope, Send
from thoughtline.gateway.choosing import keys_to_ask_with
from thoughtline.gateway.disconnect import HAS_LEFT, ON_DISCONNECT, tell_disconnect
from thoughtline.gateway.door import is_website
from thoughtline.gateway.envelopes import as_declined, envelope
from thoughtline.gateway.frames import (
    Answer,
    Conversation,
    Frame,
    Turn,
    error_frame,
    prewarmed,
    read_frame,
    turn_headers,
    turn_of,
)
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.websocket_protocol import WebSocket
from thoughtline.values.errors import Declined, ThoughtlineError
from thoughtline.values.turns import FormatName
from thoughtline.watching import log_problem

IDLE_SECONDS = 900.0
"""How long a connection may ask for nothing. Codex opens another one when it needs it."""

AGE_SECONDS = 3600.0
"""As OpenAI has it. A turn that is under way then is finished."""

MOST_HELD_BYTES = 128 * 2**20
"""What is held of the conversations of all connections. Codex sends a conversation whole when it is no longer known."""

MOST_ERROR_BYTES = 2**20
_FORMAT: FormatName = "openai_responses"


class HeldConversations:
    """The latest conversation of each connection; those that were not used for the longest time go first."""

    def __init__(self) -> None:
        self._held: dict[object, Conversation] = {}
        self._bytes = 0

    def hold(self, owner: object, conversation: Conversation) -> None:
        self.release(owner)
        self._held[owner] = conversation
        self._bytes += len(conversation.input)
        while self._bytes > MOST_HELD_BYTES:
            self.release(next(iter(self._held)))

    def find(self, owner: object, name: str) -> Conversation | None:
        held = self._held.get(owner)
        return held if held is not None and held.id == name else None

    def release(self, owner: object) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            self._bytes -= len(held.input)


class Server(Protocol):
    """Who answers a POST: the gateway."""

    state: State
    conversations: HeldConversations

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]: ...


async def serve(server: Server, route: Route, socket: WebSocket) -> None:
    """A connection, from its upgrade to its end."""
    state = server.state
    try:
        await _check(state, route, socket.scope)
    except ThoughtlineError as error:
        declined = as_declined(error)
        state.journal.say("websocket refused", declined.code)
        headers = [(b"content-type", b"application/json")]
        socket.refuse(declined.status, headers, envelope(declined, _FORMAT, ""))
        return
    if not socket.accept():
        return
    state.metrics.websocket(1)
    connection = Connection(server, socket)
    try:
        await connection.run()
    finally:
        state.metrics.websocket(-1)
        server.conversations.release(connection)


async def _check(state: State, route: Route, scope: Scope) -> None:
    """Who may open one: whoever may ask. No page of another site, which would read the answers: a browser lets it."""
    headers = dict(scope["headers"])
    query = scope["query_string"].decode("latin-1")
    incoming = Incoming(state._replace(tracing=None), scope, _nothing, route=route, headers=headers, query=query)
    incoming.caller = incoming.admitted()
    if is_website(headers):
        raise Declined(403, "cross_site", "A website may not open a websocket here.", "Ask from its server, or POST.")
    name = route.provider or state.settings.default_provider
    if name is not None:
        await keys_to_ask_with(incoming, state.settings.providers[name])


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


class Connection:
    """One client, and one turn of it at a time."""

    def __init__(self, server: Server, socket: WebSocket) -> None:
        self._server = server
        self._socket = socket
        self._opened = asyncio.get_running_loop().time()
        self._has_left = False
        self._turn_scope: Scope | None = None
        socket.on_disconnect = self._leave

    async def run(self) -> None:
        """One frame after the other, until the client leaves, or it is time."""
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
            await self._take(text)
        await self._tell(_too_old())
        socket.close(1000, "websocket_connection_limit_reached")

    async def _take(self, text: bytes) -> None:
        """Serve a frame. Whatever goes wrong is told in a frame, and the connection stays."""
        stream_id: Raw | None = None
        try:
            work = self._server.state.replayer.work_for(text)
            frame = await work(partial(read_frame, text))
            named = frame.members.get("stream_id", NULL)
            if is_given(named):
                stream_id = named
                raise Declined(
                    400, "unsupported_parameter", "Unsupported parameter: stream_id.", "Open a connection each."
                )
            earlier = self._server.conversations.find(self, frame.previous)
            turn = await work(partial(turn_of, frame, earlier))
            await (self._prewarm(frame, turn) if frame.is_prewarm else self._ask(frame, turn))
        except ThoughtlineError as error:
            await self._tell(as_declined(error), stream_id)
        except Exception as error:
            log_problem("a frame failed", error)
            await self._tell(Declined(500, "internal", "Something went wrong here.", "The log says where."))

    async def _prewarm(self, frame: Frame, turn: Turn) -> None:
        """Nobody need be asked. The next frame goes on from what this one brought."""
        if turn.input is None:
            raise Declined(
                400,
                "previous_response_not_found",
                f"Previous response with id {frame.previous[:100]!r} not found.",
                "Send the whole conversation in `input`.",
            )
        name = f"resp_prewarm_{random.getrandbits(128):032x}"
        self._server.conversations.hold(self, Conversation(name, turn.input))
        for text in prewarmed(frame, name, time.time()):
            await self._socket.send(text)

    async def _ask(self, frame: Frame, turn: Turn) -> None:
        answer = _AnswerOut(self._socket)
        scope = self._turn_scope = self._scope_of(frame)
        try:
            await self._server(scope, _body(turn.body), answer.send)
        finally:
            self._turn_scope = None
        await answer.finish()
        held = answer.events.conversation(turn.input) if turn.input is not None else None
        if held is not None:
            self._server.conversations.hold(self, held)

    def _scope_of(self, frame: Frame) -> Scope:
        """That of a POST to the address of the upgrade."""
        return {
            **self._socket.scope,
            "type": "http",
            "method": "POST",
            "headers": turn_headers(self._socket.scope["headers"], frame.metadata),
            ON_DISCONNECT: HAS_LEFT if self._has_left else None,
        }

    def _leave(self) -> None:
        self._has_left = True
        if self._turn_scope is not None:
            tell_disconnect(self._turn_scope)

    async def _tell(self, declined: Declined, stream_id: Raw | None = None) -> None:
        body = envelope(declined, _FORMAT, "")
        await self._socket.send(error_frame(declined.status, [], body, stream_id))


class _AnswerOut:
    """What an exchange sends, as frames."""

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
            self._body = (self._body + data)[:MOST_ERROR_BYTES]
            return
        for text in self.events.feed(data):
            await self._socket.send(text)

    async def finish(self) -> None:
        """No more will come. A client that has not heard that its turn is over is told."""
        if self._is_stream:
            for text in self.events.finish():
                await self._socket.send(text)
        if self.events.is_over:
            return
        status, body = self._status, self._body
        if status == 200 or not status:
            status, body = 502, envelope(_broken_off(), _FORMAT, "")
        await self._socket.send(error_frame(status, self._headers, body))


def _body(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _broken_off() -> Declined:
    return Declined(502, "upstream_failed", "The answer broke off before its end.", "Ask again.")


def _too_old() -> Declined:
    told = f"This connection is older than {AGE_SECONDS / 60:.0f} minutes."
    return Declined(400, "websocket_connection_limit_reached", told, "Open another one.")
