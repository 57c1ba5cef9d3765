"""One exchange: takes a request, forwards it, returns its answer, and stores its turns.

    admit → read → choose → Attempt (prepare, ask, heal) ⟲ the next one → Relay → journal

`request_stages.py` lists the stages of preparing, `answer_stages.py` those of the answer.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from thoughtline.clients import client_of
from thoughtline.continuity.handover import Handover, Quotation
from thoughtline.destinations.addresses import passthrough_address
from thoughtline.engine.capture import Watch, log_problem
from thoughtline.engine.capture import is_stream as is_streamed
from thoughtline.engine.request import MAX_FINDINGS, Prepared
from thoughtline.engine.said import said_in
from thoughtline.failover.failures import TargetFailure, failure_of_error, falls_over
from thoughtline.gateway.answer_stages import LONG_BYTES, Down, down
from thoughtline.gateway.asgi import Receive, Scope, Send, as_declined, error_body, retry_after, send_json, send_whole
from thoughtline.gateway.attempt import Attempt, attempt_at, elsewhere
from thoughtline.gateway.choosing import Target, named_provider
from thoughtline.gateway.doors import has_tools
from thoughtline.gateway.early_answers import EarlySend
from thoughtline.gateway.estimating import ESTIMATE_HEADER
from thoughtline.gateway.explaining import row_of
from thoughtline.gateway.headers import REPLAY, Headers, header_value, response_headers, with_findings
from thoughtline.gateway.http_client import UpstreamResponse
from thoughtline.gateway.incoming import ClientGone, Incoming, keys_to_ask_with
from thoughtline.gateway.judging import verdict_on
from thoughtline.gateway.model_answers import models_answer
from thoughtline.gateway.modes import words_of
from thoughtline.gateway.recent import served_of
from thoughtline.gateway.relay import CUT, DRAIN_SECONDS, Disconnect, Relay
from thoughtline.gateway.routing import Route
from thoughtline.gateway.saving import Hold
from thoughtline.gateway.state import State
from thoughtline.gateway.stored_responses import keep
from thoughtline.gateway.translating import client_headers
from thoughtline.gateway.verdicts import GONE, HEADER, Verdict, cut, of_error
from thoughtline.stores import MemoryStore, Saved
from thoughtline.translation import translate_error
from thoughtline.values.errors import Declined, LimitExceeded, ThoughtlineError
from thoughtline.values.outcome import Outcome, counts_of, replay_words


class Exchange:
    """A request that is being served."""

    def __init__(self, state: State, scope: Scope, receive: Receive, route: Route) -> None:
        self._state = state
        headers, query = dict(scope["headers"]), scope["query_string"].decode("latin-1")
        self.incoming = Incoming(state, scope, receive, route=route, headers=headers, query=query)
        self.attempts: list[Attempt] = []
        self._failed: Declined | None = None
        self._skipped: tuple[tuple[str, str], ...] = ()
        self._passing_seconds = 0.0
        self.captured = 0
        self.status = 0
        self.relay: Relay | None = None
        self.code = self.message = ""
        self.verdict: Verdict | None = None
        self._hold = Hold(state.settings.replay.hold_ms / 1000, state.background.late, type(state.store) is MemoryStore)
        self.is_degraded = False
        self._partial_finds = state.durable.partial_finds if state.durable is not None else 0
        self._holds_stream = False
        self._early: EarlySend | None = None
        self._disconnect = Disconnect(
            DRAIN_SECONDS if route.action == "generate" else 0.0, state.background.abandoned, state.upstreams.in_flight
        )
        # A name, not a secret: a system call for it would also let other threads run in between.
        self.id = f"{random.getrandbits(64):016x}"

    async def run(self, send: Send) -> None:
        """Serve the request. Any failure before the first byte becomes an error in the client's format."""
        incoming, route = self.incoming, self.incoming.route
        self._state.recent.under_way[self.id] = self
        try:
            await incoming.take_in()
            self._disconnect.listen(incoming.scope, incoming.receive, incoming.owner)
            if route.action == "models":
                await self._list_models(send)
            elif route.action == "passthrough" or route.format is None:
                await self._pass_through(send)
            else:
                await self._converse(send)
        except ClientGone:
            self.code, self.verdict = "client_gone", GONE
        except asyncio.CancelledError:
            if not self._disconnect.has_left:
                raise
            self.code, self.verdict = "client_gone", GONE
        except ThoughtlineError as error:
            await self._decline(error.to_keep(), self._early or send)
        except Exception as error:
            log_problem("a request failed", error)
            await self._decline(
                Declined(500, "internal", "Something went wrong here.", "The log says where."), self._early or send
            )
        finally:
            self._disconnect.stop()
            if self._early is not None:
                self._early.stop()
            if self._holds_stream and incoming.caller.key is not None:
                self._state.limits.end_stream(incoming.caller.key)
            self._record_end()

    async def _converse(self, send: Send) -> None:
        """Ask the targets one after the other until one answers; the last one's answer is passed on in any case."""
        state, incoming, choices = self._state, self.incoming, self.incoming.choices
        targets: Sequence[Target] = choices.targets
        if len(targets) > 1:
            targets = choices.ordered(incoming.conversation, state.health, state.clock())
        pulse_seconds = state.settings.translation.pulse_seconds
        came_in = incoming.route.format
        is_own = len(targets) == 1 and targets[0].format == came_in
        if pulse_seconds and not is_own and all(target.format != came_in for target in targets):
            send = self._early = EarlySend(send, pulse_seconds)
        for number, target in enumerate(targets):
            try:
                keys = await keys_to_ask_with(incoming, target.provider)
            except Declined as error:  # reported if no other target can be asked
                self._failed = self._failed or error.to_keep()
                continue
            for at, key in enumerate(keys):
                is_last = number == len(targets) - 1 and at == len(keys) - 1
                attempt = attempt_at(incoming, target, key, has_choice=choices.are_several, is_last=is_last)
                if await self._try(attempt, send):
                    return
                if not state.health.keys.is_aside(target.provider.name, key, state.clock()):
                    break  # it was not the key that failed
        await self._pass_failure(send)

    async def _try(self, attempt: Attempt, send: Send) -> bool:
        """Ask one target with one key, and return whether the client has its answer. A problem with the first target is
        reported to the client."""
        state, key, name = self._state, self.incoming.caller.key, attempt.ask.target.health_name
        self.attempts.append(attempt)
        try:
            await attempt.prepare()
        except ThoughtlineError:
            if len(self.attempts) == 1:
                raise
            self.attempts.pop()  # the client should get the reason why it was asked
            return False
        if attempt.request.body_to_count is not None:
            await self._pass_count(attempt, attempt.request.body_to_count, send)
            return True
        if key is not None and attempt.request.is_streaming and not self._holds_stream:
            self._holds_stream = state.limits.begin_stream(key)
        if name in state.health.breakers.known:
            state.health.attempted(name, state.clock())
        if state.journal.is_watched:
            self._publish()
        if self._early is not None and attempt.request.is_rewritten and attempt.request.client.is_streaming:
            self._early.wait(attempt.request.client, self._own_headers)
        try:
            response = await attempt.get_answer()
        except Declined as error:
            return self._declined(attempt, error)
        try:
            has_answer = None
            if attempt.elsewhere is not None:
                has_answer = await self._ask_elsewhere(attempt, attempt.elsewhere, send)
            return await self._pass_on(attempt, response, send) if has_answer is None else has_answer
        finally:
            await response.close()

    async def _ask_elsewhere(self, attempt: Attempt, target: Target, send: Send) -> bool | None:
        """Ask at the endpoint that a refusal names, and return whether the client has its answer; None if that endpoint
        refuses too: the client's own request got the first one's answer."""
        other = elsewhere(attempt, target)
        other.log.refusals = attempt.log.refusals
        try:
            await other.prepare()
            response = await other.get_answer()
        except ThoughtlineError:
            return None
        try:
            if other.refusal is not None:
                return None
            self.attempts[-1], other.log.was_healed = other, True
            other.log.outcome = replace(other.log.outcome, healed=1)
            if self._state.settings.replay.learn:
                tools = has_tools(self.incoming.body)
                await self._state.replayer.learn_door(attempt.ask.destination, target.format, with_tools=tools)
            return await self._pass_on(other, response, send)
        finally:
            await response.close()

    async def _pass_on(self, attempt: Attempt, response: UpstreamResponse, send: Send) -> bool:
        """Pass this answer on, or an error that no other target would avoid. Returns False if the next is to be
        asked."""
        health, target, conversation = self._state.health, attempt.ask.target, self.incoming.conversation.name
        failure = await attempt.failure(response) if attempt.has_choice or attempt.refusal is not None else None
        if failure is not None:
            self._note_failure(attempt, failure)
            if not attempt.is_last and falls_over(failure, is_own_key=bool(target.provider.api_keys)):
                return False
        elif attempt.refusal is not None:
            health.refused(target.health_name)
        else:
            if conversation or target.health_name in health.breakers.known:
                health.answered(target.route, target.health_name, conversation)
            if attempt.ask.key:
                health.keys.succeeded(target.provider.name, attempt.ask.key, conversation)
            prepared = attempt.request.prepared
            if prepared is not None and prepared.quotation is not None:
                await self._keep_quotation(prepared)
            del prepared  # nor may this frame hold it
        if attempt.refusal is not None:
            await self._pass_refusal(attempt, send)
            return True
        try:
            await self._pass_down(attempt, response, send)
        except Declined as error:
            if self.relay is not None and self.relay.has_started:
                raise
            return self._declined(attempt, error)
        return True

    async def _pass_count(self, attempt: Attempt, body: bytes, send: Send) -> None:
        """Send the token count of a request, in a format that its provider has no count for."""
        counted = await attempt.count()
        if counted is None:
            await self._pass_estimate(attempt.estimated(body), send)
            return
        self.status = 200
        await send_json(send, 200, counted, self._own_headers())

    async def _pass_failure(self, send: Send) -> None:
        """No target is left: pass on what the last one returned."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or last.refusal is None or not last.refusal.is_whole:
            raise self._failed or Declined(502, "upstream_failed", "No target of this route gave an answer.", "")
        await self._pass_refusal(last, send)

    def _declined(self, attempt: Attempt, error: Declined) -> bool:
        """Note that asking failed before the client got anything. The next target is asked, if there is one."""
        failure = failure_of_error(error.code)
        attempt.log.error = error.code
        self._note_failure(attempt, failure)
        if attempt.is_last or failure is None:
            raise error
        self._failed = error
        return False

    async def _keep_quotation(self, prepared: Prepared) -> None:
        """Store the quotation of an answered request, to repeat it in the requests that continue from it."""
        handover, quotation = prepared.handover, prepared.quotation
        if isinstance(handover, Handover) and isinstance(quotation, Quotation):
            await self._hold.wait_for(self._state.services.memory.remember(handover, quotation))

    def _note_failure(self, attempt: Attempt, failure: TargetFailure | None) -> None:
        if failure is None:
            return
        now, target, health = self._state.clock(), attempt.ask.target, self._state.health
        self._skipped = tuple(("target-skipped", name) for name in self.incoming.conversation.skipped)
        # An account is busy: this counts against a target only if it has no other one.
        if failure.kind != "busy" or len(target.provider.api_keys) <= 1:
            health.failed(target.route, target.health_name, self.incoming.conversation.name, failure, now)
        if attempt.ask.key:
            health.keys.failed(target.provider.name, attempt.ask.key, failure, now)

    async def _pass_refusal(self, attempt: Attempt, send: Send) -> None:
        """Pass on the provider's own error unchanged, or translated to the client's format."""
        assert attempt.refusal is not None
        if (estimate := attempt.estimate()) is not None:
            await self._pass_estimate(estimate, send)
            return
        first, body, is_whole = attempt.refusal
        self.verdict = verdict_on(attempt, first.status)
        if attempt.ask.is_translated:
            client, target = attempt.request.client, attempt.ask.target
            self.status, body = translate_error(first.status, attempt.refusal.plain, target.format, client.format)
            headers = client_headers(self._headers_of(first), client, is_stream=False)
            await send_whole(send, self.status, [*headers, (b"content-length", str(len(body)).encode())], body)
            return
        self.status = first.status
        self.relay = relay = Relay(
            first,
            self._headers_of(first),
            Down(),
            hold=self._hold,
            disconnect=self._disconnect,
            work=self._state.background.work,
        )
        await relay.pass_read(send, body, is_whole)

    async def _pass_estimate(self, body: bytes, send: Send) -> None:
        self.status = 200
        await send_json(send, 200, body, [*self._own_headers(), ESTIMATE_HEADER])

    async def _pass_down(self, attempt: Attempt, response: UpstreamResponse, send: Send) -> None:
        """Pass on an answer. One that is translated as a whole may fail, and then another target is asked."""
        state, incoming, request, stages = self._state, self.incoming, attempt.request, Down()
        is_stream = is_streamed(response.kind, attempt.ask.target.format, is_asked=request.is_streaming)
        headers = [*response_headers(response.headers), *self._own_headers()]
        is_read, prepared = request.is_generating and response.status == 200, request.prepared
        if is_read and prepared is not None and prepared.transcript is not None:
            make = partial(down, request, response, state.services.envelope_key, is_stream=is_stream, now=state.clock())
            stages = make() if len(prepared.transcript.body) <= LONG_BYTES else await state.background.work(make)
            del make
            if stages.watch is not None and state.words.are_kept:
                stages.watch.words_before = said_in(prepared.transcript)
            if stages.watch is not None and stages.watch.provenance is not None:
                attempt.log.session = stages.watch.provenance.session
            if request.is_rewritten:
                headers = client_headers(headers, request.client, is_stream=request.client.is_streaming)
            elif stages.is_resized:
                headers = [pair for pair in headers if pair[0] != b"content-length"]
        if attempt.is_last or attempt.answers_at_once(is_stream=is_stream):
            # No target will be asked again: release the request during the answer.
            incoming.body, incoming.short, incoming.cuts, incoming.headers = b"", b"", (), {}
            for one in self.attempts:
                one.let_go()
        del prepared, request  # this frame stays, too
        await self._pump(response, headers, stages, send, is_counted=is_stream or stages.watch is None)

    async def _pump(
        self, response: UpstreamResponse, headers: Headers, stages: Down, send: Send, *, is_counted: bool
    ) -> None:
        """Pass an answer through its stages to the client. Streams are counted, and answers that are passed on
        unread."""
        state = self._state
        relay = self.relay = Relay(
            response,
            headers,
            stages,
            hold=self._hold,
            disconnect=self._disconnect,
            work=state.background.work,
            problem=stages.unread,
            pulse_seconds=state.settings.translation.pulse_seconds,
        )
        self.status = response.status
        if state.journal.is_watched:
            relay.on_start = self._publish
        began = time.perf_counter()
        try:
            if is_counted:
                response.headers = []  # release them during the body
                state.metrics.streams.inc(1)
                if state.journal.is_for_people:
                    state.journal.begun(served_of(self).line)
            await relay.run(send, partial(self._save, stages.watch))
        finally:
            if is_counted:
                state.metrics.streams.inc(-1)
            self._passing_seconds += time.perf_counter() - began - relay.held_seconds
            if relay.saves:
                await relay.settle()

    async def _pass_through(self, send: Send) -> None:
        """Pass on a request to an unknown address, and its answer, unchanged."""
        state, incoming = self._state, self.incoming
        provider = named_provider(state.settings, incoming.route)
        key = (await keys_to_ask_with(incoming, provider))[0]
        attempt = Attempt(incoming, Target(provider, "", provider.formats[0]), key)
        self.attempts.append(attempt)
        url = passthrough_address(provider, incoming.route.path, incoming.query)
        method, received = incoming.scope["method"], incoming.scope["headers"]
        response = await attempt.send_up(provider, method, url, key=key, received=received, body=incoming.body)
        try:
            incoming.body = b""
            attempt.let_go()
            if response.status >= 400:
                self.verdict = verdict_on(attempt, response.status)
            headers = [*response_headers(response.headers), *self._own_headers()]
            await self._pump(response, headers, Down(), send, is_counted=True)
        finally:
            await response.close()

    async def _list_models(self, send: Send) -> None:
        """Send the list of models, in the client's own shape."""
        answer = await models_answer(self._state, self.incoming, self.attempts)
        if answer is None:
            await self._pass_through(send)
            return
        self.status, headers = answer.status, self._own_headers()
        if answer.unlisted:
            headers.append((b"x-thoughtline-unlisted", header_value(", ".join(answer.unlisted))))
        await send_json(send, answer.status, answer.body, headers)

    async def _save(self, watch: Watch | None) -> None:
        """Save the turns that have ended, and an answer that the next request may name.

        A record that could not be made or stored is logged and does not affect the client.
        """
        state, relay = self._state, self.relay
        if watch is None or relay is None:
            return
        last, translation, answer = self.attempts[-1].request, relay.down.translation, b""
        try:
            capture = watch.ended(state.clock(), self.outcome())
            records = await state.background.work(capture) if relay.is_long else capture()
            if last.estimated_tokens and watch.usage is not None:
                name, estimate = last.ask.target.health_name, last.estimated_tokens
                state.caches.ratios.learn(name, estimate, watch.usage.input)
            if last.ask.replay == "off":
                return
            if records:
                self.captured += len(records)
                began = time.perf_counter()
                saved = await state.replayer.save(records, learns=state.settings.replay.learn)
                relay.ending.save_seconds += time.perf_counter() - began
                if watch.words_before:
                    state.words.keep(records, watch.words_before)
                self.is_degraded = saved is None or (state.durable is not None and saved is not Saved.DURABLE)
            if translation is not None:
                answer, translation.answer = translation.answer, b""
            if answer and watch.provenance is not None:
                await keep(state.store, watch.provenance, last.conversation, answer, state.clock())
            if self.is_degraded:
                relay.report_store("degraded")
        except Exception as problem:
            relay.unsaved = f"not remembered: {type(problem).__name__}"
            log_problem("a turn could not be remembered", problem)

    def outcome(self) -> Outcome:
        """Return the outcome so far."""
        last, conversation = self.attempts[-1] if self.attempts else None, self.incoming.conversation
        done = last.log.outcome if last is not None else Outcome()
        upstream, findings = self._passing_seconds, done.findings
        for attempt in self.attempts:
            upstream += attempt.log.upstream_seconds
        translation = self.relay.down.translation if self.relay is not None else None
        lost = translation.findings if translation is not None else ()
        reader = self.relay.down.reader if self.relay is not None else None
        losses = reader.watch.losses if reader is not None and reader.watch is not None else ()
        if self._skipped or lost or losses:
            places = ((finding.rule, finding.place) for finding in lost)
            findings = (*self._skipped, *findings, *places, *losses)[:MAX_FINDINGS]
        is_handed_over = last is not None and last.ask.target.route and conversation.made_by != last.ask.target.name
        return replace(
            done,
            findings=findings,
            request=self.id,
            client=client_of(str(self.incoming.user_agent, "latin-1")),
            route=last.ask.target.route if last else "",
            attempts=max(1, len(self.attempts)),
            handoff=conversation.made_by if is_handed_over else "",
            tool_errors=conversation.tool_errors,
            upstream_ms=round(upstream * 1000, 1),
            own_ms=round((time.perf_counter() - self.incoming.began - upstream) * 1000, 2),
        )

    def _headers_of(self, response: UpstreamResponse) -> Headers:
        return [*response_headers(response.headers), *self._own_headers()]

    def _own_headers(self) -> Headers:
        last = self.attempts[-1] if self.attempts else None
        done = last.log.outcome if last is not None else Outcome()
        is_too_much = last is not None and isinstance(last.log.problem, LimitExceeded)  # beyond what is read
        is_unread = is_too_much or self.incoming.is_passed_on
        durable = self._state.durable
        # Now, or when this request looked up its turns.
        fails = durable is not None and (not durable.is_settled or durable.partial_finds != self._partial_finds)
        store = "degraded" if fails else "ok"
        words = replay_words(counts_of(done), store, is_unread)
        if last is not None and last.ask.replay != "on":
            words += words_of(last.ask.replay, last.log.would)
        headers = [
            (REPLAY, words),
            (b"x-thoughtline-request", self.id.encode()),
        ]
        if last is not None and last.ask.target.model:
            headers.append((b"x-thoughtline-target", last.ask.target.header))
        if self.verdict is not None:
            headers.append((HEADER, header_value(str(self.verdict))))
        found = (*self._skipped, *done.findings)
        return with_findings(headers, [rule for rule, _ in found]) if found else headers

    async def _decline(self, error: ThoughtlineError, send: Send) -> None:
        declined = as_declined(error)
        self.code, self.message = declined.code, f"{declined} {declined.remedy}".rstrip()
        self.verdict = of_error(declined)
        if self.relay is not None and self.relay.has_started:
            return  # in the middle of an answer: without an end, the client sees that it was cut short
        self.status = declined.status
        body = error_body(declined, self.incoming.route.format, self.id)
        headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += retry_after(declined)
        await send_whole(send, declined.status, [*headers, *self._own_headers()], body)

    def _publish(self) -> None:
        """Send the progress to all listeners."""
        self._state.journal.publish(row_of(served_of(self)))

    def _record_end(self) -> None:
        """Record the exchange in the journal and in the recent requests."""
        if self.verdict is None and self.relay is not None and self.relay.problem == CUT:
            self.verdict = cut(self.attempts[-1].ask.target.provider.name)
        state, served = self._state, served_of(self, is_over=True)
        state.recent.end(served, self.attempts[-1].log.bodies if self.attempts else None)
        state.journal.record(served.line, served.refusal if state.journal.is_for_people else "")
        if self.incoming.trace is not None:
            reader = self.relay.down.reader if self.relay is not None else None
            watch = reader.watch if reader is not None else None
            self.incoming.trace.end(served.line, watch, served.first_byte_seconds)
        if state.journal.is_watched:
            state.journal.publish(row_of(served))
