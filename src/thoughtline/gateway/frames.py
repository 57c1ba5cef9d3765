"""Responses over a WebSocket, frame by frame: converts requests to the body of a POST, and answers to frames. Pure.

client   {"type": "response.create", "previous_response_id": X, "input": new, …}
           ─▶  {"input": [what led to X …, X's output …, new …], "stream": true, …}
server   data: {"type": "response.created", …}  ─▶  {"type": "response.created", …}
         401 {"error": {…}}                     ─▶  {"type": "error", "status": 401, "error": {…}, "headers": {…}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import Frame, ServerSentEvents
from thoughtline.formats.json_text import NULL, array, elements, encode, is_given, members, object_of, set_members
from thoughtline.formats.lone_surrogates import as_sent, readable
from thoughtline.formats.openai_responses.elements import COMPACTIONS
from thoughtline.formats.weighing import check_weight
from thoughtline.gateway.headers import Headers
from thoughtline.gateway.stored_responses import input_of, name_of
from thoughtline.values.errors import Declined

CREATE = "response.create"
KEEPALIVE = b'{"type":"keepalive"}'
"""Replaces a comment of a stream: Codex's watchdog for silence does not see pings, and it skips events of unknown types
(0.169.0, 2026-11)."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_ERROR_HEADERS = re.compile(rb"retry-after|x-request-id|x-ratelimit-.*|x-codex-.*|x-thoughtline-.*")
"""Headers of an error that go into its frame: Codex reads limits and waiting times there."""

# Codex sends these as members of `client_metadata`, and over HTTP as headers (0.166.0, 2026-11).
_OF_A_TURN = {
    "session_id": b"session-id",
    "thread_id": b"thread-id",
    "x-codex-window-id": b"x-codex-window-id",
    "x-codex-turn-metadata": b"x-codex-turn-metadata",
    "x-codex-turn-state": b"x-codex-turn-state",
    "x-codex-parent-thread-id": b"x-codex-parent-thread-id",
    "x-openai-subagent": b"x-openai-subagent",
    "ws_request_header_traceparent": b"traceparent",
    "ws_request_header_tracestate": b"tracestate",
    "ws_request_header_x_openai_internal_codex_responses_lite": b"x-openai-internal-codex-responses-lite",
}
_TURN_HEADERS = frozenset(_OF_A_TURN.values())
_OF_THE_UPGRADE = frozenset(
    {b"connection", b"upgrade", b"content-length", b"content-type", b"accept", b"accept-encoding", b"openai-beta"}
)
_PLAIN = re.compile(r"[\x20-\x7e]{1,16384}")


class CreateFrame(Struct, frozen=True, gc=False):
    """A `response.create`. `is_respelled`: its lone surrogates had to be rewritten to decode it."""

    text: bytes
    members: dict[str, Raw]
    is_respelled: bool = False

    @property
    def previous(self) -> str:
        """The response that it continues; empty if none."""
        given = self.members.get("previous_response_id", NULL)
        return name_of(given) if is_given(given) else ""

    @property
    def is_prewarm(self) -> bool:
        """Whether it generates nothing: its content is for the next request."""
        return bytes(self.members.get("generate", NULL)) == b"false"

    @property
    def metadata(self) -> dict[str, Raw]:
        try:
            return members(self.members.get("client_metadata", Raw(b"{}")))
        except _UNREADABLE:
            return {}


class LatestConversation(Struct, frozen=True, gc=False):
    """What a connection knows under a response's id: everything that led to it and its output, as the client saw it.

    `marks` are the ids of the elements of that output.
    """

    id: str
    input: bytes
    marks: frozenset[str] = frozenset()


class TurnRequest(Struct, gc=False):
    """A turn to request. `input` is the whole conversation; None if only the store or the provider has it."""

    body: bytes
    headers: Headers
    input: bytes | None

    def take_body(self) -> bytes:
        """Return the body once and release it, so that it does not stay in memory during the answer."""
        body, self.body = self.body, b""
        return body


def read_frame(text: bytes) -> CreateFrame:
    """Decode a frame. Raises if it is not a `response.create`."""
    check_weight(text)
    try:
        frame = CreateFrame(text, members(text))
    except _UNREADABLE:
        spelled = readable(text)
        if spelled is None:
            raise _bad_frame() from None
        try:
            frame = CreateFrame(spelled, members(spelled), is_respelled=True)
        except _UNREADABLE:
            raise _bad_frame() from None
    kind = _element(frame.text).type
    if kind != CREATE:
        raise Declined(
            400, "unknown_frame", f"Frames of the type {kind[:100]!r} are not served here.", f"Send {CREATE}."
        )
    return frame


def turn_of(frame: CreateFrame, headers: Headers, earlier: LatestConversation | None) -> TurnRequest:
    """Return a frame as a POST, with the earlier conversation before it. `headers` are those of the upgrade."""
    try:
        given = input_of(frame.members)
    except _UNREADABLE:
        given = []  # the reader of the body reports what is wrong
    whole: bytes | None = array(given)
    changes: list[tuple[str, bytes | None]] = [(name, None) for name in ("type", "generate", "background")]
    changes.append(("stream", b"true"))
    if earlier is not None:
        if not _is_whole(given, earlier):
            whole = joined(earlier.input, array(given))
        changes += [("input", whole), ("previous_response_id", None)]
    elif frame.previous:
        whole = None
    body, headers = set_members(frame.text, changes), turn_headers(headers, frame.metadata)
    return TurnRequest(as_sent(body), headers, None) if frame.is_respelled else TurnRequest(body, headers, whole)


def joined(first: bytes, second: bytes) -> bytes:
    """Join two arrays."""
    if first == b"[]" or second == b"[]":
        return second if first == b"[]" else first
    return first[:-1] + b"," + second[1:]


def _is_whole(given: Sequence[Raw], earlier: LatestConversation) -> bool:
    """Whether an input is the whole conversation: it is compacted, or contains what it continues."""
    read = [_element(one) for one in given]
    return any(one.type in COMPACTIONS or not earlier.marks.isdisjoint(one.marks) for one in read)


def turn_headers(headers: Headers, metadata: dict[str, Raw]) -> Headers:
    """Return the headers of a turn: those of the upgrade, which may have been for another turn, updated from the
    frame."""
    from_frame = {name: value for key, name in _OF_A_TURN.items() if (value := _plain(metadata.get(key)))}
    stale = _TURN_HEADERS if from_frame else frozenset()
    kept = [
        (name, value)
        for name, value in headers
        if name not in _OF_THE_UPGRADE and name not in stale and not name.startswith(b"sec-websocket-")
    ]
    kept += [(name, betas) for name, value in headers if name == b"openai-beta" and (betas := _other_betas(value))]
    return [*kept, *from_frame.items(), (b"content-type", b"application/json"), (b"accept", b"text/event-stream")]


def _other_betas(value: bytes) -> bytes:
    """Return the betas without the one that selects the frame format."""
    named = [one.strip() for one in value.split(b",")]
    return b", ".join(one for one in named if not one.startswith(b"responses_websockets="))


def _plain(raw: Raw | None) -> bytes:
    """Return a text that is a valid header value; otherwise nothing."""
    try:
        text = msgspec.json.decode(raw, type=str) if raw is not None else ""
    except _UNREADABLE:
        return b""
    return text.encode() if _PLAIN.fullmatch(text) else b""


class _Element(Struct, gc=False):
    type: str = ""
    id: str | None = None
    call_id: str | None = None

    @property
    def marks(self) -> set[str]:
        return {f"{self.type} {name}" for name in (self.id, self.call_id) if name}


_element_decoder = msgspec.json.Decoder(_Element)


def _element(raw: bytes | Raw) -> _Element:
    try:
        return _element_decoder.decode(raw)
    except _UNREADABLE:
        return _Element()


def marks_of(output: Sequence[bytes | Raw]) -> frozenset[str]:
    return frozenset(mark for one in output for mark in _element(one).marks)


class _Event(Struct, gc=False):
    type: str = ""
    item: Raw = NULL
    response: Raw = NULL


class _Response(Struct, gc=False):
    id: str = ""
    output: Raw = Raw(b"[]")


_event_decoder = msgspec.json.Decoder(_Event)
_response_decoder = msgspec.json.Decoder(_Response)


class Answer:
    """Converts an event stream to frames, and collects what to remember of it.

    `output` are the elements that the client received. `is_over` is set when the client knows that the turn has ended.
    """

    def __init__(self) -> None:
        self._events = ServerSentEvents()
        self._is_read = True
        self.response_id = ""
        self.output: list[bytes] = []
        self.is_over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._frames(self._events.feed(data))

    def finish(self) -> Iterator[bytes]:
        return self._frames(self._events.finish())

    def conversation(self, turn_input: bytes) -> LatestConversation | None:
        """Return the conversation that the client may continue, if it got an answer."""
        if not self.response_id or not self._is_read:
            return None
        return LatestConversation(self.response_id, joined(turn_input, array(self.output)), marks_of(self.output))

    def _frames(self, found: list[Frame]) -> Iterator[bytes]:
        for frame in found:
            if self.is_over:
                return
            if frame.payload[:1] == b"{":  # not [DONE]
                yield self._read(frame.payload)
            elif not frame.payload and frame.raw.lstrip()[:1] == b":":
                yield KEEPALIVE

    def _read(self, payload: bytes) -> bytes:
        try:
            event = _event_decoder.decode(payload)
        except _UNREADABLE:
            self._is_read = False
            return payload
        match event.type:
            case "response.output_item.done":
                self.output.append(bytes(event.item))
            case "response.completed" | "response.incomplete":
                self._end(event.response)
            case "response.failed":
                self.is_over = True
            case "error":
                self.is_over = True
                return _with_status(payload)
        return payload

    def _end(self, raw: Raw) -> None:
        self.is_over = True
        try:
            response = _response_decoder.decode(raw)
            self.response_id = response.id
            self.output = self.output or [bytes(one) for one in elements(response.output)]
        except _UNREADABLE:
            self._is_read = False


def _with_status(payload: bytes) -> bytes:
    """Return a stream's error as a frame. Codex ignores one without a status, and then waits for five minutes."""
    fields = members(payload)
    if is_given(fields.get("status", NULL)):
        return payload
    if is_given(fields.get("error", NULL)):
        return set_members(payload, [("status", b"500")])
    named = [("type", b'"server_error"'), *((name, fields.get(name)) for name in ("code", "message", "param"))]
    return object_of([("type", b'"error"'), ("status", b"500"), ("error", object_of(named))])


def error_frame(status: int, headers: Headers, body: bytes, stream_id: Raw | None = None) -> bytes:
    """Return an error answer as a frame."""
    try:
        error = members(body)["error"]
        if bytes(error)[:1] != b"{":
            raise KeyError
    except (*_UNREADABLE, KeyError):
        kind = "invalid_request_error" if status < 500 else "server_error"
        message = body[:1000].decode("utf-8", "replace") or f"The provider answered {status}."
        error = Raw(encode({"type": kind, "code": None, "message": message, "param": None}))
    frame_headers = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in headers if _ERROR_HEADERS.fullmatch(name)
    }
    return object_of(
        [
            ("type", b'"error"'),
            ("status", str(status).encode()),
            ("error", error),
            ("headers", encode(frame_headers)),
            ("stream_id", stream_id),
        ]
    )


def prewarmed(frame: CreateFrame, name: str, now: float) -> tuple[bytes, bytes]:
    """Return the answer to a frame that generates nothing: begun and completed."""
    response = object_of(
        [
            ("id", encode(name)),
            ("object", b'"response"'),
            ("created_at", str(int(now)).encode()),
            ("status", b'"completed"'),
            ("model", frame.members.get("model", NULL)),
            ("output", b"[]"),
            ("usage", _NO_USAGE),
        ]
    )
    begun = set_members(response, [("status", b'"in_progress"'), ("usage", b"null")])
    kinds = ((b'"response.created"', begun), (b'"response.completed"', response))
    first, last = (
        object_of([("type", kind), ("sequence_number", str(number).encode()), ("response", snapshot)])
        for number, (kind, snapshot) in enumerate(kinds)
    )
    return first, last


_NO_USAGE = encode(
    {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
)


def _bad_frame() -> Declined:
    return Declined(400, "bad_frame", "The frame is not a JSON object.", f"Send {CREATE} as text.")
