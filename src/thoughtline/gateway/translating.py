"""Between a client of one format and a provider of another; also assembles whole answers of providers that only stream.

request   Transcript ── translate ─▶ Prepared (in the provider's format)
answer    events, or a reply ── Translate ─▶ a whole answer or a stream in the client's format
"""

from __future__ import annotations

import secrets

from msgspec import Struct, field

from thoughtline.engine.request import Prepared
from thoughtline.formats import FORMATS
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.pieces import MAX_WHOLE_BYTES, Piece, too_large
from thoughtline.replay.findings import Finding
from thoughtline.translation import (
    CallIds,
    ResponseContext,
    Sealer,
    Sealing,
    StreamTranslator,
    reply_events,
    whole_reply,
    without_deltas,
)
from thoughtline.translation.calls import rule_of
from thoughtline.translation.replies import EditsEvents
from thoughtline.translation.tools import NO_NAMES, ToolNames
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.events import Event
from thoughtline.values.records import Key
from thoughtline.values.turns import FormatName, Provenance

_NOT_DOWN = (b"content-type", b"content-length", b"content-encoding", b"transfer-encoding")


class ClientFormat(Struct, frozen=True):
    """A client's format, and the parts of its request that its answer depends on.

    `call_ids` maps ids of another format; `tools` are the client's names for tools that the provider knows by other
    names.
    """

    format: FormatName
    is_streaming: bool
    is_array: bool = False
    wants_usage: bool = True
    call_ids: CallIds | None = None
    tools: ToolNames = NO_NAMES


def way_back(
    prepared: Prepared, client: ClientFormat, sealer: Sealer, made: Provenance, created: float
) -> ResponseContext:
    """Return the context for translating the answer back."""
    own, source = FORMATS[client.format], prepared.destination.format
    is_same = own.name == source
    end = prepared.needed.end if prepared.needed else None
    prefix = end.prefix() if end is not None and end.bound else Key("")
    return ResponseContext(
        source,
        prepared.contract.dialect,
        own.name,
        dialect=prepared.contract.dialect if is_same else own.dialect,
        ids=client.call_ids or CallIds(rule_of(own.name, own.dialect)),
        sealing=Sealing(sealer, made, prefix, created) if sealer.is_able and not is_same else None,
        wants_usage=client.wants_usage,
        created=int(created),
        # The client refers to it later, so it needs a unique id: Ollama has only 999 (`chatcmpl-7`), others give none.
        name=f"{own.response_prefix}{secrets.token_hex(24)}" if "stored_responses" in own.quirks else "",
        tools=client.tools,
    )


def client_headers(received: Headers, client: ClientFormat, is_stream: bool) -> Headers:
    """Return the provider's headers, without those about a body that the client does not get."""
    is_json = not is_stream or client.is_array
    headers = [(b"content-type", b"application/json" if is_json else FORMATS[client.format].stream_type)]
    for name, value in received:
        if name not in _NOT_DOWN:
            headers.append((name, value))
    return headers


class Translate(Struct):
    """Writes an answer in another format, or as a whole instead of a stream; as a stream if there is a `translator`.

    `keeps_answer`: a Responses client may refer to it in its next request; then `answer` has it once it is complete.
    """

    context: ResponseContext
    client: ClientFormat
    edits: EditsEvents | None
    keeps_answer: bool
    translator: StreamTranslator | None
    answer: bytes = b""
    _events: list[Event] = field(default_factory=list)
    _size: int = 0
    _has_begun: bool = False
    _findings: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the client's format could not hold."""
        return self.translator.findings if self.translator is not None else self._findings

    def feed(self, piece: Piece) -> None:
        events, piece.data, piece.ending = piece.events or [], b"", b""
        self._size += len(piece.plain)
        if self._size > MAX_WHOLE_BYTES:
            is_stream = self.translator is not None
            raise LimitExceeded("a stream that is too long").from_upstream() if is_stream else too_large()
        if self.translator is None:
            self._events += without_deltas(events)
        elif events:
            piece.data, piece.ending = self.translator.feed(events)
            if self.client.is_array or self.keeps_answer:
                self._adjust(piece)
        elif piece.plain.startswith(b":") or b"\n:" in piece.plain:
            piece.data = self.pulse()  # a comment from the provider: it is alive

    def pulse(self) -> bytes:
        """Return a keep-alive sign. White space is allowed before a body, and between the elements of an array."""
        if self.translator is None or self.client.is_array:
            return b"\n"
        return self.translator.pulse()

    def end(self, piece: Piece) -> None:
        events = reply_events(piece.reply) if piece.reply is not None else piece.events or []
        piece.data = piece.ending = b""
        if self.translator is None:
            piece.ending, self._findings = whole_reply([*self._events, *events], self.context, self.edits)
            self.answer = piece.ending if self.keeps_answer else b""
            return
        piece.data, piece.ending = self.translator.end(events)
        if self.client.is_array or self.keeps_answer:
            self._adjust(piece)
        if self.client.is_array:
            piece.ending += self._close()
        if piece.reply is not None:  # nothing was sent yet, so all of it waits for the record
            piece.data, piece.ending = b"", piece.data + piece.ending

    def cut(self, piece: Piece, problem: str) -> None:
        """End with an error in mid-stream, in the client's format; the turn so far is kept as truncated."""
        if self.translator is None:  # a body that has begun can only be cut off
            piece.data = piece.ending = b""
            return
        error = self.translator.fail(f"The answer ends here: {problem}.")
        if self.client.is_array:
            error = self._framed(error) + self._close()
        piece.data, piece.ending = b"", error

    def _adjust(self, piece: Piece) -> None:
        """Frame Gemini's arrays, and keep an answer."""
        assert self.translator is not None
        if self.keeps_answer and piece.ending:
            self.answer = self.translator.take_answer()
        if self.client.is_array:
            piece.data = self._framed(piece.data) if piece.data else b""
            piece.ending = self._framed(piece.ending) if piece.ending else b""

    def _framed(self, data: bytes) -> bytes:
        """Frame data as an array of answers: Gemini streams one unless the client requested server-sent events."""
        lead, self._has_begun = b",\r\n" if self._has_begun else b"[", True
        frames = data.replace(b"\r\n", b"\n").split(b"\n\n")
        return lead + b",\r\n".join([frame.removeprefix(b"data: ") for frame in frames if frame.strip()])

    def _close(self) -> bytes:
        return b"]" if self._has_begun else b"[]"
