"""A request as it came: what its head says, who sent it, and its body, unpacked where it will be looked at."""

from __future__ import annotations

import time
from functools import partial

from msgspec import Struct, field

from thoughtline.formats import FORMATS, USUAL
from thoughtline.formats.weighing import check_weight
from thoughtline.gateway.access import Caller
from thoughtline.gateway.asgi import Receive, Scope, read_body
from thoughtline.gateway.choosing import Choices, Conversation
from thoughtline.gateway.encodings import unpacked
from thoughtline.gateway.headers import credentials_of
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.tracing import Trace
from thoughtline.gateway.translating import ClientFormat
from thoughtline.replayer import first_model, guess_model
from thoughtline.sessions import identity_of
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.identity import Identity


class Incoming(Struct):
    """Filled by the first stages. Its body is let go of when nobody will be asked with it any more.

    `began` is when it came, by the performance counter. `encoding` is left where the body is passed on as it came.
    """

    state: State
    scope: Scope
    receive: Receive
    route: Route
    headers: dict[bytes, bytes]
    query: str
    caller: Caller = Caller("", "")
    identity: Identity = Identity("")
    body: bytes = b""
    encoding: str = ""
    model: str = ""
    choices: Choices = Choices(())
    conversation: Conversation = Conversation()
    began: float = field(default_factory=time.perf_counter)
    trace: Trace | None = None

    def __post_init__(self) -> None:
        if self.state.tracing is not None and self.route.action == "generate":
            self.trace = self.state.tracing.begin(self.headers)

    @property
    def credentials(self) -> list[str]:
        """All that the caller shows who it is with."""
        return credentials_of(self.headers, self.query)

    @property
    def client(self) -> ClientFormat:
        route = self.route
        wire = FORMATS[route.format] if route.format is not None else USUAL
        return ClientFormat(wire.name, route.is_streaming, wire.stream_query not in self.query)

    async def read(self) -> None:
        """To its end. What is large is worked on where it holds nobody up."""
        replayer, limit = self.state.replayer, self.state.settings.server.max_body_bytes
        self.identity = Identity(self.caller.tenant)
        body = self.body = await read_body(self.receive, self.headers.get(b"content-length", b""), limit)
        encoding = self.headers.get(b"content-encoding", b"").decode("latin-1")
        if self.route.action == "passthrough" or self.route.format is None:
            self.encoding = encoding
            return
        if encoding:
            body = self.body = await replayer.work_for(body)(partial(unpacked, body, encoding, limit))
        await replayer.work_for(body)(self._peek)

    def _peek(self) -> None:
        """The session and the model that it names; of a body that is too much to read, only what is seen at once."""
        tenant, body = self.caller.tenant, self.body
        try:
            check_weight(body)
        except LimitExceeded:
            self.identity, self.model = identity_of(tenant, self.headers, b""), first_model(body)
            return
        self.identity, self.model = identity_of(tenant, self.headers, body), guess_model(body)
