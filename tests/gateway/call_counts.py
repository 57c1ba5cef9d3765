"""One exchange in process, with a made-up upstream behind it: how many Python functions it calls, and whose.

Everything is counted, the standard library's functions too, from the call of the application to its return; only this
file's own are not. Counts don't depend on how busy the machine is.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import FrameType
from typing import Any, TypeVar

import uvloop
from msgspec.structs import replace
from pyreqwest.bytes import Bytes
from pyreqwest.http import HeaderMap

from tests.gateway.gateways import moved
from thoughtline.catalogue import PROVIDERS
from thoughtline.gateway import upstream
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.stores import open_store

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


class _Answer:
    """What pyreqwest gives for a request: the request itself, its response, and the reader of that."""

    version = "HTTP/1.1"
    status = 200

    def __init__(self, headers: Sequence[tuple[str, str]], pieces: Iterable[bytes]) -> None:
        self.headers = HeaderMap(list(headers))
        self.body_reader = self
        self._pieces = iter(pieces)

    async def __aenter__(self) -> _Answer:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def read_chunk(self) -> Bytes | None:
        piece = next(self._pieces, None)
        return None if piece is None else Bytes(piece)


class MadeUp:
    """A provider: every request gets `pieces`, in one body or as a stream."""

    def __init__(self, pieces: Sequence[bytes], *, is_stream: bool = False) -> None:
        self.pieces = pieces
        self.is_stream = is_stream
        self.body = b""

    def client(self, _timeouts: object) -> MadeUp:
        return self

    def request(self, _method: str, _url: str) -> MadeUp:
        return self

    def headers(self, _headers: object) -> MadeUp:
        return self

    def body_bytes(self, body: bytes) -> MadeUp:
        self.body = body
        return self

    def streamed_read_buffer_limit(self, _limit: int) -> MadeUp:
        return self

    def build_streamed(self) -> _Answer:
        if self.is_stream:
            headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]
        else:
            length = sum(map(len, self.pieces))
            headers = [("content-type", "application/json"), ("content-length", str(length))]
        return _Answer(headers, self.pieces)

    async def close(self) -> None:
        pass


class Client:
    """Asks an application as a server would."""

    def __init__(self, app: Gateway, path: str) -> None:
        self.app = app
        self._path = path
        self.sent: list[Any] = []

    async def ask(self, body: bytes) -> bytes:
        """The answer's body."""
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
        """The calls of one exchange."""
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
) -> Result:
    """Do something with a gateway that remembers in memory and asks this provider."""
    settings = replace(
        Settings(), replay=replay, providers={**PROVIDERS, "deepseek": moved("deepseek", "http://127.0.0.1:9/v1")}
    )

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

    built = upstream._built  # the one seam to the HTTP client
    upstream._built = provider.client  # type: ignore[assignment]  # as much of a client as is used
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run())
    finally:
        upstream._built = built
