"""One target asked: what is sent to it, and what becomes of it.

The stages of `pipeline.py` prepare the request; `ask` sends it, and heals what is refused; `failure` says what speaks
against this target, if another one may do better.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import Terms
from thoughtline.destinations.addresses import address, passthrough_address, with_query_key, without_query_key
from thoughtline.destinations.catalogue import Provider, ReplayMode
from thoughtline.destinations.credentials import account_of, credentials_of
from thoughtline.engine.request import MemberEdits, Prepared, with_finding
from thoughtline.failover.failures import TargetFailure, failure_of
from thoughtline.formats import FORMATS, USUAL
from thoughtline.formats.encodings import unpacked
from thoughtline.formats.errors import read_error
from thoughtline.formats.paths import Action
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.doors import door_for, door_named, reported
from thoughtline.gateway.estimating import count_body, count_of, estimate_tokens, is_uncounted
from thoughtline.gateway.first_event import failure_at_start
from thoughtline.gateway.headers import (
    Headers,
    check_what_goes_up,
    request_headers,
    translated_headers,
    without_betas,
    without_credentials,
)
from thoughtline.gateway.http_client import UpstreamResponse
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.masking import MASK
from thoughtline.gateway.modes import HEADER as MODE_HEADER
from thoughtline.gateway.modes import mode_of
from thoughtline.gateway.plain_content import HEADER as CONTENT_HEADER
from thoughtline.gateway.plain_content import is_plain
from thoughtline.gateway.recent import KeptBodies, RefusalNote, kept_bodies
from thoughtline.gateway.translating import ClientFormat
from thoughtline.gateway.upstream_socket import HELD_SOCKET, HeldSocket
from thoughtline.providers import Contract, host_named
from thoughtline.providers.betas import BETA_HEADER
from thoughtline.replay.findings import Finding
from thoughtline.replay.refusals import Correction
from thoughtline.translation import Sealer
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined, DecodeError, EncodeError, ThoughtlineError
from thoughtline.values.outcome import NoteChain, Outcome

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
        encoding = self.response.encoding
        try:
            return unpacked(self.body, encoding, MAX_REFUSAL_BYTES) if encoding else self.body
        except ThoughtlineError:
            return b""


class Attempt:
    """A target, a key to ask it with, and what became of it. Without `has_choice` there is no other target or key.

    `_is_callers`: what the caller shows may be seen by this target, being no key of ours and no other provider's.
    `uncounted` is a request whose tokens are asked for, in a format that its provider does not count in.
    `compacts`: its answer is to be one compaction of ours; `retained` is what the user said, where that goes with it.
    `is_signed`: the caller's signature goes up, and so the bytes that it is over.
    `is_mended`: it would have been refused as the client sent it: the provider has, or its contract says so.
    `is_changed`: other bytes went up than the client sent.
    `replay` says whether reasoning is put back, `would` what would have been done where it is only observed.
    `elsewhere` is the same target in another format, where a refusal names that endpoint.
    `is_plain`: a chat client takes `content` to be text: its request says so, its key, or settings.
    What it becomes, and what explains it when somebody asks, begins as nothing. Beyond thirty attributes of its
    own an object takes four times the memory, so what stays as it is is not set.
    """

    conversation = b""
    terms: Terms | None = None
    tags: TagMode = "off"
    names = NO_NAMES
    prepared: Prepared | None = None
    outcome = Outcome()
    problem: DecodeError | EncodeError | None = None
    refusal: ErrorResponse | None = None
    is_rewritten = False
    uncounted: bytes | None = None
    upstream_seconds = 0.0
    bytes_up = 0
    _due = 0.0
    started_at = 0.0
    sends = 0
    status = 0
    error = ""
    session: str | None = None
    refusals: tuple[RefusalNote, ...] = ()
    sent: KeptBodies | None = None
    contract: Contract | None = None
    corrections: tuple[Correction, ...] = ()
    notes: NoteChain | None = None
    was_healed = False
    is_mended = False
    is_signed = False
    is_plain = False
    is_changed = False
    replay: ReplayMode = "on"
    would = ""
    found: tuple[Finding, ...] = ()
    elsewhere: Target | None = None
    compacts = False
    guess = 0
    retained: tuple[Raw, ...] | None = None

    def __init__(
        self, incoming: Incoming, target: Target, key: str, *, has_choice: bool = False, is_last: bool = True
    ) -> None:
        route, provider = incoming.route, target.provider
        wire = FORMATS[route.format] if route.format is not None else USUAL
        self.state = incoming.state
        self.incoming = incoming
        self.target = target
        self.key = key
        self.is_last = is_last
        self.has_choice = has_choice
        self.is_generating = route.action == "generate"
        caller, self.is_translated = incoming.caller, target.format != route.format
        signs = caller.is_signed and not key
        is_elsewhere = signs and self.is_translated and route.format is not None
        self._is_callers = target.is_callers and caller.key is None and not is_elsewhere
        if signs and self._is_callers:
            self.is_signed = True
        self._credential = incoming.caller.credential if self._is_callers else ""
        accounts, shown = self.state.caches.accounts, key or self._credential
        account = accounts.get(shown) or accounts.keep(shown, account_of(shown), len(shown))
        endpoint = provider.bases.get(target.format, provider.base_url)
        self.destination = Destination(provider.name, endpoint, target.model, target.format, account)
        self.client = ClientFormat(wire.name, route.is_streaming, wire.stream_query not in incoming.query)
        if route.format is not None and "content_in_parts" in wire.quirks:
            of_header, of_key = incoming.headers.get(CONTENT_HEADER, b""), caller.key.content if caller.key else None
            of_all = (provider.content, self.state.settings.content)
            self.is_plain = is_plain(of_header, of_key, *of_all) if of_header or of_key else target.is_plain
        of_request, of_caller = incoming.headers.get(MODE_HEADER, b""), caller.key.replay if caller.key else None
        mode = mode_of(of_request, of_caller, target.replay) if of_request or of_caller else target.replay
        if mode != "on":
            self.replay = mode
        self.body = incoming.body
        self.is_streaming = route.is_streaming

    def send_instead(self, prepared: Prepared) -> None:
        """What is sent from now on, and what there is to tell of it."""
        self.prepared, self.outcome, self.contract = prepared, prepared.outcome, prepared.contract
        if prepared.problem is not self.problem:
            self.problem = prepared.problem
        if prepared.corrections or prepared.healings or self.was_healed:
            self.corrections, self.was_healed = prepared.corrections, prepared.healings > 0
        if prepared.plan is not None or not self.would:
            self.notes = prepared.plan.notes if prepared.plan is not None else None
        done, is_strict = self.outcome, prepared.contract.is_strict
        is_put_back = is_strict and (done.restored or done.inherited or done.blank)
        is_taken_out = (is_strict or prepared.contract.kind == "forbidden") and done.stripped
        if done.healed or is_put_back or is_taken_out or self.is_mended:
            self.is_mended = bool(done.healed or is_put_back or is_taken_out)

    @property
    def member_edits(self) -> MemberEdits:
        """What a body needs that was made for another address than this one with a project and a location."""
        published = FORMATS[self.target.format].published
        is_at_home = self.incoming.route.place and not self.is_translated
        return published.members(names_model=self.is_generating) if published is not None and not is_at_home else ()

    @property
    def asks_template(self) -> bool:
        """Whether the server can be asked which reasoning its chat template reads."""
        return bool(self.target.provider.template_at) and self.replay == "on" and self.is_generating

    @property
    def shown_key(self) -> str:
        """What the target is shown: a key of ours, or the caller's own credential."""
        return self.key or self._credential

    @property
    def sealer(self) -> Sealer:
        return Sealer(self.state.envelope_key, self.incoming.caller.tenant)

    def answers_at_once(self, *, is_stream: bool) -> bool:
        """Whether the client gets an answer as soon as it begins: from then on nobody else can be asked."""
        return not self.is_rewritten or (is_stream and self.client.is_streaming)

    def estimate(self) -> bytes | None:
        """A count, where a refusal is that of a provider which counts no tokens."""
        refusal, prepared = self.refusal, self.prepared
        if refusal is None or prepared is None or self.incoming.route.action != "count_tokens":
            return None
        is_ours = is_uncounted(refusal.response.status, refusal.plain, self.target.model)
        return self.estimated(prepared.body) if is_ours else None

    def estimated(self, body: bytes) -> bytes:
        """A count for the client, by what is known of how this model counts."""
        tokens = self.state.caches.ratios.corrected(self.target.health_name, estimate_tokens(body))
        return count_body(tokens, self.client.format)

    async def count(self) -> bytes | None:
        """The tokens of a translated request, by the provider's own counter; None where it has none, or fails."""
        wire, prepared = FORMATS[self.target.format], self.prepared
        if prepared is None or wire.count_body is None or wire.name not in self.target.provider.counts:
            return None
        self.send_instead(replace(prepared, body=wire.count_body(prepared.body, self.target.model)))
        try:
            response = await self._send()
        except Declined:
            return None
        try:
            body, is_whole = await response.read_all(MAX_REFUSAL_BYTES)
        finally:
            await response.close()
        is_answer = response.status == 200 and is_whole
        return count_of(ErrorResponse(response, body, is_whole).plain, wire, self.client.format) if is_answer else None

    async def ask(self) -> UpstreamResponse:
        """Ask, and heal what is refused. An error that can't be healed is in `refusal`, the first one."""
        assert self.prepared is not None
        response = await self._send()
        while response.status >= 400:
            healed = await self._refused(response)
            if healed is None:
                self.elsewhere = self._named_door()
                self.send_instead(replace(self.prepared, healings=0))
                return response
            await response.close()
            self.send_instead(healed)
            response = await self._send()
        if self.refusal is not None:
            self.refusal = None
        if self.prepared.healings and self.state.settings.replay.learn:
            await self.state.replayer.keep_lessons(self.prepared)
        return response

    def _named_door(self) -> Target | None:
        """The target at the endpoint that a refusal names, if it may be asked there."""
        settings, refusal, prepared = self.state.settings.replay, self.refusal, self.prepared
        if refusal is None or prepared is None or not settings.heal or self.is_signed or not self.is_generating:
            return None
        doors = self.state.replayer.doors_named(prepared, refusal.response.status, refusal.plain)
        return None if doors is None else door_named(self.target, *doors)

    async def failure(self, response: UpstreamResponse) -> TargetFailure | None:
        """What an answer says against this target; None if it is one, or about the request."""
        if self.refusal is not None:
            return failure_of(response.status, self.refusal.plain, response.header("retry-after"))
        if not self.has_choice or response.status != 200:
            return None
        due = None if self.is_last else self._due
        return await failure_at_start(response, is_streaming=self.is_streaming, due=due)

    async def _send(self) -> UpstreamResponse:
        assert self.prepared is not None
        target, received, key = self.target, self.incoming.scope["headers"], self.key
        if self.is_translated:
            received = translated_headers(received, target.format)
            key = key or self._credential  # in the header that this provider reads
        if not self.is_signed and (self.is_plain or self.tags != "off" or self.names.client):
            received = [pair for pair in received if pair[0] != b"accept-encoding"]  # it is read, and edited
        if not self.is_signed and (refused := self.prepared.refused_betas):
            received = self._without_betas(received, refused)
        body, scope = self.prepared.body, self.incoming.scope
        held = self._held_socket(scope[HELD_SOCKET]) if HELD_SOCKET in scope else None
        return await self.send_up(target.provider, "POST", self.url, key=key, received=received, body=body, held=held)

    def _without_betas(self, received: Headers, refused: frozenset[str]) -> Headers:
        """The headers without betas that this server refuses, and the finding that says so."""
        kept = without_betas(received, refused)
        if kept != list(received) and self.prepared is not None:
            message = f"this server refuses {', '.join(sorted(refused))}: left out of the header"
            self.send_instead(with_finding(self.prepared, Finding("setting", f"/{BETA_HEADER}", message, "")))
        return kept

    def _held_socket(self, held: HeldSocket) -> HeldSocket | None:
        """The connection that is held for the client, where the target can be asked over it."""
        if not self.is_generating or not self.target.provider.websocket:
            return None
        return held if "websocket" in FORMATS[self.target.format].quirks else None

    @property
    def url(self) -> str:
        """Where it goes. What is signed keeps its path as it was written."""
        if self.is_signed:
            return passthrough_address(self.target.provider, self.incoming.route.path, self.incoming.query)
        target, known = self.target, self.state.caches.addresses
        streams = self.is_streaming or target.streams_only
        query = self.incoming.query
        if self.is_translated:  # the client's own is of another format
            query = FORMATS[target.format].stream_query if self.is_streaming else ""
        route, place = self.incoming.route.action, self.incoming.route.place
        action: Action = route if not self.is_generating and route in ("count_tokens", "compact") else "generate"
        key = (target.provider.name, target.format, target.model, query, streams, action, place)
        found = known.get(key)
        if found is None:
            found = address(
                target.provider,
                target.format,
                target.model,
                is_streaming=streams,
                action=action,
                query=query,
                place=place,
            )
            known.keep(key, found, len(query) + len(target.model))
        return found

    def _key_as_token(self, provider: Provider) -> str:
        """The caller's key, if it comes as a bearer token and this provider reads keys elsewhere: Claude Code with
        `ANTHROPIC_AUTH_TOKEN`. Other tokens stay as they are."""
        row, shown = host_named(provider.name), self._credential
        if row is None or not row.key_prefixes or provider.auth == "bearer" or not shown.startswith(row.key_prefixes):
            return ""
        return shown if self.incoming.headers.get(b"authorization", b"").endswith(shown.encode()) else ""

    async def send_up(
        self,
        provider: Provider,
        method: str,
        url: str,
        *,
        key: str,
        received: Headers,
        body: bytes,
        held: HeldSocket | None = None,
    ) -> UpstreamResponse:
        """Up, as it is."""
        incoming, state, ups = self.incoming, self.state, self.state.upstreams
        if not self._is_callers:
            received = without_credentials(received, credentials_of(incoming.headers, incoming.query))
            url = without_query_key(url)
        key = key or self._key_as_token(provider)
        if key and provider.auth == "query":
            url = with_query_key(url, key)
        headers = request_headers(received, provider, key, is_signed=self.is_signed and not key)
        check_what_goes_up(provider, key, url, headers=headers, token=state.admin_token)
        if incoming.trace is not None:
            headers = incoming.trace.carried(headers, self.destination)
        headers += [("content-encoding", incoming.encoding)] if incoming.encoding else []
        if key and provider.auth == "aws":
            headers = await ups.signers.sign(key, method, url, headers=headers, body=body)
        self.bytes_up += len(body)
        self.sends += 1
        if state.settings.debug.keep_bodies:
            self._keep(body, key)
        began = time.perf_counter()
        self.started_at = self.started_at or began
        self._due = asyncio.get_running_loop().time() + provider.timeouts.first_byte
        try:
            response = await held.send(provider, url, headers, body) if held is not None else None
            if response is None:
                response = await ups.send(provider, method, url, headers, body)
            self.status = response.status
            return response
        finally:
            self.upstream_seconds += time.perf_counter() - began

    def _keep(self, body: bytes, key: str) -> None:
        shown = credentials_of(self.incoming.headers, self.incoming.query)
        self.sent = kept_bodies(self.incoming.body, body, (*shown, key, self.state.admin_token or ""))

    async def _refused(self, response: UpstreamResponse) -> Prepared | None:
        """What to send instead, after a refusal. The first one is kept: it is what the client's own request got."""
        assert self.prepared is not None
        refusal = ErrorResponse(response, *await response.read_all(MAX_REFUSAL_BYTES))
        self.is_changed = self.is_translated or self.prepared.body != self.incoming.body
        self.refusals = (*self.refusals, self._noted(response.status, refusal.plain))
        if self.refusal is None or response.status not in _REFUSALS:
            self.refusal = refusal
        may_heal = self.state.settings.replay.heal and self.replay == "on" and not self.is_signed
        if not may_heal or not refusal.is_whole or not refusal.plain:
            return None
        return await self.state.replayer.heal(self.prepared, response.status, refusal.plain)

    def _noted(self, status: int, body: bytes) -> RefusalNote:
        """What is remembered of an error to explain it, without the keys that it may quote."""
        error = read_error(status, body)
        words = error.message[:MOST_WORDS]
        for secret in filter(None, (self.key, self._credential)):
            words = words.replace(secret, MASK)
        seconds = time.perf_counter() - self.incoming.began
        assert self.prepared is not None
        refusal = self.state.replayer.read_refusal(self.prepared, status, body)
        return RefusalNote(status, seconds, words, error.code or "", refusal)


def attempt_at(incoming: Incoming, target: Target, key: str, *, has_choice: bool, is_last: bool) -> Attempt:
    """A target and a key to ask it with, at the endpoint that can carry the reasoning of this request."""
    attempt, state = Attempt(incoming, target, key, has_choice=has_choice, is_last=is_last), incoming.state
    if attempt.is_signed or not attempt.is_generating:
        return attempt
    learned = state.replayer.lessons_of(attempt.destination) if state.lessons.by_target else ()
    other = door_for(target, incoming.body, learned) if target.provider.doors or learned else None
    return attempt if other is None else elsewhere(attempt, other)


def elsewhere(attempt: Attempt, target: Target) -> Attempt:
    """The same at another endpoint of the provider."""
    incoming = attempt.incoming
    other = Attempt(incoming, target, attempt.key, has_choice=attempt.has_choice, is_last=attempt.is_last)
    other.found = (reported(attempt.target.format, target),)
    return other
