"""A request as it came: what its head says, who sent it, whom it may go to, and its body, unpacked where it is read."""

from __future__ import annotations

import time
from functools import partial

from msgspec import Struct, field

from thoughtline.encodings import unpacked
from thoughtline.formats.weighing import check_weight, is_light
from thoughtline.gateway.access import Caller, admit, head_of, visitor_of
from thoughtline.gateway.asgi import Receive, Scope
from thoughtline.gateway.choosing import ChoiceKey, Choices, Conversation, choices_of, conversation_of
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.tracing import ExchangeTrace
from thoughtline.replay.remembering import Cut
from thoughtline.sessions import first_model, who_asks
from thoughtline.values.errors import Declined, LimitExceeded
from thoughtline.values.identity import Identity


class ClientGone(Exception):
    """The client hung up before it had said everything."""


class Incoming(Struct):
    """Its body is let go of when nobody will be asked with it any more.

    `began` is when it came, by the performance counter. `is_passed_on`: something is asked that nobody here reads.
    `cuts` are where it begins as requests of late did; `short` is the body without what is remembered of its
    conversation, with all that stands beside that. `encoding` is left where the body is passed on as it came.
    """

    state: State
    scope: Scope
    receive: Receive
    route: Route
    headers: dict[bytes, bytes]
    query: str
    is_passed_on: bool = False
    user_agent: bytes = b""
    caller: Caller = Caller("", "")
    identity: Identity = Identity("")
    body: bytes = b""
    cuts: tuple[Cut, ...] = ()
    short: bytes = b""
    encoding: str = ""
    model: str = ""
    choices: Choices = Choices(())
    conversation: Conversation = Conversation()
    began: float = field(default_factory=time.perf_counter)
    trace: ExchangeTrace | None = None

    async def take_in(self) -> None:
        """Who asks for what, and who can be asked for it. Raises where that is nobody."""
        state, route = self.state, self.route
        self.is_passed_on = route.action == "passthrough" and self.scope["method"] == "POST"
        self.user_agent = self.headers.get(b"user-agent", b"")
        if state.tracing is not None and route.action == "generate":
            self.trace = state.tracing.begin(self.headers)
        caller = self.caller = self.admitted()
        self.identity = Identity(caller.tenant)
        if caller.key is not None:
            state.limits.admit(caller.key, time.monotonic())
        await self._read()
        if route.format is None or route.action not in ("generate", "count_tokens", "compact"):
            return
        known = state.caches.choices
        asked = ChoiceKey(
            route.provider,
            route.format,
            route.model or self.model,
            tenant=caller.tenant,
            has_client_key=caller.key is not None,
            has_credential=bool(caller.credential),
        )
        choices = self.choices = known.get(asked) or known.keep(asked, choices_of(asked, state.settings))
        if choices.are_several:
            self.conversation = await conversation_of(choices, self)

    def admitted(self) -> Caller:
        """Who sends it, if its head may be taken at all."""
        state, head = self.state, head_of(self.scope)
        visitors, server = state.caches.visitors, state.settings.server
        visitor = visitors.get(head) or visitors.keep(head, visitor_of(head, server), head.size)
        return admit(visitor, state.keys, is_insecure=server.insecure)

    async def _read(self) -> None:
        """To its end. What is large is worked on where it holds nobody up."""
        replayer, limit = self.state.replayer, self.state.settings.server.max_body_bytes
        body = self.body = await read_body(self.receive, self.headers.get(b"content-length", b""), limit)
        encoding = self.headers.get(b"content-encoding", b"").decode("latin-1")
        if self.route.action == "passthrough" or self.route.format is None:
            self.encoding = encoding
            return
        if encoding and self.caller.is_signed:
            self.encoding = encoding  # its signature is over these bytes
        elif encoding:
            body = self.body = await replayer.work_for(body)(partial(unpacked, body, encoding, limit))
        self.cuts = replayer.cuts(body, self.route.format, self.caller.tenant)
        short = self.short = self.cuts[0].short if self.cuts else body
        if is_light(short):
            self.identity, self.model = who_asks(self.caller.tenant, self.headers, short)
        else:
            self.identity, self.model = await self.state.work(partial(self._who_asks, short))

    def _who_asks(self, short: bytes) -> tuple[Identity, str]:
        """By a body that is too much to read, only what is seen at once."""
        tenant, headers = self.caller.tenant, self.headers
        try:
            check_weight(short)
        except LimitExceeded:
            return who_asks(tenant, headers, b"")[0], first_model(self.body)
        return who_asks(tenant, headers, short)


async def read_body(receive: Receive, declared: bytes, limit: int) -> bytes:
    """The whole body of a request, or a refusal as soon as it is known to be too large."""
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    message = await receive()
    if not message.get("more_body", False) and message["type"] == "http.request":
        body = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        return bytes(body)
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _too_large(limit: int) -> Declined:
    return Declined(
        413,
        "body_too_large",
        f"The body of this request is larger than {limit} bytes.",
        'Set [server] max_body = "64MiB", or compact the conversation.',
    )
