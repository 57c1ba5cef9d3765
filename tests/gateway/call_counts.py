"""One exchange in process, with a simulated upstream: how many Python functions it calls, and of which module.

Everything is counted, including the standard library, from the call of the application to its return, except this
file's own functions. Counts don't depend on the machine's load.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import FrameType
from typing import Any, TypeVar

import pytest
import uvloop
from msgspec.structs import replace

from tests.gateway.gateways import moved
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway import http_client
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.http_client import Connection
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.stores import open_store
from thoughtline.values.turns import FormatName

Result = TypeVar("Result")
Calls = Counter[tuple[str, str]]
"""By file and function."""

REPLAY = ReplaySettings()
HEADERS = (
    (b"host", b"127.0.0.1:4000"),
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"authorization", b"Bearer sk-made-up"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"application/json"),
    (b"user-agent", b"made-up/1.0"),
)


class MadeUp:
    """A provider: every request gets `pieces`, as a body or as a stream. It also acts as a connection to itself."""

    def __init__(self, pieces: Sequence[bytes], *, is_stream: bool = False) -> None:
        self.pieces = pieces
        self.is_stream = is_stream
        self.body = b""
        self.target = ""

    def answered(self) -> bytes:
        """The response in its wire form."""
        if not self.is_stream:
            body = b"".join(self.pieces)
            return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
                len(body),
                body,
            )
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*self.pieces, b""))

    async def connected(self, _place: object, factory: Callable[[], Connection], _seconds: float) -> Connection:
        connection = factory()
        connection.connection_made(_Transport(self, connection))
        return connection


class _Transport(asyncio.Transport):
    """The transport of a connection: a complete request is answered at once."""

    def __init__(self, provider: MadeUp, connection: Connection) -> None:
        super().__init__()
        self._provider = provider
        self._connection = connection
        self._written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written += data
        head, _, body = self._written.partition(b"\r\n\r\n")
        length = head.rpartition(b"content-length: ")[2]
        if len(body) < int(length):
            return
        self._written = b""
        self._provider.target, self._provider.body = head.split(b" ", 2)[1].decode(), body
        asyncio.get_running_loop().call_soon(self._connection.data_received, self._provider.answered())

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Client:
    """Sends requests to an application like a server does."""

    def __init__(self, app: Gateway, path: str) -> None:
        self.app = app
        self._path = path
        self.sent: list[Any] = []

    async def ask(self, body: bytes) -> bytes:
        """Return the answer's body."""
        self.sent = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "http_version": "1.1",
            "headers": [*HEADERS, (b"content-length", b"%d" % len(body))],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 4000),
        }
        messages = iter(({"type": "http.request", "body": body, "more_body": False},))

        async def receive() -> Any:
            message = next(messages, None)
            return message or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            self.sent.append(message)

        await self.app(scope, receive, send)
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def state(self) -> State:
        return self.app.state

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    async def counted(self, body: bytes) -> Calls:
        """Count the calls of one exchange."""
        calls: Calls = Counter()

        def note(frame: FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename != __file__:
                calls[code.co_filename, code.co_qualname] += 1

        sys.setprofile(note)
        try:
            await self.ask(body)
        finally:
            sys.setprofile(None)
        return calls


def with_gateway(
    provider: MadeUp,
    use: Callable[[Client], Awaitable[Result]],
    path: str = "/deepseek/v1/chat/completions",
    *,
    replay: ReplaySettings = REPLAY,
    formats: tuple[FormatName, ...] = (),
) -> Result:
    """Run a function with a gateway that stores in memory and uses this provider, which speaks only `formats`."""
    deepseek = moved("deepseek", "http://127.0.0.1:9/v1")
    deepseek = replace(deepseek, formats=formats) if formats else deepseek
    settings = replace(Settings(), replay=replay, providers={**PROVIDERS, "deepseek": deepseek})

    async def opened() -> State:
        store = await open_store("memory://", settings.store)
        return make_state(settings, store, await ClientKeys.load(store), Journal())

    async def run() -> Result:
        app = Gateway(opened)
        await app.start()
        try:
            return await use(Client(app, path))
        finally:
            await app.stop()

    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        patch.setattr(http_client, "connected", provider.connected)  # the one seam to the network
        return runner.run(run())
