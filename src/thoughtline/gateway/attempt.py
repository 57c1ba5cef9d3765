"""One target asked: the request prepared for it, sent, and mended where it is refused.

prepare     in the client's own format or translated; what was lost is put back, what others thought is quoted
ask         up, with the key that is due; a refusal about reasoning is mended and sent again
failure     what speaks against this target, if another one may do better
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.addresses import Action, address, with_query_key, without_query_key
from thoughtline.catalogue import Provider, auth_for
from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import HEADER, Terms, setting_for, tag_mode_for, terms_for
from thoughtline.failover.failures import Failure, failure_of
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight
from thoughtline.gateway.access import Caller, account_of
from thoughtline.gateway.asgi import Scope
from thoughtline.gateway.beginnings import failure_at_start
from thoughtline.gateway.choosing import Choice, Target
from thoughtline.gateway.edits import Edits, EditsAnswer
from thoughtline.gateway.encodings import unpacked
from thoughtline.gateway.estimating import counted_request, estimate_body, is_uncounted
from thoughtline.gateway.headers import (
    Headers,
    credentials_of,
    request_headers,
    translated_headers,
    without_credentials,
)
from thoughtline.gateway.held_state import check_held
from thoughtline.gateway.kept_responses import keep, unfolded
from thoughtline.gateway.plain_content import HEADER as CONTENT_HEADER
from thoughtline.gateway.plain_content import PlainContent, is_plain
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.routing import Route
from thoughtline.gateway.secrecy import check_what_goes_up
from thoughtline.gateway.state import State
from thoughtline.gateway.tagging import TaggedAnswer
from thoughtline.gateway.translating import Spoken, TranslatedExchange, translated
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.replay.keys import Identity
from thoughtline.replayer import Carried, Destination, Prepared
from thoughtline.sessions import Session
from thoughtline.translation import Sealer
from thoughtline.translation.own_format import adapt
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.errors import LimitExceeded, ThoughtlineError
from thoughtline.values.turns import Provenance
from thoughtline.watching import provenance_of

MAX_REFUSAL_BYTES = 4 * 2**20
"""An error that is looked at: some providers repeat the refused input in it."""

_REFUSALS = frozenset({400, 404, 413, 422})
"""What is wrong with a request itself. Any other error of a second try (429, 5xx) is news, and passed on instead."""

_STREAM_IN_ADDRESS = ("gemini_generate", "bedrock_converse")


class Incoming(Struct):
    """A request as it came, and who sent it. Its body is let go of when nobody will be asked with it any more."""

    scope: Scope
    route: Route
    headers: dict[bytes, bytes]
    query: str
    caller: Caller
    session: Session
    body: bytes
    encoding: str = ""
    model: str = ""

    @property
    def identity(self) -> Identity:
        return Identity(self.caller.tenant, self.session.id, self.session.agent)

    @property
    def credentials(self) -> list[str]:
        """All that the caller shows who it is with."""
        return credentials_of(self.headers, self.query)

    @property
    def spoken(self) -> Spoken:
        assert self.route.format is not None
        is_array = self.route.format == "gemini_generate" and "alt=sse" not in self.query
        return Spoken(self.route.format, self.route.is_streaming, is_array)


class Asked(NamedTuple):
    """A target and a key to ask it with. `has_choice`: there are other targets or keys; `is_last`: none is left."""

    target: Target
    key: str
    has_choice: bool
    is_last: bool

    @property
    def provider(self) -> Provider:
        return self.target.choice.provider


class Refusal(NamedTuple):
    """An error of the provider, and what was read of it."""

    response: UpstreamResponse
    body: bytes
    is_whole: bool

    @property
    def plain(self) -> bytes:
        """Its body without compression; empty if that can't be undone."""
        encoding = self.response.header("content-encoding")
        try:
            return unpacked(self.body, encoding, MAX_REFUSAL_BYTES) if encoding else self.body
        except ThoughtlineError:
            return b""


class Attempt:
    """A target and what became of asking it."""

    def __init__(self, state: State, incoming: Incoming, target: Target, key: str) -> None:
        self._state = state
        self._incoming = incoming
        self._key = key
        self._due = 0.0
        self._made: Provenance | None = None
        self.target = target
        self.choice = target.choice
        self.prepared: Prepared | None = None
        self.lane: TranslatedExchange | None = None
        self.refusal: Refusal | None = None
        self.is_streaming = incoming.route.is_streaming
        self.tags: TagMode = "off"
        self._names = NO_NAMES
        self.asked = b""
        self.estimate: bytes | None = None
        self.upstream_seconds = 0.0
        self.bytes_up = 0

    @property
    def is_translated(self) -> bool:
        return self.choice.format != self._incoming.route.format

    @property
    def _is_callers(self) -> bool:
        """Whether what the caller shows may be seen by this target: no key of ours, and no other provider's."""
        return self._incoming.caller.key is None and self.target.is_callers

    @property
    def _credential(self) -> str:
        return self._incoming.caller.credential if self._is_callers else ""

    @property
    def is_beyond_bounds(self) -> bool:
        """Whether the request was more than is ever read, and went up as it came."""
        return self.prepared is not None and isinstance(self.prepared.problem, LimitExceeded)

    async def prepare(self) -> None:
        """What to send. Raises where the request can't be carried into the provider's format."""
        incoming, choice = self._incoming, self.choice
        provider = choice.provider
        if incoming.route.action == "generate":
            check_held(incoming.body, provider, incoming.spoken.format, is_translated=self.is_translated)
        account = account_of(self._key or self._credential)
        base = provider.bases.get(choice.format, provider.base_url)
        destination = Destination(provider.name, base, account, choice.model, choice.format)
        sealer = Sealer(self._state.envelope_key, incoming.caller.tenant)
        if self.is_translated and incoming.route.action == "count_tokens":
            await self._estimate(destination, sealer)
            return
        if self.is_translated:
            await self._translate(destination, sealer)
        else:
            await self._prepare_own(destination, sealer)
        assert self.prepared is not None
        told = provider.tags if provider.tags is not None else self._state.settings.tags
        self.tags = tag_mode_for(told, self._terms() is not None, self.prepared.contract.dialect)

    async def _translate(self, destination: Destination, sealer: Sealer) -> None:
        incoming = self._incoming
        body = counted_request(incoming.body) if incoming.route.action == "count_tokens" else incoming.body
        if incoming.spoken.format == "openai_responses":
            work = self._state.replayer.work_for(body)
            await work(partial(check_weight, body))
            body = self.asked = await unfolded(self._state.store, incoming.caller.tenant, body, work)
        self.lane = await translated(
            self._state.replayer,
            body,
            incoming.spoken,
            destination,
            incoming.identity,
            sealer,
            self._terms(),
            streams_only=self.choice.provider.streams_only,
            missing_tools=self._state.settings.translation.missing_tools,
        )
        self.prepared, self.is_streaming = self.lane.prepared, self.lane.spoken.is_streaming
        self._made = provenance_of(self.prepared) if self.asked else None

    async def _estimate(self, destination: Destination, sealer: Sealer) -> None:
        """Of what would be sent; where that can't be made, of what came."""
        incoming = self._incoming
        try:
            await self._translate(destination, sealer)
        except ThoughtlineError:
            self.prepared = self.lane = None
        body = self.prepared.body if self.prepared else counted_request(incoming.body)
        self.estimate = estimate_body(body, incoming.spoken.format)

    def take_estimate(self) -> bool:
        """Whether a refusal is that of a provider which counts no tokens: then they are estimated."""
        refusal, prepared = self.refusal, self.prepared
        if refusal is None or prepared is None or self._incoming.route.action != "count_tokens":
            return False
        if is_uncounted(refusal.response.status, refusal.plain, self.choice.model):
            self.estimate = estimate_body(prepared.body, self._incoming.spoken.format)
        return self.estimate is not None

    async def _prepare_own(self, destination: Destination, sealer: Sealer) -> None:
        incoming, streams_only = self._incoming, self.choice.provider.streams_only
        spoken = incoming.spoken
        edits = (("stream", b"true"),) if streams_only and spoken.format not in _STREAM_IN_ADDRESS else ()
        model = self.choice.model if not incoming.route.model else ""
        contract = self._state.replayer.contract_for(destination)
        adapted = adapt(incoming.body, spoken.format, contract, self._state.settings.translation.missing_tools)
        self._names = adapted.names
        self.prepared = await self._state.replayer.prepare(
            adapted.body,
            destination,
            incoming.identity,
            model,
            edits,
            self._terms(),
            Carried(findings=adapted.findings, tools=adapted.names),
        )
        transcript = self.prepared.transcript
        if transcript is not None and transcript.is_streaming:
            self.is_streaming = True
        if streams_only and not self.is_streaming and transcript is not None:
            self.lane = TranslatedExchange(self.prepared, spoken, sealer)

    def edits(self, *, is_stream: bool) -> Edits | None:
        """What the answer loses or changes on its way to the client; None if it goes on as it comes."""
        route, edits = self._incoming.route, list[EditsAnswer]()
        if route.format is None or self.prepared is None:
            return None
        if self._names.client:
            edits.append(RenamedCalls(self._names))
        if self._is_plain:
            edits.append(PlainContent())
        if self.tags != "off":
            dialect = FORMATS[route.format].dialect if self.is_translated else self.prepared.contract.dialect
            edits.append(TaggedAnswer(route.format, self.tags, dialect, is_stream=is_stream))
        return Edits(edits) if edits else None

    @property
    def _is_plain(self) -> bool:
        incoming, key = self._incoming, self._incoming.caller.key
        if incoming.route.format != "openai_chat":
            return False
        of_key, of_all = key.content if key else None, self._state.settings.content
        return is_plain(incoming.headers.get(CONTENT_HEADER, b""), of_key, self.choice.provider.content, of_all)

    def answers_at_once(self, *, is_stream: bool) -> bool:
        """Whether the client hears of an answer as soon as it begins: from then on nobody else can be asked."""
        return self.lane is None or (is_stream and self.lane.spoken.is_streaming)

    def let_go(self) -> None:
        """The answer is on its way to the client: what was asked need not stay for as long as that takes."""
        if self.prepared is not None:
            self.prepared, self.lane = self.prepared.told, None
        self._incoming.body = b""

    async def keep_answer(self, body: bytes) -> None:
        """An answer that a client of Responses may name in its next request."""
        if self._made is not None:
            await keep(self._state.store, self._made, self.asked, body, self._state.clock())

    def _terms(self) -> Terms | None:
        told = self._state.settings.continuity
        terms = Terms(told.mode, told.count, told.max_chars, told.after_compaction)
        if self._incoming.route.action != "generate":
            return None
        header = self._incoming.headers.get(HEADER, b"")
        route = self._state.settings.routes.get(self.target.route)
        of_route = route.continuity if route else None
        of_model = setting_for(self.choice.name, told.models)
        return terms_for(terms, told.enabled, header, of_route, of_model, self.choice.provider.continuity)

    async def ask(self) -> UpstreamResponse:
        """Ask, and mend what is refused. An error that can't be mended is in `refusal`, the first one."""
        assert self.prepared is not None
        response = await self._send()
        while response.status >= 400:
            healed = await self._refused(response)
            if healed is None:
                self.prepared = replace(self.prepared, healings=0)
                return response
            await response.close()
            self.prepared = healed
            self.lane = self.lane._replace(prepared=healed) if self.lane else None
            response = await self._send()
        self.refusal = None
        if self.prepared.healings and self._state.settings.replay.learn:
            await self._state.replayer.keep_lessons(self.prepared)
        return response

    async def failure(self, response: UpstreamResponse, asked: Asked) -> Failure | None:
        """What an answer says against this target; None if it is one, or about the request."""
        if self.refusal is not None:
            return failure_of(response.status, self.refusal.plain, response.header("retry-after"))
        if not asked.has_choice or response.status != 200:
            return None
        due = None if asked.is_last else self._due
        return await failure_at_start(response, is_streaming=self.is_streaming, due=due)

    async def _send(self) -> UpstreamResponse:
        assert self.prepared is not None
        incoming, choice = self._incoming, self.choice
        action: Action = "count_tokens" if incoming.route.action == "count_tokens" else "generate"
        query = _query_of(choice, self.is_streaming) if self.is_translated else incoming.query
        url = address(
            choice.provider,
            choice.format,
            choice.model,
            is_streaming=self.is_streaming or choice.provider.streams_only,
            action=action,
            query=query,
        )
        provider, auth = choice.provider, auth_for(choice.provider, choice.format)
        if auth != provider.auth:
            provider = replace(provider, auth=auth)
        received: Headers = incoming.scope["headers"]
        key = self._key
        if self.is_translated:
            received = translated_headers(received, choice.format)
            key = key or self._credential  # in the header that this provider reads
        if self.tags != "off" or self._is_plain or self._names.client:
            received = [pair for pair in received if pair[0] != b"accept-encoding"]  # it is read, and edited
        return await self.send_up(provider, "POST", url, key, received, self.prepared.body)

    async def send_up(
        self, provider: Provider, method: str, url: str, key: str, received: Headers, body: bytes
    ) -> UpstreamResponse:
        """Up, as it is."""
        if not self._is_callers:
            received = without_credentials(received, self._incoming.credentials)
            url = without_query_key(url)
        if key and provider.auth == "query":
            url = with_query_key(url, key)
        headers = request_headers(received, provider, key)
        check_what_goes_up(provider.name, url, headers, self._state.admin_token, self._state.keys)
        if self._incoming.encoding:
            headers.append(("content-encoding", self._incoming.encoding))
        self.bytes_up += len(body)
        began = time.perf_counter()
        self._due = asyncio.get_running_loop().time() + provider.timeouts.first_byte
        try:
            caller = self._incoming.caller.tenant
            return await self._state.upstreams.send(provider, method, url, headers, body, caller=caller)
        finally:
            self.upstream_seconds += time.perf_counter() - began

    async def _refused(self, response: UpstreamResponse) -> Prepared | None:
        """What to send instead, after a refusal. The first one is kept: it is what the client's own request got."""
        assert self.prepared is not None
        refusal = Refusal(response, *await _read_refusal(response))
        if self.refusal is None or response.status not in _REFUSALS:
            self.refusal = refusal
        if not refusal.is_whole or not self._state.settings.replay.heal or not refusal.plain:
            return None
        return await self._state.replayer.heal(self.prepared, response.status, refusal.plain)


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
