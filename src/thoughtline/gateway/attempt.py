"""One target asked: what is sent to it, and what becomes of it.

`prepare` sends the request through the stages of `request_stages.py`; `get_answer` sends it to the provider, and heals
what is refused; `failure` says what speaks against this target, if another one may do better.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.destinations.addresses import address, passthrough_address, with_query_key, without_query_key
from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.credentials import credentials_of
from thoughtline.engine.replayer import timing
from thoughtline.engine.request import Prepared, with_finding
from thoughtline.failover.failures import TargetFailure, failure_of
from thoughtline.formats import FORMATS
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
from thoughtline.gateway.masking import MASK, without_quotes
from thoughtline.gateway.outgoing import NOTHING, Observed, outgoing
from thoughtline.gateway.recent import KeptBodies, RefusalNote, kept_bodies
from thoughtline.gateway.request_stages import prepare
from thoughtline.gateway.upstream_socket import HELD_SOCKET, HeldSocket
from thoughtline.providers import Contract, host_named
from thoughtline.providers.betas import BETA_HEADER
from thoughtline.replay.findings import Finding
from thoughtline.replay.refusals import Correction
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


class AttemptLog(Struct):
    """What explains an attempt: filled in as it goes on, read for the log, the recent requests and the metrics.

    `problem`: why the request, or what was planned for it, could not be read or written. `bodies` are kept if settings
    say so. `notes` are what was done turn by turn; `would` is what would have been done where it is only observed.
    `was_saved_from_refusal`: the provider refused it, or its contract says that it would have. `is_changed`: other
    bytes were sent than the client's.
    """

    outcome: Outcome = Outcome()
    contract: Contract | None = None
    problem: DecodeError | EncodeError | None = None
    corrections: tuple[Correction, ...] = ()
    notes: NoteChain | None = None
    would: str = ""
    refusals: tuple[RefusalNote, ...] = ()
    was_healed: bool = False
    was_saved_from_refusal: bool = False
    is_changed: bool = False
    status: int = 0
    error: str = ""
    session: str | None = None
    prepared_from: float = 0.0
    look_up_seconds: float = 0.0
    started_at: float = 0.0
    upstream_seconds: float = 0.0
    bytes_up: int = 0
    sends: int = 0
    bodies: KeptBodies | None = None

    def note(self, prepared: Prepared, observed: Observed | None) -> None:
        """Note what is sent from now on."""
        done, contract, plan = prepared.outcome, prepared.contract, prepared.plan
        self.outcome, self.contract, self.problem = done, contract, prepared.problem
        self.corrections, self.was_healed = prepared.corrections, prepared.healings > 0
        self.notes = plan.notes if plan is not None else None
        if observed is not None:
            self.would, self.notes = observed.would, observed.notes
        is_strict = contract.is_strict
        is_put_back = is_strict and (done.restored or done.inherited or done.blank)
        is_taken_out = (is_strict or contract.kind == "forbidden") and done.stripped
        self.was_saved_from_refusal = bool(done.healed or is_put_back or is_taken_out)


class Attempt:
    """A target asked with a key. `has_choice`: another target or key may do better; `is_last`: none of them is left.

    `request` is what goes up, and `log` explains it. `refusal` is the error that the client gets unless a retry
    succeeds: the first one. `elsewhere` is the same target in another format, if a refusal names that endpoint.
    """

    def __init__(
        self, incoming: Incoming, target: Target, key: str, *, has_choice: bool = False, is_last: bool = True
    ) -> None:
        self.state = incoming.state
        self.incoming = incoming
        self.request = outgoing(incoming, target, key)
        self.ask = self.request.ask
        self.log = AttemptLog()
        self.has_choice = has_choice
        self.is_last = is_last
        self.refusal: ErrorResponse | None = None
        self.elsewhere: Target | None = None
        self._first_byte_due = 0.0

    async def prepare(self) -> None:
        """Pass the request through the stages for this target. Raises if its format can't carry it."""
        self.log.prepared_from = time.perf_counter()
        timing.set(self.log)
        request = self.request = await prepare(self.request, self.state.services)
        if request.prepared is not None:
            self.log.note(request.prepared, request.observed)

    def send_instead(self, prepared: Prepared) -> None:
        """Replace the request that is sent from now on."""
        self.request = replace(self.request, prepared=prepared)
        self.log.note(prepared, self.request.observed)

    def let_go(self) -> None:
        """Free the request: no other target will be asked, and its answer may take long."""
        self.request = replace(self.request, came=NOTHING, body=b"", cuts=None, prepared=None, body_to_count=None)

    def answers_at_once(self, *, is_stream: bool) -> bool:
        """Whether the client gets an answer as soon as it begins: from then on it can't fail over."""
        return not self.request.is_rewritten or (is_stream and self.request.client.is_streaming)

    def estimate(self) -> bytes | None:
        """Return an estimate if the refusal is that of a provider that counts no tokens, or else None."""
        refusal, prepared = self.refusal, self.request.prepared
        if refusal is None or prepared is None or self.incoming.route.action != "count_tokens":
            return None
        is_ours = is_uncounted(refusal.response.status, refusal.plain, self.ask.target.model)
        return self.estimated(prepared.body) if is_ours else None

    def estimated(self, body: bytes) -> bytes:
        """Return an estimate for the client, corrected by earlier counts of this model."""
        tokens = self.state.caches.ratios.corrected(self.ask.target.health_name, estimate_tokens(body))
        return count_body(tokens, self.request.client.format)

    async def count(self) -> bytes | None:
        """Return the provider's own token count of a translated request; None if it has no counter, or that fails."""
        target, prepared = self.ask.target, self.request.prepared
        wire = FORMATS[target.format]
        if prepared is None or wire.count_body is None or wire.name not in target.provider.counts:
            return None
        self.send_instead(replace(prepared, body=wire.count_body(prepared.body, target.model)))
        try:
            response = await self._send()
        except Declined:
            return None
        try:
            body, is_whole = await response.read_all(MAX_REFUSAL_BYTES)
        finally:
            await response.close()
        if response.status != 200 or not is_whole:
            return None
        return count_of(ErrorResponse(response, body, is_whole).plain, wire, self.request.client.format)

    async def get_answer(self) -> UpstreamResponse:
        """Send the request, heal what is refused, and send it again.

        Returns the last response. If it is an error, `refusal` has the first error, which is the one to report: later
        ones may be caused by our corrections, which are no longer counted (`healings=0`).
        """
        response = await self._send()
        while response.status >= 400:
            healed = await self._refused(response)
            if healed is None:
                self.elsewhere = self._named_door()
                self.send_instead(replace(self._prepared(), healings=0))
                return response
            await response.close()
            self.send_instead(healed)
            response = await self._send()
        self.refusal, prepared = None, self.request.prepared
        if prepared is not None and prepared.healings and self.state.settings.replay.learn:
            await self.state.replayer.keep_lessons(prepared)
        return response

    def _named_door(self) -> Target | None:
        """Return the target at the endpoint that a refusal names, if it may be asked there."""
        settings, refusal, prepared = self.state.settings.replay, self.refusal, self.request.prepared
        if refusal is None or prepared is None or not settings.heal or self.ask.is_signed:
            return None
        if not self.request.is_generating:
            return None
        doors = self.state.replayer.doors_named(prepared, refusal.response.status, refusal.plain)
        return None if doors is None else door_named(self.ask.target, *doors)

    async def failure(self, response: UpstreamResponse) -> TargetFailure | None:
        """Return what speaks against this target; None if it answered, or if the problem is the request's."""
        if self.refusal is not None:
            return failure_of(response.status, self.refusal.plain, response.header("retry-after"))
        if not self.has_choice or response.status != 200:
            return None
        due = None if self.is_last else self._first_byte_due
        return await failure_at_start(response, is_streaming=self.request.is_streaming, due=due)

    async def _send(self) -> UpstreamResponse:
        ask, request, scope = self.ask, self.request, self.incoming.scope
        target, received, key = ask.target, scope["headers"], ask.key
        if ask.is_translated:
            received = translated_headers(received, target.format)
            key = ask.shown_key  # in the header that this provider reads
        prepared = request.prepared
        assert prepared is not None
        if not ask.is_signed:
            if ask.is_plain or request.tags != "off" or request.renamed_tools.client:
                received = [pair for pair in received if pair[0] != b"accept-encoding"]  # it is read, and edited
            if refused := prepared.refused_betas:
                received = self._without_betas(received, refused)
        held = self._held_socket(scope[HELD_SOCKET]) if HELD_SOCKET in scope else None
        body = prepared.body
        return await self.send_up(target.provider, "POST", self.url, key=key, received=received, body=body, held=held)

    def _prepared(self) -> Prepared:
        assert self.request.prepared is not None
        return self.request.prepared

    def _without_betas(self, received: Headers, refused: frozenset[str]) -> Headers:
        """The headers without betas that this server refuses, and the finding that says so."""
        kept = without_betas(received, refused)
        if kept != list(received):
            message = f"this server refuses {', '.join(sorted(refused))}: left out of the header"
            self.send_instead(with_finding(self._prepared(), Finding("setting", f"/{BETA_HEADER}", message, "")))
        return kept

    def _held_socket(self, held: HeldSocket) -> HeldSocket | None:
        """The connection that is held for the client, where the target can be asked over it."""
        if not self.request.is_generating or not self.ask.target.provider.websocket:
            return None
        return held if "websocket" in FORMATS[self.ask.target.format].quirks else None

    @property
    def url(self) -> str:
        """Where it goes. What is signed keeps its path as it was written."""
        target, incoming, request = self.ask.target, self.incoming, self.request
        if self.ask.is_signed:
            return passthrough_address(target.provider, incoming.route.path, incoming.query)
        streams = request.is_streaming or target.streams_only
        query = incoming.query
        if self.ask.is_translated:  # the client's own is of another format
            query = FORMATS[target.format].stream_query if request.is_streaming else ""
        route, place = incoming.route.action, incoming.route.place
        action: Action = route if not request.is_generating and route in ("count_tokens", "compact") else "generate"
        known = self.state.caches.addresses
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
        row, shown = host_named(provider.name), self.ask.credential
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
        if not self.ask.may_use_callers_key:
            received = without_credentials(received, credentials_of(incoming.headers, incoming.query))
            url = without_query_key(url)
        key = key or self._key_as_token(provider)
        if key and provider.auth == "query":
            url = with_query_key(url, key)
        headers = request_headers(received, provider, key, is_signed=self.ask.is_signed and not key)
        check_what_goes_up(provider, key, url, headers=headers, token=state.admin.token)
        if incoming.trace is not None:
            headers = incoming.trace.carried(headers, self.ask.destination)
        headers += [("content-encoding", incoming.encoding)] if incoming.encoding else []
        if key and provider.auth == "aws":
            headers = await ups.signers.sign(key, method, url, headers=headers, body=body)
        log = self.log
        log.bytes_up += len(body)
        log.sends += 1
        if state.settings.debug.keep_bodies:
            self._keep(body, key)
        began = time.perf_counter()
        log.started_at = log.started_at or began
        self._first_byte_due = asyncio.get_running_loop().time() + provider.timeouts.first_byte
        try:
            response = await held.send(provider, url, headers, body) if held is not None else None
            if response is None:
                response = await ups.send(provider, method, url, headers, body)
            log.status = response.status
            return response
        finally:
            log.upstream_seconds += time.perf_counter() - began

    def _keep(self, body: bytes, key: str) -> None:
        shown = credentials_of(self.incoming.headers, self.incoming.query)
        self.log.bodies = kept_bodies(self.incoming.body, body, (*shown, key, self.state.admin.token or ""))

    async def _refused(self, response: UpstreamResponse) -> Prepared | None:
        """What to send instead, after a refusal. The first one is kept: it is what the client's own request got."""
        refusal = ErrorResponse(response, *await response.read_all(MAX_REFUSAL_BYTES))
        prepared, log = self._prepared(), self.log
        log.is_changed = self.ask.is_translated or prepared.body != self.incoming.body
        log.refusals = (*log.refusals, self._noted(response.status, refusal.plain))
        if self.refusal is None or response.status not in _REFUSALS:
            self.refusal = refusal
        may_heal = self.state.settings.replay.heal and self.ask.replay == "on" and not self.ask.is_signed
        if not may_heal or not refusal.is_whole or not refusal.plain:
            return None
        return await self.state.replayer.heal(prepared, response.status, refusal.plain)

    def _noted(self, status: int, body: bytes) -> RefusalNote:
        """Note an error, to explain it, without the keys that it may quote."""
        error = read_error(status, body)
        words = error.message[:MOST_WORDS]
        for secret in filter(None, (self.ask.key, self.ask.credential)):
            words = words.replace(secret, MASK)
        seconds = time.perf_counter() - self.incoming.began
        refusal = self.state.replayer.read_refusal(self._prepared(), status, body)
        unquoted = without_quotes(words, self.incoming.body)
        return RefusalNote(status, seconds, words, error.code or "", refusal, unquoted=unquoted)


def attempt_at(incoming: Incoming, target: Target, key: str, *, has_choice: bool, is_last: bool) -> Attempt:
    """A target and a key to ask it with, at the endpoint that can carry the reasoning of this request."""
    attempt, state = Attempt(incoming, target, key, has_choice=has_choice, is_last=is_last), incoming.state
    if attempt.ask.is_signed or not attempt.request.is_generating:
        return attempt
    learned = state.replayer.lessons_of(attempt.ask.destination) if state.lessons.by_target else ()
    other = door_for(target, incoming.body, learned) if target.provider.doors or learned else None
    return attempt if other is None else elsewhere(attempt, other)


def elsewhere(attempt: Attempt, target: Target) -> Attempt:
    """The same at another endpoint of the provider."""
    incoming = attempt.incoming
    other = Attempt(incoming, target, attempt.ask.key, has_choice=attempt.has_choice, is_last=attempt.is_last)
    other.request = replace(other.request, findings=(reported(attempt.ask.target.format, target),))
    return other
