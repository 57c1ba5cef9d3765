"""One exchange: a request in, planned, sent on, its response back, and what was said in it kept.

route → caller → body → provider and model → prepare → upstream ⟲ heal → relay → journal
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.addresses import Action, address, passthrough_address, with_query_key
from thoughtline.catalogue import Provider, auth_for
from thoughtline.errors import Declined, ThoughtlineError
from thoughtline.gateway.access import Caller, account_of, admit, key_for
from thoughtline.gateway.asgi import ClientGone, Receive, Scope, Send, read_body, send_json, send_whole
from thoughtline.gateway.choosing import Choice, choose, named_provider
from thoughtline.gateway.departure import DRAIN_SECONDS, Departure
from thoughtline.gateway.encodings import unpacked
from thoughtline.gateway.envelopes import envelope
from thoughtline.gateway.headers import (
    Headers,
    request_headers,
    response_headers,
    translated_headers,
    without_credentials,
)
from thoughtline.gateway.journal import Line
from thoughtline.gateway.model_lists import models_body, shape_for
from thoughtline.gateway.relay import Relay
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.translating import (
    Spoken,
    TranslatedExchange,
    TranslatingRelay,
    client_headers,
    translated,
)
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.records import Outcome
from thoughtline.replay.keys import Identity
from thoughtline.replayer import Destination, Prepared
from thoughtline.sessions import Session, session_of
from thoughtline.stores import Saved
from thoughtline.translation import Sealer, translate_error
from thoughtline.watching import StreamWatch, Watch

MAX_REFUSAL_BYTES = 4 * 2**20
"""An error that is looked at: some providers repeat the refused input in it."""

_STREAMS = ("text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream", "application/jsonl")


_STREAM_IN_ADDRESS = ("gemini_generate", "bedrock_converse")

_REFUSALS = frozenset({400, 404, 413, 422})
"""What is wrong with a request itself. Any other error of a second try (429, 5xx) is news, and passed on instead."""


class _Refusal(NamedTuple):
    """An error of the provider, and what was read of it."""

    response: UpstreamResponse
    body: bytes
    is_whole: bool


class Exchange:
    """A request that is being served."""

    def __init__(self, state: State, scope: Scope, route: Route) -> None:
        self._state = state
        self._scope = scope
        self._route = route
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._query: str = scope["query_string"].decode("latin-1")
        self._began = time.perf_counter()
        self._upstream_seconds = 0.0
        self._session = Session(None, None)
        self._caller = Caller("", "")
        self._choice: Choice | None = None
        self._prepared: Prepared | None = None
        self._captured = 0
        self._status = 0
        self._is_streaming = route.is_streaming
        self._relay: Relay | None = None
        self._code = ""
        self._bytes_up = 0
        self._is_degraded = False
        self._refusal: _Refusal | None = None
        self._lane: TranslatedExchange | None = None
        self._departure = Departure(DRAIN_SECONDS if route.action == "generate" else 0.0)
        self.id = secrets.token_hex(8)

    async def run(self, receive: Receive, send: Send) -> None:
        """Serve it. Whatever goes wrong before the first byte becomes an error in the client's own words."""
        try:
            await self._serve(receive, send)
        except ClientGone:
            self._code = "client_gone"
        except asyncio.CancelledError:
            if not self._departure.has_left:
                raise
            self._code = "client_gone"
        except ThoughtlineError as error:
            await self._decline(error, send)
        finally:
            self._departure.stop()
            self._state.journal.tell(self._line())

    async def _serve(self, receive: Receive, send: Send) -> None:
        state, route = self._state, self._route
        client = self._scope.get("client") or ("", 0)
        self._caller = admit(self._headers, self._query, client[0], state.keys)
        state.limits.admit(self._caller.key, time.monotonic())
        declared = self._headers.get(b"content-length", b"")
        body = await read_body(receive, declared, state.settings.server.max_body_bytes)
        self._departure.listen(receive)
        encoding = self._headers.get(b"content-encoding", b"").decode("latin-1")
        if encoding and route.action != "passthrough":
            body = unpacked(body, encoding, state.settings.server.max_body_bytes)
        if route.action == "models" and state.settings.default_provider is None:
            await self._list_models(send)
            return
        if route.action == "passthrough" or route.format is None:
            await self._pass_through(body, send)
            return
        self._choice = choice = choose(state.settings, route, route.format, body)
        self._session = session_of(self._headers, body)
        await self._exchange(choice, body, send)

    async def _exchange(self, choice: Choice, body: bytes, send: Send) -> None:
        provider = choice.provider
        key = key_for(self._caller, provider)
        account = account_of(key or self._caller.credential)
        base = provider.bases.get(choice.format, provider.base_url)
        destination = Destination(provider.name, base, account, choice.model, choice.format)
        identity = Identity(self._caller.tenant, self._session.id, self._session.agent)
        await self._prepare(choice, body, destination, identity)
        with self._state.limits.stream(self._caller.key if self._is_streaming else None):
            await self._converse(choice, key, send)

    async def _prepare(self, choice: Choice, body: bytes, destination: Destination, identity: Identity) -> None:
        """In the client's own format, or translated into the provider's."""
        spoken = self._spoken()
        streams_only = choice.provider.streams_only
        sealer = Sealer(self._state.envelope_key, identity.tenant)
        if choice.format != spoken.format:
            if self._route.action == "count_tokens":
                raise _not_counted(choice)
            self._lane = await translated(
                self._state.replayer, body, spoken, destination, identity, sealer, streams_only=streams_only
            )
            self._prepared, self._is_streaming = self._lane.prepared, self._lane.spoken.is_streaming
            return
        edits = (("stream", b"true"),) if streams_only and spoken.format not in _STREAM_IN_ADDRESS else ()
        rename = choice.model if not self._route.model else ""
        self._prepared = await self._state.replayer.prepare(body, destination, identity, rename, edits)
        if self._prepared.transcript is not None and self._prepared.transcript.is_streaming:
            self._is_streaming = True
        if streams_only and not self._is_streaming and self._prepared.transcript is not None:
            self._lane = TranslatedExchange(self._prepared, spoken, sealer)

    def _spoken(self) -> Spoken:
        assert self._route.format is not None
        is_array = self._route.format == "gemini_generate" and "alt=sse" not in self._query
        return Spoken(self._route.format, self._route.is_streaming, is_array)

    async def _converse(self, choice: Choice, key: str, send: Send) -> None:
        """Ask, mend what is refused, pass the answer on."""
        assert self._prepared is not None
        response = await self._ask(choice, key)
        try:
            while response.status >= 400:
                healed = await self._refused(response)
                if healed is None:
                    await self._pass_refusal(send)
                    return
                await response.close()
                self._prepared = healed
                self._lane = self._lane._replace(prepared=healed) if self._lane else None
                response = await self._ask(choice, key)
            if self._prepared.healings and self._state.settings.replay.learn:
                await self._state.replayer.keep_lessons(self._prepared)
            await self._pass_down(response, send)
        finally:
            await response.close()

    async def _ask(self, choice: Choice, key: str) -> UpstreamResponse:
        assert self._prepared is not None
        action: Action = "count_tokens" if self._route.action == "count_tokens" else "generate"
        url = address(
            choice.provider,
            choice.format,
            choice.model,
            is_streaming=self._is_streaming or choice.provider.streams_only,
            action=action,
            query=self._query if choice.format == self._route.format else _query_of(choice, self._is_streaming),
        )
        provider, auth = choice.provider, auth_for(choice.provider, choice.format)
        if auth != provider.auth:
            provider = replace(provider, auth=auth)
        return await self._send_up(provider, "POST", url, key, self._prepared.body)

    async def _send_up(self, provider: Provider, method: str, url: str, key: str, body: bytes) -> UpstreamResponse:
        received: Headers = self._scope["headers"]
        if self._choice is not None and self._route.format not in (None, self._choice.format):
            received = translated_headers(received, self._choice.format)
            key = key or self._caller.credential  # in the header that this provider reads
        if self._caller.key is not None:
            received = without_credentials(received)
        if key and provider.auth == "query":
            url = with_query_key(url, key)
        headers = request_headers(received, provider, key)
        encoding = self._headers.get(b"content-encoding")
        if encoding and self._route.action == "passthrough":
            headers.append(("content-encoding", encoding.decode("latin-1")))
        self._bytes_up += len(body)
        began = time.perf_counter()
        response = await self._state.upstreams.send(provider, method, url, headers, body)
        self._upstream_seconds += time.perf_counter() - began
        return response

    async def _refused(self, response: UpstreamResponse) -> Prepared | None:
        """What to send instead, after a refusal. The first one is kept: it is what the client's own request got."""
        assert self._prepared is not None
        body, is_whole = await _read_refusal(response)
        if self._refusal is None or response.status not in _REFUSALS:
            self._refusal = _Refusal(response, body, is_whole)
        if not is_whole or not self._state.settings.replay.heal:
            return None
        encoding = response.header("content-encoding")
        try:
            plain = unpacked(body, encoding, MAX_REFUSAL_BYTES) if encoding else body
        except ThoughtlineError:
            return None
        return await self._state.replayer.heal(self._prepared, response.status, plain)

    async def _pass_refusal(self, send: Send) -> None:
        """The provider's own error, untouched."""
        assert self._refusal is not None
        assert self._prepared is not None
        self._prepared = replace(self._prepared, healings=0)
        first, body, is_whole = self._refusal
        if self._lane is not None and self._lane.spoken.format != self._lane.prepared.destination.format:
            await self._pass_translated_refusal(first, body, self._lane.spoken, send)
            return
        relay = Relay(first, self._down(first), None, self._keep, 0.0, self._departure)
        self._relay, self._status = relay, first.status
        await relay.pass_read(send, body, is_whole)

    async def _pass_translated_refusal(
        self, response: UpstreamResponse, body: bytes, spoken: Spoken, send: Send
    ) -> None:
        """The provider's error in the words of the client's format."""
        encoding = response.header("content-encoding")
        try:
            plain = unpacked(body, encoding, MAX_REFUSAL_BYTES) if encoding else body
        except ThoughtlineError:
            plain = b""
        self._status, told = translate_error(response.status, plain, spoken.format)
        headers = client_headers(self._down(response), spoken, is_stream=False)
        await send_whole(send, self._status, [*headers, (b"content-length", str(len(told)).encode())], told)

    def _relay_for(self, response: UpstreamResponse, watch: Watch | None, is_stream: bool) -> Relay:
        hold = self._state.settings.replay.hold_ms / 1000
        lane = self._lane
        if lane is None or watch is None:
            return Relay(response, self._down(response), watch, self._keep, hold, self._departure)
        headers = client_headers(self._down(response), lane.spoken, lane.spoken.is_streaming)
        way = lane.way(self._state.clock())
        return TranslatingRelay(response, headers, watch, self._keep, hold, self._departure, way, lane.spoken)

    async def _pass_down(self, response: UpstreamResponse, send: Send) -> None:
        prepared = self._prepared
        kind = response.header("content-type").partition(";")[0].strip().lower()
        is_stream = kind in _STREAMS or (self._is_streaming and kind != "application/json")
        up = self._choice.format if self._choice else None
        is_stream = is_stream or (self._is_streaming and up == "gemini_generate")
        watch: Watch | None = None
        if prepared is not None and prepared.transcript is not None and self._is_capturable(response):
            watch = StreamWatch(prepared) if is_stream else Watch(prepared)
        relay = self._relay = self._relay_for(response, watch, is_stream)
        self._status = response.status
        began = time.perf_counter()
        try:
            if is_stream or watch is None:
                with self._state.journal.streaming():
                    await relay.pass_stream(send)
            else:
                await relay.pass_whole(send)
        finally:
            self._upstream_seconds += time.perf_counter() - began - relay.held_seconds
            await relay.settle()

    def _is_capturable(self, response: UpstreamResponse) -> bool:
        return self._route.action == "generate" and response.status == 200

    async def _pass_through(self, body: bytes, send: Send) -> None:
        """An address that is none of ours: up as it came, down as it came."""
        provider = named_provider(self._state.settings, self._route)
        self._choice = Choice(provider, "", provider.formats[0])
        key = key_for(self._caller, provider)
        url = passthrough_address(provider, self._route.path, self._query)
        response = await self._send_up(provider, self._scope["method"], url, key, body)
        try:
            await self._pass_down(response, send)
        finally:
            await response.close()

    async def _list_models(self, send: Send) -> None:
        """What can be asked for here, in the client's own shape."""
        listed = await self._state.models.listed(self._state.settings, self._state.upstreams)
        self._status = 200
        body = models_body(listed.names, shape_for(self._route.path, self._headers))
        headers = self._own_headers()
        if listed.silent:
            headers.append((b"x-thoughtline-unlisted", ", ".join(listed.silent).encode("latin-1", "replace")))
        await send_json(send, 200, body, headers)

    async def _keep(self, watch: Watch) -> None:
        """Save what a watch has heard to its end."""
        records = watch.take(self._state.clock(), self._outcome())
        if records:
            self._captured += len(records)
            saved = await self._state.replayer.save(records)
            self._is_degraded = saved is None or (self._state.is_durable and saved is not Saved.DURABLE)

    def _outcome(self) -> Outcome:
        outcome = self._prepared.outcome if self._prepared else Outcome()
        return replace(
            outcome,
            request=self.id,
            upstream_ms=round(self._upstream_seconds * 1000, 1),
            own_ms=round((time.perf_counter() - self._began - self._upstream_seconds) * 1000, 2),
        )

    def _down(self, response: UpstreamResponse) -> Headers:
        return [*response_headers(response.headers), *self._own_headers()]

    def _own_headers(self) -> Headers:
        return [(b"x-thoughtline-replay", self._summary()), (b"x-thoughtline-request", self.id.encode())]

    def _summary(self) -> bytes:
        done = self._prepared.outcome if self._prepared else Outcome()
        health = self._state.store_health
        told = (
            f"restored={done.restored}, inherited={done.inherited}, blank={done.blank}, stripped={done.stripped}, "
            f"missing={done.missing}, healed={done.healed}, checkpoints={done.checkpoints}"
        )
        return (told if health == "ok" else f"{told}, store={health}").encode()

    async def _decline(self, error: ThoughtlineError, send: Send) -> None:
        declined = error if isinstance(error, Declined) else _as_declined(error)
        self._status, self._code = declined.status, declined.code
        body = envelope(declined, self._route.format, self.id)
        headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if declined.retry_after_seconds is not None:
            headers.append((b"retry-after", str(math.ceil(declined.retry_after_seconds)).encode()))
        await send_whole(send, declined.status, [*headers, *self._own_headers()], body)

    def _line(self) -> Line:
        outcome = self._outcome()
        choice, relay = self._choice, self._relay
        prepared_problem = self._prepared.problem if self._prepared else None
        return Line(
            at=self._state.clock(),
            request=self.id,
            tenant=self._caller.tenant,
            method=self._scope["method"],
            route=self._route.action,
            provider=choice.provider.name if choice else "",
            format=self._route.format or "",
            model=choice.model if choice else "",
            status=self._status,
            session=self._session.id,
            agent=self._session.agent,
            is_streaming=self._is_streaming,
            restored=outcome.restored,
            inherited=outcome.inherited,
            blank=outcome.blank,
            stripped=outcome.stripped,
            missing=outcome.missing,
            healed=outcome.healed,
            checkpoints=outcome.checkpoints,
            findings=outcome.findings,
            captured=self._captured,
            upstream_ms=outcome.upstream_ms,
            own_ms=outcome.own_ms,
            bytes_up=self._bytes_up,
            bytes_down=relay.bytes_down if relay else 0,
            store="degraded" if self._is_degraded else self._state.store_health,
            code=self._code,
            note=relay.note if relay and relay.note else "unread" if prepared_problem else "",
        )


async def _read_refusal(response: UpstreamResponse) -> tuple[bytes, bool]:
    """The body of an error, and whether that is all of it: a longer one, or one that breaks off, is not looked at."""
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            piece = await response.read()
        except UpstreamCut:
            return b"".join(pieces), False
        if piece is None:
            return b"".join(pieces), True
        pieces.append(piece)
        size += len(piece)
        if size > MAX_REFUSAL_BYTES:
            return b"".join(pieces), False


def _query_of(choice: Choice, is_streaming: bool) -> str:
    """The query of a translated request: the client's own is of another format."""
    return "alt=sse" if choice.format == "gemini_generate" and is_streaming else ""


def _not_counted(choice: Choice) -> Declined:
    return Declined(
        400,
        "tokens_not_counted",
        f"{choice.provider.name} can't count tokens in this format.",
        "Ask it in a format of its own, or count without it.",
    )


def _as_declined(error: ThoughtlineError) -> Declined:
    """Any other error of ours, as a refusal: its message may be shown, for it never holds content."""
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("_")
    return Declined(error.status, code, str(error))
