"""The translated lane: a client of one format, a provider of another.

    body ── opened ─▶ Transcript ── translate_request ─▶ Prepared (of the provider's format)
    whole or stream of the provider ── TranslatingRelay ─▶ whole or stream of the client

Also for a client that wants a whole answer of a provider that only streams, and the other way round, in one format.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from thoughtline.continuity.terms import Terms
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight, decode_bounded
from thoughtline.gateway.asgi import Send
from thoughtline.gateway.departure import Departure
from thoughtline.gateway.edits import EditsAnswer
from thoughtline.gateway.headers import Headers, with_findings
from thoughtline.gateway.late_saves import Hold
from thoughtline.gateway.relay import LONG_BYTES, MAX_WHOLE_BYTES, Keep, Relay
from thoughtline.gateway.upstream import UpstreamCut, UpstreamResponse
from thoughtline.replay.keys import Identity
from thoughtline.replayer import Carried, Destination, Prepared, Replayer
from thoughtline.translation import (
    CallIds,
    Chunk,
    Sealer,
    Sealing,
    StreamTranslator,
    Way,
    stream_reply,
    translate_reply,
    translate_request,
    whole_reply,
)
from thoughtline.translation.calls import rule_of
from thoughtline.values.errors import Declined, DecodeError, EncodeError, LimitExceeded, ThoughtlineError
from thoughtline.values.events import CallDelta, Event, ReasoningDelta, TextDelta
from thoughtline.values.options import MissingTools
from thoughtline.values.records import Key
from thoughtline.values.turns import FormatName, Reply
from thoughtline.watching import Watch, provenance_of
from thoughtline.working import Work, at_once

_TYPES: dict[FormatName, bytes] = {"ollama_chat": b"application/x-ndjson"}
_NOT_DOWN = (b"content-type", b"content-length", b"content-encoding", b"transfer-encoding")


KeepAnswer: TypeAlias = Callable[[bytes], Coroutine[Any, Any, None]]


class Spoken(NamedTuple):
    """What a client speaks, and what it asked for that its answer depends on."""

    format: FormatName
    is_streaming: bool
    is_array: bool = False
    wants_usage: bool = True


class TranslatedExchange(NamedTuple):
    """A request in the provider's format, and the way back."""

    prepared: Prepared
    spoken: Spoken
    sealer: Sealer

    def way(self, created: float) -> Way:
        """How the answer goes back to the client."""
        prepared, client = self.prepared, FORMATS[self.spoken.format]
        where = prepared.destination.format
        end = prepared.needed.end if prepared.needed else None
        prefix = end.prefix() if end is not None and end.frame else Key("")
        sealing = Sealing(self.sealer, provenance_of(prepared), prefix, created)
        ids = prepared.carried.call_ids or CallIds(rule_of(client.name, client.dialect))
        return Way(
            where,
            prepared.contract.dialect,
            client.name,
            client.dialect if client.name != where else prepared.contract.dialect,
            ids,
            sealing if self.sealer.is_able and client.name != where else None,
            self.spoken.wants_usage,
            int(created),
            # Asked for by its name later, so it needs one of its own: Ollama has 999 (`chatcmpl-7`), others give none.
            f"resp_{secrets.token_hex(24)}" if client.name == "openai_responses" else "",
            prepared.carried.tools,
        )


async def translated(
    replayer: Replayer,
    body: bytes,
    spoken: Spoken,
    destination: Destination,
    identity: Identity,
    sealer: Sealer,
    terms: Terms | None,
    *,
    streams_only: bool,
    missing_tools: MissingTools = "leave_out",
) -> TranslatedExchange:
    """A client's request, prepared for a provider that speaks another format. Raises where it can't be carried."""
    client = FORMATS[spoken.format]
    assert client.bodies is not None
    work = replayer.work_for(body)
    asked = await work(partial(decode_bounded, body, client.name, client.dialect))
    contract = replayer.contract_for(destination)
    streams = spoken.is_streaming or asked.is_streaming
    request = await work(
        partial(
            translate_request,
            asked,
            destination.format,
            contract,
            destination.model,
            identity,
            sealer,
            is_streaming=streams or streams_only,
            missing_tools=missing_tools,
        )
    )
    carried = Carried(request.records, request.findings, request.call_ids, request.tools)
    prepared = await replayer.prepare_decoded(request.transcript, destination, identity, contract, carried, terms)
    spoken = spoken._replace(is_streaming=streams, wants_usage=request.options.wants_usage)
    return TranslatedExchange(prepared, spoken, sealer)


def client_headers(received: Headers, spoken: Spoken, is_stream: bool) -> Headers:
    """The provider's headers, but for those that are about a body which the client does not get."""
    kept = [(name, value) for name, value in received if name not in _NOT_DOWN]
    is_json = not is_stream or spoken.is_array
    kind = b"application/json" if is_json else _TYPES.get(spoken.format, b"text/event-stream; charset=utf-8")
    return [(b"content-type", kind), *kept]


class TranslatingRelay(Relay):
    """A response on its way down into another format, or into another way of coming."""

    def __init__(
        self,
        response: UpstreamResponse,
        headers: Headers,
        watch: Watch,
        keep: Keep,
        hold: Hold,
        departure: Departure,
        edits: EditsAnswer | None = None,
        *,
        work: Work,
        way: Way,
        spoken: Spoken,
        keep_answer: KeepAnswer,
    ) -> None:
        super().__init__(response, headers, watch, keep, hold, departure, edits, work=work)
        self._way = way
        self._spoken = spoken
        self._keep_answer = keep_answer
        self._answered: list[Event] = []
        self._unended_bytes = 0
        self._has_begun = False

    async def pass_whole(self, send: Send) -> None:
        """A whole response of the provider's: whole for the client, or as a stream."""
        body = await self._read_whole()
        work = self._work_for(body)
        reply = await work(partial(self._decoded, body))
        if self._watch is not None:
            await work(partial(self._watch.read_whole, body))
        await self._answer(send, reply, work)

    def _decoded(self, body: bytes) -> Reply:
        source = FORMATS[self._way.source]
        assert source.bodies is not None
        try:
            check_weight(body)
        except DecodeError as problem:
            raise problem.from_upstream() from None
        return source.bodies.decode_response(body, self._way.source_dialect)

    async def _answer(self, send: Send, reply: Reply, work: Work) -> None:
        write = stream_reply if self._spoken.is_streaming else translate_reply
        written = await work(partial(write, reply, self._way))
        self.findings = written.findings
        await self._hold()
        if self._spoken.format == "openai_responses":
            whole = written
            if self._spoken.is_streaming:
                whole = await work(partial(translate_reply, reply, self._way))
            await self._hold_for(self._keep_answer(whole.body))
        await self._send_all(send, _framed(written.body, self._spoken, is_first=True, is_last=True))

    async def pass_stream(self, send: Send) -> None:
        """A stream of the provider's: a stream for the client, or gathered into a whole."""
        if self._spoken.is_streaming:
            await self._start(send)
            await self._translate(send)
        else:
            await self._gather_stream(send)

    async def _read_whole(self) -> bytes:
        try:
            while (piece := await self._response.read()) is not None:
                self._gather(piece)
        except UpstreamCut:
            raise _broken_off() from None
        if self._watch is None:
            raise _too_large()
        return self._plain(b"".join(self._gathered))

    async def _gather_stream(self, send: Send) -> None:
        translator = StreamTranslator(self._way)
        events: list[Event] = []
        try:
            while (piece := await self._response.read()) is not None:
                if self._is_too_long(piece):
                    raise _too_large()
                events += _without_deltas((await self._fed(translator, piece)).events)
        except UpstreamCut:
            raise _broken_off() from None
        events += translator.finish().events
        if self._watch is not None:
            self._watch.hear(events)
        work = self._work if self._gathered_bytes > LONG_BYTES else at_once
        written = await work(partial(whole_reply, events, self._way))
        self.findings = written.findings
        await self._hold()
        if self._spoken.format == "openai_responses":
            await self._hold_for(self._keep_answer(written.body))
        await self._send_all(send, written.body)

    async def _fed(self, translator: StreamTranslator, piece: bytes) -> Chunk:
        """What a piece says. One that may end a long event is read where that holds nobody up."""
        self._unended_bytes += len(piece)
        work = self._work if self._unended_bytes > LONG_BYTES else at_once
        chunk = await work(lambda: translator.feed(self._plain(piece)))
        if chunk.events:
            self._unended_bytes = 0
        return chunk

    def _is_too_long(self, piece: bytes) -> bool:
        """Whether a stream has become longer than any answer is: all of it is gathered, item by item."""
        self._gathered_bytes += len(piece)
        self._departure.hold(self._gathered_bytes)
        return self._gathered_bytes > MAX_WHOLE_BYTES

    async def _send_all(self, send: Send, body: bytes) -> None:
        self._headers = with_findings(self._headers, [finding.rule for finding in self.findings])
        if not self._spoken.is_streaming:
            body = self._edits.whole(body) if self._edits else body
            self._headers = [*self._headers, (b"content-length", str(len(body)).encode())]
        await self._start(send)
        if self._spoken.is_streaming:
            await self._send(send, body, is_last=True)
        else:
            await self._send_as_it_is(send, body, is_last=True)

    async def _translate(self, send: Send) -> None:
        translator = StreamTranslator(self._way)
        try:
            while (piece := await self._response.read()) is not None:
                if self._is_too_long(piece):
                    raise LimitExceeded("a stream that is too long to be translated").from_upstream()
                chunk = await self._fed(translator, piece)
                self.findings = translator.findings  # before the turn is saved, which tells of them
                await self._pass_chunk(send, chunk.data, chunk.ending, chunk.events)
                if self._departure.has_left and self._is_drained():
                    self.note = "the client left; not read to the end"
                    break
            chunk = translator.finish()
            self.findings = translator.findings
            await self._pass_chunk(send, chunk.data, chunk.ending, chunk.events)
        except UpstreamCut:
            await self._fail(send, translator, "the upstream broke off")
        except DecodeError as problem:
            await self._fail(send, translator, problem.problem)
        except EncodeError:
            await self._fail(send, translator, "it can't be told in this format")
        self.findings = translator.findings
        await self._send(send, self._closed(), is_last=True)

    async def _pass_chunk(self, send: Send, data: bytes, ending: bytes, events: list[Event]) -> None:
        """What is said at once; then, when the turn is saved, that it is over."""
        if self._watch is not None and events:
            self._watch.hear(events)
        if data:
            await self._send(send, self._framed(data))
        await self._hold()
        if self._spoken.format == "openai_responses":
            await self._note_answer(events, is_over=bool(ending))
        if ending:
            await self._send(send, self._framed(ending))

    async def _note_answer(self, events: list[Event], *, is_over: bool) -> None:
        """A stream whose answer may be named in the next request: kept when it is over, deltas left out."""
        self._answered += _without_deltas(events)
        if is_over and self._answered:
            events, self._answered = self._answered, []
            await self._hold_for(self._keep_answer(whole_reply(events, self._way).body))

    async def _fail(self, send: Send, translator: StreamTranslator, problem: str) -> None:
        """An error in mid-stream, as the client's format tells it; what was said so far is kept as cut short."""
        self.note = problem
        try:
            events = translator.finish().events
        except ThoughtlineError:
            events = []
        if self._watch is not None:
            self._watch.hear(events)
        await self._hold()
        await self._send(send, self._framed(translator.fail(f"The answer ends here: {problem}.")))

    def _framed(self, data: bytes) -> bytes:
        is_first, self._has_begun = not self._has_begun, True
        return _framed(data, self._spoken, is_first=is_first, is_last=False)

    def _closed(self) -> bytes:
        return (b"]" if self._has_begun else b"[]") if self._spoken.is_array else b""


def _framed(data: bytes, spoken: Spoken, *, is_first: bool, is_last: bool) -> bytes:
    """Gemini streams an array of answers unless it was asked for server-sent events."""
    if not (spoken.is_array and spoken.is_streaming):
        return data
    events = [event.removeprefix(b"data: ") for event in data.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
    lead = b"[" if is_first else b",\r\n"
    return lead + b",\r\n".join(events) + (b"]" if is_last else b"")


def _without_deltas(events: list[Event]) -> list[Event]:
    """What a whole answer is made of: each item is told once more, whole, when it is done."""
    return [event for event in events if not isinstance(event, (TextDelta, ReasoningDelta, CallDelta))]


def _too_large() -> Declined:
    return Declined(502, "answer_too_large", "The provider's answer is too large to be translated.")


def _broken_off() -> Declined:
    return Declined(502, "upstream_failed", "The provider broke off in the middle of its answer.", "Ask again.")
