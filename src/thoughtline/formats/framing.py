"""Splits a stream into events: server-sent events, lines of JSON, a growing JSON array.

Each framing takes bytes, split anywhere, and returns frames: the frames of a stream together are its bytes, and the
payloads don't depend on how the bytes were split. Names and ids of server-sent events are ignored: in every format, the
payload names its kind. `aws_event_stream` has the same interface.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from thoughtline.formats.json_text import escape_line_breaks
from thoughtline.values.errors import LimitExceeded

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""The largest single event. Images come as base64 in one event (Gemini, about 10 MB seen); a stream that never ends an
event must not fill the memory.
"""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_DATA_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?([^\r\n]*)")
_BLANK_LINE = re.compile(rb"(\r\n\r\n|\r\n\n|\r\n\r|\n\r\n|\n\n|\n\r|\r\r\n|\r\r)")
_OUTSIDE_STRING = re.compile(rb'["\[\]{}]')
_INSIDE_STRING = re.compile(rb'["\\]')
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Frame(Struct, frozen=True, gc=False):
    """One event with its original bytes: those before its payload, the payload, those after it.

    Comments and white space have no payload. A payload on several `data` lines is joined; `spread` are the bytes of
    such an event. `headers` are those of Amazon's framing.
    """

    head: bytes = b""
    payload: bytes = b""
    tail: bytes = b""
    spread: bytes = b""
    headers: Mapping[str, str] = _NO_HEADERS

    @property
    def raw(self) -> bytes:
        return self.spread or self.head + self.payload + self.tail

    def with_payload(self, payload: bytes) -> bytes:
        """The bytes of the event with another payload."""
        return self.head + one_line(payload) + self.tail


class Framing(Protocol):
    """Splits bytes into frames."""

    def feed(self, data: bytes) -> list[Frame]:
        """The complete events. Those before an oversized one are returned first; the error is raised at the
        next call.
        """
        ...

    def finish(self) -> list[Frame]:
        """The rest when the stream has ended: a last event without its end mark counts."""
        ...

    def rest(self) -> bytes:
        """The bytes received but not yet returned."""
        ...


class _Held(ABC):
    """Bytes of an incomplete event. Joined only when it ends, so a long event takes linear time."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_exceeded = False

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if not self._is_exceeded:
            data = self._cut(data, frames)
        if data:
            self._pieces.append(data)
            self._size += len(data)
            self._is_exceeded = self._is_exceeded or self._size > self._limit
        if self._is_exceeded and not frames:
            raise LimitExceeded(f"an event is longer than {self._limit} bytes")
        return frames

    def finish(self) -> list[Frame]:
        if self._is_exceeded:
            raise LimitExceeded(f"an event is longer than {self._limit} bytes")
        return self._last(self.rest()) if self._pieces else []

    def rest(self) -> bytes:
        joined = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return joined

    @abstractmethod
    def _cut(self, data: bytes, frames: list[Frame]) -> bytes:
        """Return the events that end in these bytes, and the bytes left over."""

    @abstractmethod
    def _last(self, data: bytes) -> list[Frame]:
        """The bytes held when the stream ended."""

    def _give(self, found: list[Frame], frames: list[Frame]) -> bytes:
        """Return these events up to an oversized one, and the bytes left over."""
        long = next((at for at, frame in enumerate(found) if len(frame.payload) > self._limit), len(found))
        self._is_exceeded = long < len(found)
        frames += found[:long]
        return b"".join(frame.raw for frame in found[long:])


class ServerSentEvents(_Held):
    """The events of a `text/event-stream` (WHATWG HTML, 9.2): comments, CRLF and CR line ends, several `data` lines, no
    space after the colon, a byte-order mark, and a last event that no blank line ends."""

    _is_first = True
    _ended_in_cr = False

    def feed(self, data: bytes) -> list[Frame]:
        # Nearly every piece of nearly every stream is one event of one line: detected early, it is not split.
        is_one = not self._pieces and data[:6] == b"data: " and data.find(10) == len(data) - 2
        if is_one and data[-1] == 10 and 13 not in data and 8 < len(data) <= self._limit:
            self._is_first = self._ended_in_cr = False
            return [Frame(b"data: ", data[6:-2], b"\n\n")]
        return super().feed(data)

    def _cut(self, data: bytes, frames: list[Frame]) -> bytes:
        if self._ended_in_cr and data:
            self._ended_in_cr = False
            if data[:1] == b"\n":  # it belongs to the previous line end, whose event was already returned
                frames.append(Frame(b"\n"))
                data = data[1:]
        if self._pieces:
            seen = self._pieces[-1][-1:] + data
            if b"\n\n" not in seen and (13 not in seen or _BLANK_LINE.search(seen) is None):
                return data
            data = self.rest() + data
        if self._is_first and (b"\n" in data or b"\r" in data):
            self._is_first = False
            if data.startswith(_BOM):
                frames.append(Frame(_BOM))
                data = data[len(_BOM) :]
        events: list[Frame] = []
        if 13 in data:
            *parts, rest = _BLANK_LINE.split(data)
            events += map(_event, parts[::2], parts[1::2])
        else:
            *parts, rest = data.split(b"\n\n")
            for body in parts:
                # A one-line event, inline: `_event` would make it a sixth slower.
                if body[:6] == b"data: " and len(body) > 6 and body.find(10) < 0:
                    events.append(Frame(b"data: ", body[6:], b"\n\n"))
                else:
                    events.append(_event(body, b"\n\n"))
        self._ended_in_cr = not rest and data.endswith(b"\r")
        if len(data) <= self._limit:
            frames += events
            return rest
        return self._give(events, frames) + rest

    def _last(self, data: bytes) -> list[Frame]:
        if self._is_first and data.startswith(_BOM):
            return [Frame(_BOM), _event(data[len(_BOM) :], b"")]
        return [_event(data, b"")]


def _event(body: bytes, end: bytes) -> Frame:
    """Split an event with one `data` line into its parts; several lines are treated as one."""
    at = 0 if body[:5] == b"data:" else body.find(b"\ndata:") + 1 or len(body)
    if len(body) > at + 6 and body.find(10, at) < 0 and 13 not in body:
        # Nearly always it is the last and only such line.
        start = at + 6 if body[at + 5] == 32 else at + 5
        return Frame(body[:start], body[start:], end)
    found = list(_DATA_LINE.finditer(body))
    if not any(line[1] for line in found):
        return Frame(body + end)
    if len(found) == 1:
        first, last = found[0].span(1)
        return Frame(body[:first], body[first:last], body[last:] + end)
    others = [line for line in _LINE_END.split(body) if not line.startswith(b"data:")]
    head = b"".join(line + b"\n" for line in others) + b"data: "
    return Frame(head, b"\n".join(line[1] for line in found), end or b"\n\n", body + end)


class JsonLines(_Held):
    """One JSON value a line (NDJSON)."""

    def _cut(self, data: bytes, frames: list[Frame]) -> bytes:
        if b"\n" not in data:
            return data
        data = self.rest() + data
        *lines, rest = data.split(b"\n")
        return self._give([_line(line, b"\n") for line in lines], frames) + rest

    def _last(self, data: bytes) -> list[Frame]:
        return [_line(data, b"")]


def _line(line: bytes, end: bytes) -> Frame:
    payload = line.strip()
    if len(payload) == len(line):
        return Frame(b"", line, end)
    start = line.find(payload)
    return Frame(line[:start], payload, line[start + len(payload) :] + end)


class JsonArray(_Held):
    """The elements of one JSON array that arrives in pieces: Gemini's stream without `alt=sse`."""

    _depth = 0
    _head = 0
    _in_string = False
    _is_escaped = False

    def _cut(self, data: bytes, frames: list[Frame]) -> bytes:
        start = position = 0
        while (at := self._next_mark(data, position)) is not None:
            position = at + 1
            depth = self._depth
            self._step(data[at:position])
            if depth == 1 and self._depth == 2:
                self._head = at - start
            elif depth == 2 and self._depth == 1:
                whole = self.rest() + data[start:position]
                if left := self._give(self._last(whole), frames):
                    return left + data[position:]
                start = position
        if self._depth >= 2:
            return data[start:]
        frames += [Frame(data[start:])] if data[start:] else []
        return b""

    def _step(self, mark: bytes) -> None:
        if self._in_string:
            self._in_string = mark != b'"'
            self._is_escaped = mark == b"\\"
        elif mark == b'"':
            self._in_string = True
        else:
            self._depth += 1 if mark in b"[{" else -1

    def _next_mark(self, data: bytes, position: int) -> int | None:
        if self._is_escaped and position < len(data):
            position += 1
            self._is_escaped = False
        found = (_INSIDE_STRING if self._in_string else _OUTSIDE_STRING).search(data, position)
        return found.start() if found else None

    def _last(self, data: bytes) -> list[Frame]:
        return [Frame(data[: self._head], data[self._head :])]


class EventsOrArray:
    """Server-sent events or a JSON array, depending on the first byte."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._chosen: Framing | None = None

    def feed(self, data: bytes) -> list[Frame]:
        if self._chosen is not None:
            return self._chosen.feed(data)
        begun = data.lstrip()
        white = [Frame(data[: len(data) - len(begun)])] if len(begun) < len(data) else []
        if not begun:
            return white
        self._chosen = JsonArray(self._limit) if begun[:1] == b"[" else ServerSentEvents(self._limit)
        return white + self._chosen.feed(begun)

    def finish(self) -> list[Frame]:
        return self._chosen.finish() if self._chosen is not None else []

    def rest(self) -> bytes:
        return self._chosen.rest() if self._chosen is not None else b""


class EditedStream(ABC):
    """A stream that is forwarded frame by frame: bytes in, bytes out.

    An oversized event passes unchanged, and so does everything after it.
    """

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._gave_up = False

    def feed(self, data: bytes) -> bytes:
        """The bytes that can be forwarded."""
        if self._gave_up:
            return data
        try:
            return b"".join(map(self._edit, self._framing.feed(data)))
        except LimitExceeded:
            self._gave_up = True
            return self._held() + self._framing.rest()

    def finish(self) -> bytes:
        """End of the stream: the rest, unchanged."""
        if self._gave_up:
            return b""
        try:
            out = b"".join(map(self._edit, self._framing.finish()))
        except LimitExceeded:
            out = b""
        return out + self._held() + self._framing.rest()

    @abstractmethod
    def _edit(self, frame: Frame) -> bytes:
        """The bytes to forward for this event."""

    def _held(self) -> bytes:
        """The bytes held back, when there is nothing left to wait for."""
        return b""


def sse(payload: bytes, name: str = "") -> bytes:
    """One server-sent event of a JSON payload."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    if not payload.isascii() or b"\n" in payload or b"\r" in payload:
        payload = one_line(escape_line_breaks(payload))
    return b"%bdata: %b\n\n" % (head, payload)


def one_line(payload: bytes) -> bytes:
    """JSON on one line. Forwarded JSON may have several; a line end in JSON is only white space."""
    if b"\n" in payload or b"\r" in payload:
        return payload.replace(b"\r", b" ").replace(b"\n", b" ")
    return payload
