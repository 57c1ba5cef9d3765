"""Where one event of a stream ends, with every byte of it: for those who pass a stream on and change some of it.

Unlike the framings of the formats, which give payloads, these give events as they came: what stands before a payload,
the payload, and what stands after it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from thoughtline.formats.framing import MAX_EVENT_BYTES
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.turns import FormatName

_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_OUTSIDE = re.compile(rb'["\[\]{}]')
_INSIDE = re.compile(rb'["\\]')


class RawEvent(NamedTuple):
    """An event. `head` + `payload` + `tail` says the same as `raw`; without a payload only `raw` counts."""

    raw: bytes
    head: bytes = b""
    payload: bytes = b""
    tail: bytes = b""


class SplitsEvents(Protocol):
    """Bytes cut anywhere in, whole events out."""

    def feed(self, data: bytes) -> list[RawEvent]: ...

    def finish(self) -> list[RawEvent]: ...

    def rest(self) -> bytes:
        """What is no event: the end of something that never ended."""
        ...


def splitter_for(format: FormatName) -> SplitsEvents:
    """For the streams of a format."""
    if format == "ollama_chat":
        return _Lines()
    return _EitherWay() if format == "gemini_generate" else _ServerSent()


class _Buffer:
    """Bytes that are no whole event yet. Joined only when something ends: a long event costs what it is long."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > MAX_EVENT_BYTES:
            raise LimitExceeded(f"an event is longer than {MAX_EVENT_BYTES} bytes")

    def take(self) -> bytes:
        joined = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._size = [], 0
        return joined

    def last(self, count: int) -> bytes:
        """The last few bytes."""
        found = b""
        for piece in reversed(self._pieces):
            found = piece + found
            if len(found) >= count:
                break
        return found[-count:]


class _ServerSent:
    """Server-sent events: up to and with the blank line."""

    def __init__(self) -> None:
        self._buffer = _Buffer()

    def feed(self, data: bytes) -> list[RawEvent]:
        is_ended = _BLANK_LINE.search(self._buffer.last(3) + data) is not None
        self._buffer.add(data)
        if not is_ended:
            return []
        data = self._buffer.take()
        events = []
        at = 0
        for found in _BLANK_LINE.finditer(data):
            if found.end() == len(data) and data.endswith(b"\r"):
                break  # a line feed may follow, which belongs to it
            events.append(_server_sent(data[at : found.end()], found.end() - found.start()))
            at = found.end()
        if at < len(data):
            self._buffer.add(data[at:])
        return events

    def finish(self) -> list[RawEvent]:
        data = self._buffer.take()
        return [_server_sent(data, 0)] if data else []

    def rest(self) -> bytes:
        return self._buffer.take()


def _server_sent(raw: bytes, blank: int) -> RawEvent:
    """An event of one `data` line in its parts; one of several as if it were one."""
    body, end = raw[: len(raw) - blank], raw[len(raw) - blank :]
    if body.startswith(b"data:") and b"\n" not in body and b"\r" not in body:
        lead = 6 if body[5:6] == b" " else 5
        return RawEvent(raw, body[:lead], body[lead:], end)
    lines = _LINE_END.split(body.removeprefix(b"\xef\xbb\xbf"))
    data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    if not any(data):
        return RawEvent(raw)
    others = [line for line in lines if not line.startswith(b"data:")]
    head = b"".join(line + b"\n" for line in others) + b"data: "
    return RawEvent(raw, head, b"\n".join(data), end or b"\n\n")


class _Lines:
    """One JSON value a line."""

    def __init__(self) -> None:
        self._buffer = _Buffer()

    def feed(self, data: bytes) -> list[RawEvent]:
        self._buffer.add(data)
        if b"\n" not in data:
            return []
        *lines, rest = self._buffer.take().split(b"\n")
        if rest:
            self._buffer.add(rest)
        return [RawEvent(line + b"\n", b"", line.strip(), b"\n") for line in lines]

    def finish(self) -> list[RawEvent]:
        line = self._buffer.take()
        return [RawEvent(line, b"", line.strip(), b"")] if line else []

    def rest(self) -> bytes:
        return self._buffer.take()


class _Elements:
    """The elements of one JSON array that grows: each with what stands between it and the one before."""

    def __init__(self) -> None:
        self._data = b""
        self._seen = 0
        self._start = -1
        self._depth = 0
        self._in_string = False
        self._is_over = False

    def feed(self, data: bytes) -> list[RawEvent]:
        self._data += data
        if len(self._data) > MAX_EVENT_BYTES:
            raise LimitExceeded(f"an event is longer than {MAX_EVENT_BYTES} bytes")
        events = []
        while (at := self._next()) is not None:
            event = self._step(at)
            if event is not None:
                events.append(event)
        if self._is_over:
            events.append(RawEvent(self.rest()))
        return events

    def _next(self) -> int | None:
        """The next byte that counts."""
        found = (_INSIDE if self._in_string else _OUTSIDE).search(self._data, self._seen)
        if found is None:
            self._seen = len(self._data)
            return None
        if found[0] == b"\\":
            if found.end() == len(self._data):
                self._seen = found.start()
                return None
            self._seen = found.end() + 1
            return self._next()
        self._seen = found.end()
        return found.start()

    def _step(self, at: int) -> RawEvent | None:
        char = self._data[at : at + 1]
        if char == b'"':
            self._in_string = not self._in_string
        elif char in b"[{":
            self._depth += 1
            if self._depth == 2:
                self._start = at
        else:
            self._depth -= 1
            self._is_over = self._depth <= 0
            if self._depth == 1:
                return self._cut(at + 1)
        return None

    def _cut(self, end: int) -> RawEvent:
        raw, head, payload = self._data[:end], self._data[: self._start], self._data[self._start : end]
        self._data, self._seen, self._start = self._data[end:], 0, -1
        return RawEvent(raw, head, payload)

    def finish(self) -> list[RawEvent]:
        return []

    def rest(self) -> bytes:
        data, self._data, self._seen = self._data, b"", 0
        return data


class _EitherWay:
    """Server-sent events or a JSON array, whichever the first byte says."""

    def __init__(self) -> None:
        self._head = b""
        self._chosen: SplitsEvents | None = None

    def feed(self, data: bytes) -> list[RawEvent]:
        if self._chosen is None:
            self._head += data
            first = self._head.lstrip()[:1]
            if not first:
                return []
            self._chosen = _Elements() if first == b"[" else _ServerSent()
            data = self._head
        return self._chosen.feed(data)

    def finish(self) -> list[RawEvent]:
        return self._chosen.finish() if self._chosen is not None else []

    def rest(self) -> bytes:
        return self._chosen.rest() if self._chosen is not None else self._head
