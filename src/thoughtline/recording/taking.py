"""Records exchanges as they pass through a gateway that changes nothing, or one in front of another gateway.

Exchanges are held in memory, up to a limit, and written only after they are scrubbed. Clients never wait for that.
"""

from __future__ import annotations

from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.request_url import UNLISTED, provider_of
from thoughtline.formats import FORMATS
from thoughtline.gateway.app import Gateway, MakeState
from thoughtline.gateway.asgi import Message, Receive, Scope, Send, error_body, send_json
from thoughtline.gateway.connecting import ConnectFailed
from thoughtline.gateway.http_client import HttpClient, UpstreamCut
from thoughtline.gateway.routing import Route, route_of
from thoughtline.gateway.websocket_protocol import WebSocket
from thoughtline.recording.form import TakenExchange
from thoughtline.values.errors import Declined

MAX_BYTES = 64 * 2**20
"""Limit for all bodies of a recording."""

_OF_A_CONNECTION = frozenset(
    {"host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "expect"}
)


class TakenExchanges:
    """The exchanges recorded so far. Those without room are counted."""

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self.exchanges: list[TakenExchange] = []
        self.left_out = 0
        self._most_bytes = most_bytes
        self._bytes = 0

    def add(self, exchange: TakenExchange) -> None:
        self.exchanges.append(exchange)

    def grow(self, exchange: TakenExchange, *, request: bytes = b"", answer: bytes = b"") -> None:
        """Add a piece of an exchange; an exchange without room for it is left out completely."""
        if exchange not in self.exchanges:
            return
        self._bytes += len(request) + len(answer)
        exchange.request += request
        exchange.answer += answer
        if self._bytes > self._most_bytes:
            self._bytes -= exchange.size
            self.exchanges.remove(exchange)
            self.left_out += 1

    @property
    def answered(self) -> list[TakenExchange]:
        """The exchanges whose answers have begun."""
        return [one for one in self.exchanges if one.status]


class RecordingGateway(Gateway):
    """Passes everything on as it came and takes what is asked of models. `through` is another gateway's address;
    without it, the providers are asked. `provider` is the name for addresses that name none."""

    def __init__(self, make_state: MakeState, taken: TakenExchanges, *, through: str = "", provider: str = "") -> None:
        super().__init__(make_state)
        self._taken = taken
        self._through = through.rstrip("/")
        self._provider = provider
        self._client = HttpClient()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await super().__call__(scope, receive, send)
            return
        raw = (scope.get("raw_path") or scope["path"].encode("latin-1", "replace")).decode("latin-1")
        route = route_of(scope["method"], raw, self.state.settings.providers)
        if route.format is not None and route.action in ("generate", "compact"):
            receive, send = self._watch(scope, receive, send, self._begun(scope, route))
        if self._through:
            await self._pass_through(scope, receive, send, raw)
        elif route.action == "passthrough" and route.provider is None:
            refusal = Declined(404, "not_recorded", "This address is no provider's.", "Ask at /PROVIDER.")
            await send_json(send, refusal.status, error_body(refusal, None, ""))
        else:
            await super().__call__(scope, receive, send)

    def websocket_route(self, path: bytes) -> Route | None:
        """Return None: clients then use HTTP, which is recorded."""
        return None

    async def serve_websocket(self, route: Route, socket: WebSocket) -> None:
        raise NotImplementedError  # no route leads here

    async def stop(self) -> None:
        self._client.close()
        await super().stop()

    def _begun(self, scope: Scope, route: Route) -> TakenExchange:
        assert route.format is not None
        query = scope["query_string"].decode("latin-1")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        exchange = TakenExchange(
            route.provider or self._named(),
            FORMATS[route.format],
            f"{route.path}?{query}" if query else route.path,
            headers,
        )
        self._taken.add(exchange)
        return exchange

    def _named(self) -> str:
        """The provider for an address without a provider's name."""
        settings = self.state.settings
        default: Provider | None = settings.providers.get(self._provider or settings.default_provider or "")
        return default.name if default is not None else provider_of(self._through) if self._through else UNLISTED

    def _watch(self, scope: Scope, receive: Receive, send: Send, exchange: TakenExchange) -> tuple[Receive, Send]:
        taken = self._taken

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                taken.grow(exchange, request=message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                exchange.answer_headers = {
                    bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
                    for name, value in message.get("headers", ())
                }
            elif message["type"] == "http.response.body":
                taken.grow(exchange, answer=message.get("body", b""))
            await send(message)

        return received, sent

    async def _pass_through(self, scope: Scope, receive: Receive, send: Send, raw: str) -> None:
        """Forward to the other gateway and back, byte for byte."""
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name.decode("latin-1").lower() not in _OF_A_CONNECTION
        ]
        query = scope["query_string"].decode("latin-1")
        url = self._through + raw + (f"?{query}" if query else "")
        try:
            response = await self._client.send(scope["method"], url, headers, body)
        except (ConnectFailed, TimeoutError, UpstreamCut):
            refusal = Declined(
                502, "no_gateway", f"No gateway answers at {self._through}.", "Start it, or change --through."
            )
            await send_json(send, refusal.status, error_body(refusal, None, ""))
            return
        kept = [pair for pair in response.headers if pair[0].lower() not in _OF_A_CONNECTION - {"content-length"}]
        sent = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in kept]
        try:
            await send({"type": "http.response.start", "status": response.status, "headers": sent})
            while (piece := await response.read()) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except UpstreamCut:
            return  # the server then also closes the client's connection
        finally:
            await response.close()
