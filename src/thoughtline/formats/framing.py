"""Where one event of a text stream ends and the next begins: server-sent events, lines of JSON, a growing JSON array.

Each decoder takes bytes cut anywhere and gives the payloads that are complete, in the same pieces however the bytes
were cut. SSE event names and ids are not given: in every format we read, the payload says what it is.
"""

from __future__ import annotations

import re
from typing import Protocol

from thoughtline.formats.json_text import escape_line_breaks
from thoughtline.values.errors import LimitExceeded

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Largest single event. Images come base64 in one event (Gemini, about 10 MB seen); a stream that never ends an event
must not fill the memory."""

_BOM = b"\xef\xbb\xbf"


class Framing(Protocol):
    """Bytes in, whole payloads out."""

    def feed(self, data: bytes) -> list[bytes]: ...

    def finish(self) -> list[bytes]:
        """What is left when the stream has ended: a last event without its end mark counts."""
        ...


class _Pending:
    """Bytes of an event that has not ended yet. Joined only when it ends: a long event costs what it is long."""

    def __init__(self, limit: int) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = limit
        self.is_exceeded = False

    def __len__(self) -> int:
        return self._size

    def add(self, data: bytes) -> None:
        """More of an event that has not ended."""
        self.check()
        if data:
            self._size += len(data)
            if self._size > self._limit:
                self.is_exceeded = True
                self.check()
            self._pieces.append(data)

    def check(self) -> None:
        """Once beyond the bound, always beyond it."""
        if self.is_exceeded:
            raise LimitExceeded(f"an event is longer than {self._limit} bytes")

    def within(self, payloads: list[bytes], rest: bytes) -> list[bytes]:
        """The payloads up to one beyond the bound, whose error comes with the next call; `rest` is not ended yet."""
        long = next((at for at, payload in enumerate(payloads) if len(payload) > self._limit), None)
        if long is None and len(rest) <= self._limit:
            self.add(rest)
            return payloads
        self.is_exceeded = True
        if not payloads[:long]:
            self.check()
        return payloads[:long]

    def end(self, data: bytes) -> bytes:
        """All of the event, with the piece that ends it."""
        self._pieces.append(data)
        return self.take()

    def last_byte(self) -> bytes:
        return self._pieces[-1][-1:] if self._pieces else b""

    def take(self) -> bytes:
        joined = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return joined


class ServerSentEvents:
    """The `data` of each event of a `text/event-stream` (WHATWG HTML, 9.2): comments, CRLF and CR line ends, several
    `data` lines, no space after the colon, a byte-order mark, and a last event that no blank line ends."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._pending = _Pending(limit)
        self._limit = limit
        self._ended_in_cr = False
        self._head: bytes | None = b""
        self._is_between_events = False

    def feed(self, data: bytes) -> list[bytes]:
        # Nearly every piece of nearly every stream is one event of one line: seen at a glance, it need not be cut.
        is_one = self._is_between_events and data[:6] == b"data: " and data.find(10) == len(data) - 2
        if is_one and data[-1] == 10 and 13 not in data and 8 < len(data) <= self._limit:
            return [data[6:-2]]
        self._pending.check()
        payloads = self._feed(data)
        is_waiting = self._pending or self._ended_in_cr or self._head is not None
        self._is_between_events = not (is_waiting or self._pending.is_exceeded)
        return payloads

    def _feed(self, data: bytes) -> list[bytes]:
        if self._head is not None:
            data = self._without_bom(data)
        if self._ended_in_cr or 13 in data:
            data = self._with_plain_line_ends(data)
        if b"\n\n" not in data and not (data[:1] == b"\n" and self._pending.last_byte() == b"\n"):
            self._pending.add(data)
            return []
        if self._pending:
            data = self._pending.end(data)
        whole, rest = data.rsplit(b"\n\n", 1)
        lines = whole.split(b"\n")
        if any(lines[1::2]):
            payloads = [payload for event in whole.split(b"\n\n") for payload in _data_lines(event)]
        else:
            payloads = [
                payload
                for line in lines[::2]
                for payload in ((line[6:],) if line[:6] == b"data: " and len(line) > 6 else _data_lines(line))
            ]
        return self._pending.within(payloads, rest)

    def finish(self) -> list[bytes]:
        self._pending.check()
        head, self._head = self._head, None
        if head:
            self._pending.add(head)
        return _data_lines(self._pending.take()) if self._pending else []

    def _without_bom(self, data: bytes) -> bytes:
        """The mark may come in three pieces: hold what could still become one."""
        seen = (self._head or b"") + data
        if len(seen) < len(_BOM) and _BOM.startswith(seen):
            self._head = seen
            return b""
        self._head = None
        return seen.removeprefix(_BOM)

    def _with_plain_line_ends(self, data: bytes) -> bytes:
        if self._ended_in_cr and data[:1] == b"\n":
            data = data[1:]
            self._ended_in_cr = False
        if data:
            self._ended_in_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data_lines(event: bytes) -> list[bytes]:
    """The `data` of one event, or of none if it has no such line."""
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return [b"\n".join(lines)] if any(lines) else []


class JsonLines:
    """One JSON value a line (NDJSON)."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._pending = _Pending(limit)

    def feed(self, data: bytes) -> list[bytes]:
        self._pending.check()
        if b"\n" not in data:
            self._pending.add(data)
            return []
        if self._pending:
            data = self._pending.end(data)
        whole, rest = data.rsplit(b"\n", 1)
        lines = [line for line in map(bytes.strip, whole.split(b"\n")) if line]
        return self._pending.within(lines, rest)

    def finish(self) -> list[bytes]:
        self._pending.check()
        line = self._pending.take().strip() if self._pending else b""
        return [line] if line else []


_OUTSIDE = re.compile(rb'["\[\]{}]')
_INSIDE_STRING = re.compile(rb'["\\]')


class JsonArray:
    """The elements of one JSON array that arrives in pieces: Gemini's stream without `alt=sse`."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._pending = _Pending(limit)
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def feed(self, data: bytes) -> list[bytes]:
        """The elements that are whole. Those before one beyond the bound are given first; the error comes next."""
        payloads: list[bytes] = []
        self._pending.check()
        try:
            self._feed(data, payloads)
        except LimitExceeded:
            if not payloads:
                raise
        return payloads

    def _feed(self, data: bytes, payloads: list[bytes]) -> None:
        start = position = 0
        while (found := self._next_mark(data, position)) is not None:
            mark, position = data[found : found + 1], found + 1
            if self._in_string:
                self._in_string = mark != b'"'
                self._is_escaped = mark == b"\\"
            elif mark == b'"':
                self._in_string = True
            elif mark in b"[{":
                self._depth += 1
                if self._depth == 2:
                    start = found
            else:
                self._depth -= 1
                if self._depth == 1:
                    self._pending.add(data[start:position])
                    payloads.append(self._pending.take())
        if self._depth >= 2:
            self._pending.add(data[start:])

    def _next_mark(self, data: bytes, position: int) -> int | None:
        if self._is_escaped and position < len(data):
            position += 1
            self._is_escaped = False
        found = (_INSIDE_STRING if self._in_string else _OUTSIDE).search(data, position)
        return found.start() if found else None

    def finish(self) -> list[bytes]:
        self._pending.check()
        return [self._pending.take()] if self._pending else []


def sse(payload: bytes, name: str = "") -> bytes:
    """One server-sent event of a JSON payload."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + one_line(escape_line_breaks(payload)) + b"\n\n"


def one_line(payload: bytes) -> bytes:
    """JSON on one line. What we pass on may be spread over several; a line end in JSON is mere white space."""
    if b"\n" in payload or b"\r" in payload:
        return payload.replace(b"\r", b" ").replace(b"\n", b" ")
    return payload
