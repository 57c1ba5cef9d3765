"""One target asked: what is sent to it, and what becomes of it.

The stages of `pipeline.py` prepare the request; `ask` sends it, and heals what is refused; `failure` says what speaks
against this target, if another one may do better.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.addresses import address, with_query_key, without_query_key
from thoughtline.catalogue import Provider, auth_for
from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import Terms
from thoughtline.failover.failures import TargetFailure, failure_of
from thoughtline.formats import FORMATS
from thoughtline.formats.errors import read_error
from thoughtline.formats.paths import Action
from thoughtline.gateway.access import account_of
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.encodings import unpacked
from thoughtline.gateway.estimating import estimate_body, is_uncounted
from thoughtline.gateway.first_event import failure_at_start
from thoughtline.gateway.headers import Headers, request_headers, translated_headers, without_credentials
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.plain_content import HEADER as CONTENT_HEADER
from thoughtline.gateway.plain_content import is_plain
from thoughtline.gateway.secrecy import check_what_goes_up
from thoughtline.gateway.served import RefusalNote
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.replay.refusals import classify
from thoughtline.replayer import Prepared
from thoughtline.translation import Sealer
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.destination import Destination
from thoughtline.values.errors import LimitExceeded, ThoughtlineError

MAX_REFUSAL_BYTES = 4 * 2**20
"""An error that is looked at: some providers repeat the refused input in it. A longer one is passed on unread."""

MOST_WORDS = 2000
"""Characters of a provider's error that are remembered."""

_REFUSALS = frozenset({400, 404, 413, 422})
"""What is wrong with a request itself. Any other error of a second try (429, 5xx) is news, and passed on instead."""


class ErrorResponse(NamedTuple):
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
    """A target, a key to ask it with, and what became of it. Without `has_choice` there is no other target or key."""

    def __init__(
        self,
        incoming: Incoming,
        target: Target,
        key: str,
        *,
        has_choice: bool = False,
        is_last: bool = True,
    ) -> None:
        self.state = incoming.state
        self.incoming = incoming
        self.target = target
        self.key = key
        self.is_last = is_last
        self._has_choice = has_choice
        self.is_generating = incoming.route.action == "generate"
        self.is_translated = target.format != incoming.route.format
        self.client = incoming.client
        self.body = incoming.body
        self.conversation = b""
        self.terms: Terms | None = None
        self.tags: TagMode = "off"
        self.names = NO_NAMES
        self.prepared: Prepared | None = None
        self.refusal: ErrorResponse | None = None
        self.is_rewritten = False
        self.is_streaming = incoming.route.is_streaming
        self.estimate: bytes | None = None
        self.upstream_seconds = 0.0
        self.bytes_up = 0
        self.started_at = 0.0
        self.sends = self.status = 0
        self.error = ""
        self.session: str | None = None
        self.refusals: list[RefusalNote] = []
        self.sent: tuple[bytes, bytes] | None = None
        self._due = 0.0

    @property
    def _is_callers(self) -> bool:
        """Whether what the caller shows may be seen by this target: no key of ours, and no other provider's."""
        return self.incoming.caller.key is None and self.target.is_callers

    @property
    def _credential(self) -> str:
        return self.incoming.caller.credential if self._is_callers else ""

    @property
    def endpoint(self) -> str:
        provider = self.target.provider
        return provider.bases.get(self.target.format, provider.base_url)

    @property
    def destination(self) -> Destination:
        target = self.target
        account = account_of(self.key or self._credential)
        return Destination(target.provider.name, self.endpoint, target.model, target.format, account)

    @property
    def sealer(self) -> Sealer:
        return Sealer(self.state.envelope_key, self.incoming.caller.tenant)

    @property
    def is_beyond_bounds(self) -> bool:
        """Whether the request was more than is ever read, and went up as it came."""
        return self.prepared is not None and isinstance(self.prepared.problem, LimitExceeded)

    @property
    def is_plain(self) -> bool:
        """Whether a chat client takes `content` to be text."""
        incoming, key = self.incoming, self.incoming.caller.key
        if incoming.route.format is None or "content_in_parts" not in FORMATS[incoming.route.format].quirks:
            return False
        of_key, of_all = key.content if key else None, self.state.settings.content
        return is_plain(incoming.headers.get(CONTENT_HEADER, b""), of_key, self.target.provider.content, of_all)

    def answers_at_once(self, *, is_stream: bool) -> bool:
        """Whether the client gets an answer as soon as it begins: from then on nobody else can be asked."""
        return not self.is_rewritten or (is_stream and self.client.is_streaming)

    def take_estimate(self) -> bool:
        """Whether a refusal is that of a provider which counts no tokens: then they are estimated."""
        refusal, prepared = self.refusal, self.prepared
        if refusal is None or prepared is None or self.is_generating:
            return False
        if is_uncounted(refusal.response.status, refusal.plain, self.target.model):
            self.estimate = estimate_body(prepared.body, self.client.format)
        return self.estimate is not None

    def let_go(self) -> None:
        """The answer is on its way to the client: the request need not stay for as long as that takes."""
        if self.prepared is not None:
            self.prepared = self.prepared.summary
        self.body = self.incoming.body = b""

    async def ask(self) -> UpstreamResponse:
        """Ask, and heal what is refused. An error that can't be healed is in `refusal`, the first one."""
        assert self.prepared is not None
        response = await self._send()
        while response.status >= 400:
            healed = await self._refused(response)
            if healed is None:
                self.prepared = replace(self.prepared, healings=0)
                return response
            await response.close()
            self.prepared = healed
            response = await self._send()
        self.refusal = None
        if self.prepared.healings and self.state.settings.replay.learn:
            await self.state.replayer.keep_lessons(self.prepared)
        return response

    async def failure(self, response: UpstreamResponse) -> TargetFailure | None:
        """What an answer says against this target; None if it is one, or about the request."""
        if self.refusal is not None:
            return failure_of(response.status, self.refusal.plain, response.header("retry-after"))
        if not self._has_choice or response.status != 200:
            return None
        due = None if self.is_last else self._due
        return await failure_at_start(response, is_streaming=self.is_streaming, due=due)

    async def _send(self) -> UpstreamResponse:
        assert self.prepared is not None
        incoming, target = self.incoming, self.target
        action: Action = "generate" if self.is_generating else "count_tokens"
        url = address(
            target.provider,
            target.format,
            target.model,
            is_streaming=self.is_streaming or target.provider.streams_only,
            action=action,
            query=self._query if self.is_translated else incoming.query,
        )
        provider, auth = target.provider, auth_for(target.provider, target.format)
        if auth != provider.auth:
            provider = replace(provider, auth=auth)
        received: Headers = incoming.scope["headers"]
        key = self.key
        if self.is_translated:
            received = translated_headers(received, target.format)
            key = key or self._credential  # in the header that this provider reads
        if self.tags != "off" or self.names.client or self.is_plain:
            received = [pair for pair in received if pair[0] != b"accept-encoding"]  # it is read, and edited
        return await self.send_up(provider, "POST", url, key=key, received=received, body=self.prepared.body)

    @property
    def _query(self) -> str:
        """The query of a translated request: the client's own is of another format."""
        return FORMATS[self.target.format].stream_query if self.is_streaming else ""

    async def send_up(
        self, provider: Provider, method: str, url: str, *, key: str, received: Headers, body: bytes
    ) -> UpstreamResponse:
        """Up, as it is."""
        if not self._is_callers:
            received = without_credentials(received, self.incoming.credentials)
            url = without_query_key(url)
        if key and provider.auth == "query":
            url = with_query_key(url, key)
        headers = request_headers(received, provider, key)
        check_what_goes_up(provider.name, url, headers, self.state.admin_token, self.state.keys)
        if self.incoming.encoding:
            headers.append(("content-encoding", self.incoming.encoding))
        self.bytes_up += len(body)
        self.sends += 1
        if self.state.settings.debug.keep_bodies:
            self.sent = self.sent[0] if self.sent is not None else self.incoming.body, body
        began = time.perf_counter()
        self.started_at = self.started_at or began
        self._due = asyncio.get_running_loop().time() + provider.timeouts.first_byte
        try:
            caller = self.incoming.caller.tenant
            response = await self.state.upstreams.send(provider, method, url, headers, body, caller=caller)
            self.status = response.status
            return response
        finally:
            self.upstream_seconds += time.perf_counter() - began

    async def _refused(self, response: UpstreamResponse) -> Prepared | None:
        """What to send instead, after a refusal. The first one is kept: it is what the client's own request got."""
        assert self.prepared is not None
        refusal = ErrorResponse(response, *await response.read_all(MAX_REFUSAL_BYTES))
        self.refusals.append(_noted(response.status, refusal.plain))
        if self.refusal is None or response.status not in _REFUSALS:
            self.refusal = refusal
        if not refusal.is_whole or not self.state.settings.replay.heal or not refusal.plain:
            return None
        return await self.state.replayer.heal(self.prepared, response.status, refusal.plain)


def _noted(status: int, body: bytes) -> RefusalNote:
    """What is remembered of an error to explain it."""
    said = read_error(status, body)
    return RefusalNote(status, time.perf_counter(), said.message[:MOST_WORDS], said.code or "", classify(status, body))
