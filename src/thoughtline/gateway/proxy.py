"""One exchange: a request in, planned, sent on, its response back, and what was said in it kept.

route → caller → body → targets → Attempt (prepare, ask, heal) ⟲ the next one → Relay → journal
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from functools import partial

from msgspec.structs import replace

from thoughtline.addresses import passthrough_address
from thoughtline.catalogue import Provider
from thoughtline.failover.failures import Failure, failure_of_error, falls_over
from thoughtline.formats import aws_event_stream
from thoughtline.gateway.access import Caller, let_in
from thoughtline.gateway.asgi import ClientGone, Receive, Scope, Send, send_json, send_whole
from thoughtline.gateway.attempt import Asked, Attempt, Incoming
from thoughtline.gateway.choosing import (
    Choice,
    Conversation,
    Target,
    choices_of,
    conversation_of,
    keys_to_ask_with,
    named_provider,
)
from thoughtline.gateway.departure import DRAIN_SECONDS, Departure
from thoughtline.gateway.envelopes import as_declined, envelope
from thoughtline.gateway.estimating import ESTIMATE_HEADER
from thoughtline.gateway.headers import Headers, header_value, replay_header, response_headers, with_findings
from thoughtline.gateway.intake import take_in
from thoughtline.gateway.journal import Line
from thoughtline.gateway.late_saves import Hold
from thoughtline.gateway.model_answers import models_answer
from thoughtline.gateway.relay import Relay, tell
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.translating import TranslatingRelay, client_headers
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.replayer import MAX_FINDINGS, Prepared
from thoughtline.sessions import Session
from thoughtline.stores import Saved
from thoughtline.translation import translate_error
from thoughtline.values.errors import Declined, ThoughtlineError
from thoughtline.values.records import Outcome
from thoughtline.watching import StreamWatch, Watch

_STREAMS = ("text/event-stream", "application/x-ndjson", aws_event_stream.CONTENT_TYPE, "application/jsonl")


class Exchange:
    """A request that is being served."""

    def __init__(self, state: State, scope: Scope, route: Route) -> None:
        self._state = state
        self._scope = scope
        self._route = route
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._query: str = scope["query_string"].decode("latin-1")
        self._began = time.perf_counter()
        self._session = Session(None, None)
        self._caller = Caller("", "")
        self._attempts: list[Attempt] = []
        self._conversation = Conversation()
        self._failed: Declined | None = None
        self._skipped: tuple[tuple[str, str], ...] = ()
        self._passing_seconds = 0.0
        self._captured = 0
        self._status = 0
        self._relay: Relay | None = None
        self._code = ""
        self._is_degraded = False
        self._summed: tuple[Prepared, Outcome] | None = None
        self._departure = Departure(DRAIN_SECONDS if route.action == "generate" else 0.0, state.abandoned)
        # A name, no secret: a system call for it would also let other threads in between.
        self.id = f"{random.getrandbits(64):016x}"

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
            await self._decline(error.with_traceback(None), send)  # its frames hold all that the request brought
        except Exception as error:
            tell("a request failed", error)
            await self._decline(Declined(500, "internal", "Something went wrong here.", "The log says where."), send)
        finally:
            self._departure.stop()
            self._state.journal.tell(self._line())
            self._relay = None  # it knows us: both bodies would stay until the collector of garbage comes by

    async def _serve(self, receive: Receive, send: Send) -> None:
        state, route = self._state, self._route
        self._caller = let_in(self._scope, self._headers, self._query, state.keys, state.settings.server)
        state.limits.admit(self._caller.key, time.monotonic())
        incoming = await self._read(receive)
        self._departure.listen(receive)
        if route.action == "models":
            await self._list_models(incoming, send)
        elif route.action == "passthrough" or route.format is None:
            await self._pass_through(incoming, send)
        else:
            await self._converse(incoming, send)

    async def _read(self, receive: Receive) -> Incoming:
        """The whole request; where it will be looked at, without compression and with what it says of its session."""
        route, limit = self._route, self._state.settings.server.max_body_bytes
        taken = await take_in(receive, self._headers, route, self._state.replayer, limit)
        self._session = taken.session
        return Incoming(self._scope, route, self._headers, self._query, self._caller, *taken)

    async def _converse(self, incoming: Incoming, send: Send) -> None:
        """Ask the targets one after the other until one answers; what the last one says is passed on."""
        state = self._state
        choices = choices_of(state.settings, incoming)
        conversation = self._conversation = await conversation_of(choices, incoming, state.replayer)
        targets = choices.ordered(conversation, state.health, state.clock())
        for number, target in enumerate(targets):
            provider = target.choice.provider
            keys = await self._keys_for(provider)
            for at, key in enumerate(keys):
                is_last = number == len(targets) - 1 and at == len(keys) - 1
                if await self._try(incoming, Asked(target, key, choices.are_several, is_last), send):
                    return
                if not state.health.keys.is_aside(provider.name, key, state.clock()):
                    break  # it was not the key that failed
        await self._pass_failure(send)

    async def _keys_for(self, provider: Provider) -> list[str]:
        """The keys to ask a provider with; none where it can't be asked, which is told if nobody else can be."""
        try:
            return await keys_to_ask_with(self._state, self._caller, self._conversation, provider)
        except Declined as error:
            self._failed = self._failed or error
            return []

    async def _try(self, incoming: Incoming, asked: Asked, send: Send) -> bool:
        """Ask one target with one key; whether the client has its answer."""
        attempt = Attempt(self._state, incoming, asked.target, asked.key)
        self._attempts.append(attempt)
        try:
            await attempt.prepare()
        except ThoughtlineError:
            if len(self._attempts) == 1:
                raise
            self._attempts.pop()  # why it was asked at all is what the client should hear
            return False
        if attempt.estimate is not None:
            await self._pass_estimate(attempt.estimate, send)
            return True
        with self._state.limits.stream(self._caller.key if attempt.is_streaming else None):
            self._state.health.asked(asked.target.name, self._state.clock())
            try:
                response = await attempt.ask()
            except Declined as error:
                return self._declined(asked, error)
            try:
                return await self._answered(attempt, response, asked, send)
            finally:
                await response.close()

    async def _pass_failure(self, send: Send) -> None:
        """Nobody is left who could be asked: what the last one said who was."""
        last = self._last
        if last is None or last.refusal is None or not last.refusal.is_whole:
            raise self._failed or Declined(502, "upstream_failed", "No target of this route gave an answer.", "")
        await self._pass_refusal(last, send)

    def _declined(self, asked: Asked, error: Declined) -> bool:
        """Asking failed, and the client has seen nothing of it: the next target is asked, if there is one."""
        failure = failure_of_error(error.code)
        self._note_failure(asked, failure)
        if asked.is_last or failure is None:
            raise error
        self._failed = error
        return False

    async def _answered(self, attempt: Attempt, response: UpstreamResponse, asked: Asked, send: Send) -> bool:
        """Pass an answer on, or an error that no other target would do better with."""
        failure = await attempt.failure(response, asked)
        if failure is not None:
            self._note_failure(asked, failure)
            if not asked.is_last and falls_over(failure, is_own_key=bool(asked.provider.api_keys)):
                return False
        elif attempt.refusal is None:
            self._state.health.answered(asked.target.route, asked.target.name, self._conversation.name)
            if asked.key:
                self._state.health.keys.succeeded(asked.provider.name, asked.key, self._conversation.name)
            await self._remember(attempt)
        else:
            self._state.health.refused(asked.target.name)
        if attempt.refusal is not None:
            await self._pass_refusal(attempt, send)
            return True
        try:
            await self._pass_down(attempt, response, send, is_last=asked.is_last)
        except Declined as error:
            if self._relay is not None and self._relay.has_started:
                raise
            return self._declined(asked, error)
        return True

    def _note_failure(self, asked: Asked, failure: Failure | None) -> None:
        if failure is None:
            return
        now, target = self._state.clock(), asked.target
        self._skipped = tuple(("target-skipped", name) for name in self._conversation.skipped)
        # Who is busy is an account: that speaks against a target only if it isn't asked on another one too.
        if failure.kind != "busy" or len(asked.provider.api_keys) <= 1:
            self._state.health.failed(target.route, target.name, self._conversation.name, failure, now)
        if asked.key:
            self._state.health.keys.failed(asked.provider.name, asked.key, failure, now)

    async def _remember(self, attempt: Attempt) -> None:
        if attempt.prepared is not None and attempt.prepared.handover is not None:
            await self._hold.wait_for(self._state.replayer.keep_quotation(attempt.prepared))

    async def _pass_refusal(self, attempt: Attempt, send: Send) -> None:
        """The provider's own error, untouched; in the client's words where it speaks another format."""
        assert attempt.refusal is not None
        if attempt.take_estimate():
            await self._pass_estimate(attempt.estimate or b"", send)
            return
        first, body, is_whole = attempt.refusal
        if attempt.is_translated and attempt.lane is not None:
            spoken = attempt.lane.spoken
            self._status, told = translate_error(first.status, attempt.refusal.plain, spoken.format)
            headers = client_headers(self._down(first), spoken, is_stream=False)
            await send_whole(send, self._status, [*headers, (b"content-length", str(len(told)).encode())], told)
            return
        relay = self._relay = Relay(first, self._down(first), None, self._keep, self._hold, self._departure)
        self._status = first.status
        await relay.pass_read(send, body, is_whole)

    async def _pass_estimate(self, body: bytes, send: Send) -> None:
        self._status = 200
        await send_json(send, 200, body, [*self._own_headers(), ESTIMATE_HEADER])

    async def _pass_down(
        self, attempt: Attempt | None, response: UpstreamResponse, send: Send, *, is_last: bool = True
    ) -> None:
        """Pass an answer on. One that has to be translated whole may fail at that, and another target be asked."""
        kind = response.header("content-type").partition(";")[0].strip().lower()
        streams = attempt is not None and attempt.is_streaming
        is_stream = kind in _STREAMS or (streams and kind != "application/json")
        is_stream = is_stream or (streams and attempt is not None and attempt.choice.format == "gemini_generate")
        work = self._state.replayer.work_for(attempt.prepared.body if attempt and attempt.prepared else b"")
        watch = await work(partial(self._watch, attempt, response, is_stream=is_stream))
        relay = self._relay = self._relay_for(attempt, response, watch, is_stream=is_stream)
        self._status = response.status
        if is_last or attempt is None or attempt.answers_at_once(is_stream=is_stream):
            self._let_go()
        began = time.perf_counter()
        try:
            if is_stream or watch is None:
                with self._state.journal.streaming():
                    await relay.pass_stream(send)
            else:
                await relay.pass_whole(send)
        finally:
            self._passing_seconds += time.perf_counter() - began - relay.held_seconds
            await relay.settle()

    def _let_go(self) -> None:
        """Of what was asked, which may be long: an answer can take minutes, and there may be many at once."""
        done = self._done
        for attempt in self._attempts:
            attempt.let_go()
        if self._last is not None and self._last.prepared is not None:
            self._summed = self._last.prepared, done

    def _watch(self, attempt: Attempt | None, response: UpstreamResponse, *, is_stream: bool) -> Watch | None:
        prepared = attempt.prepared if attempt else None
        if attempt is None or prepared is None or prepared.transcript is None:
            return None
        if self._route.action != "generate" or response.status != 200:
            return None
        if is_stream:
            return StreamWatch(prepared, tags=attempt.tags)
        return Watch(prepared, tags=attempt.tags, shows_seals=not attempt.is_translated)

    def _relay_for(
        self, attempt: Attempt | None, response: UpstreamResponse, watch: Watch | None, *, is_stream: bool
    ) -> Relay:
        hold, headers = self._hold, self._down(response)
        if attempt is None or watch is None:
            return Relay(response, headers, watch, self._keep, hold, self._departure, work=self._state.work)
        lane = attempt.lane
        if lane is None:
            is_plain = response.header("content-encoding").lower() in ("", "identity")
            edits = attempt.edits(is_stream=is_stream) if is_plain else None
            return Relay(response, headers, watch, self._keep, hold, self._departure, edits, work=self._state.work)
        edits = attempt.edits(is_stream=lane.spoken.is_streaming)
        headers = client_headers(headers, lane.spoken, is_stream=lane.spoken.is_streaming)
        way = lane.way(self._state.clock())
        return TranslatingRelay(
            response,
            headers,
            watch,
            self._keep,
            hold,
            self._departure,
            edits,
            work=self._state.work,
            way=way,
            spoken=lane.spoken,
            keep_answer=attempt.keep_answer,
        )

    async def _pass_through(self, incoming: Incoming, send: Send) -> None:
        """An address that is none of ours: up as it came, down as it came."""
        provider = named_provider(self._state.settings, self._route)
        key = (await keys_to_ask_with(self._state, self._caller, self._conversation, provider))[0]
        attempt = Attempt(self._state, incoming, Target("", Choice(provider, "", provider.formats[0])), key)
        self._attempts.append(attempt)
        url = passthrough_address(provider, self._route.path, self._query)
        received: Headers = self._scope["headers"]
        response = await attempt.send_up(provider, self._scope["method"], url, key, received, incoming.body)
        try:
            await self._pass_down(None, response, send)
        finally:
            await response.close()

    async def _list_models(self, incoming: Incoming, send: Send) -> None:
        """What can be asked for, in the client's own shape."""
        answer = await models_answer(self._state, incoming, self._attempts)
        if answer is None:
            await self._pass_through(incoming, send)
            return
        self._status, headers = answer.status, self._own_headers()
        if answer.unlisted:
            headers.append((b"x-thoughtline-unlisted", header_value(", ".join(answer.unlisted))))
        await send_json(send, answer.status, answer.body, headers)

    async def _keep(self, watch: Watch) -> None:
        """Save what a watch has heard to its end."""
        records = watch.take(self._state.clock(), self._outcome())
        if records:
            self._captured += len(records)
            saved = await self._state.replayer.save(records, learns=self._state.settings.replay.learn)
            self._is_degraded = saved is None or (self._state.is_durable and saved is not Saved.DURABLE)
            if self._is_degraded and self._relay is not None:
                self._relay.tell_store("degraded")

    @property
    def _hold(self) -> Hold:
        return Hold(self._state.settings.replay.hold_ms / 1000, self._state.late)

    @property
    def _store_word(self) -> str:
        word = "degraded" if self._is_degraded else self._state.store_health
        return "slow" if word == "ok" and self._relay is not None and self._relay.late else word

    @property
    def _last(self) -> Attempt | None:
        return self._attempts[-1] if self._attempts else None

    @property
    def _done(self) -> Outcome:
        """What was done to the request as it was sent last: made once for each."""
        prepared = self._last.prepared if self._last else None
        if prepared is None:
            return Outcome()
        if self._summed is None or self._summed[0] is not prepared:
            self._summed = prepared, prepared.outcome
        return self._summed[1]

    def _outcome(self) -> Outcome:
        upstream = self._passing_seconds + sum(attempt.upstream_seconds for attempt in self._attempts)
        lost = self._relay.findings if self._relay is not None else ()
        findings = (*self._skipped, *self._done.findings, *((finding.rule, finding.place) for finding in lost))
        return replace(
            self._done,
            findings=findings[:MAX_FINDINGS],
            request=self.id,
            route=self._last.target.route if self._last else "",
            attempts=max(1, len(self._attempts)),
            handoff=self._handoff,
            tool_errors=self._conversation.tool_errors,
            upstream_ms=round(upstream * 1000, 1),
            own_ms=round((time.perf_counter() - self._began - upstream) * 1000, 2),
        )

    @property
    def _handoff(self) -> str:
        """Who made the turn before this one, if a route led elsewhere now."""
        last, made_by = self._last, self._conversation.made_by
        return made_by if last is not None and last.target.route and made_by != last.choice.name else ""

    def _down(self, response: UpstreamResponse) -> Headers:
        return [*response_headers(response.headers), *self._own_headers()]

    def _own_headers(self) -> Headers:
        last = self._last
        is_unread = last is not None and last.is_beyond_bounds
        summary = replay_header(self._done, self._state.store_health, is_unread=is_unread)
        headers = [summary, (b"x-thoughtline-request", self.id.encode())]
        if last is not None and last.choice.model:
            headers.append((b"x-thoughtline-target", header_value(last.choice.name)))
        found = (*self._skipped, *self._done.findings)
        return with_findings(headers, [rule for rule, _ in found]) if found else headers

    async def _decline(self, error: ThoughtlineError, send: Send) -> None:
        declined = as_declined(error)
        self._code = declined.code
        if self._relay is not None and self._relay.has_started:
            return  # in the middle of an answer: without an end, the client sees that it was cut short
        self._status = declined.status
        body = envelope(declined, self._route.format, self.id)
        headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if declined.retry_after_seconds is not None:
            headers.append((b"retry-after", str(math.ceil(declined.retry_after_seconds)).encode()))
        await send_whole(send, declined.status, [*headers, *self._own_headers()], body)

    def _line(self) -> Line:
        last, relay = self._last, self._relay
        problem = last.prepared.problem if last and last.prepared else None
        return Line(
            at=self._state.clock(),
            request=self.id,
            tenant=self._caller.tenant,
            method=self._scope["method"],
            route=self._route.action,
            provider=last.choice.provider.name if last else "",
            format=self._route.format or "",
            model=last.choice.model if last else "",
            status=self._status,
            session=self._session.id,
            agent=self._session.agent,
            is_streaming=last.is_streaming if last else self._route.is_streaming,
            captured=self._captured,
            bytes_up=sum(attempt.bytes_up for attempt in self._attempts),
            bytes_down=relay.bytes_down if relay else 0,
            attempts=len(self._attempts),
            store=self._store_word,
            late=relay.late if relay else 0,
            code=self._code,
            note=relay.note if relay and relay.note else "unread" if problem else "",
        ).after(self._outcome())
