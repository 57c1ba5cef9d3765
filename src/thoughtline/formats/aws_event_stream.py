"""The binary framing of Amazon's streams (`application/vnd.amazon.eventstream`).

    total length (4) | headers length (4) | CRC of those eight (4) | headers | payload | CRC of all before it (4)

A header is a name (length 1, bytes), a type (1) and a value; only the types that services send in event headers are
decoded, the others are skipped by their size. Layout: Smithy, "Amazon Event Stream Specification", read 2026-11.
"""

from __future__ import annotations

import struct
from binascii import crc32

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats.framing import Frame
from thoughtline.formats.json_text import encode, object_of
from thoughtline.values.errors import DecodeError, LimitExceeded

CONTENT_TYPE = "application/vnd.amazon.eventstream"

MAX_MESSAGE_BYTES = 24 * 1024 * 1024
"""The specification allows 16 MiB of payload and 128 KiB of headers; no message may be longer than this."""

_PRELUDE = struct.Struct(">III")
_OVERHEAD = _PRELUDE.size + 4
_STRING_TYPE = 7
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES_TYPE = 6


class EventStream:
    """Decodes bytes, split anywhere, to whole messages, as `framing.Framing` does. Only string headers are decoded."""

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._buffer = bytearray()
        self._limit = limit
        self._given = 0
        self._failure: DecodeError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """The complete messages. Those before a broken one are returned first; the error is raised at the next call."""
        self._buffer += data
        if self._failure is not None:
            raise self._failure
        messages: list[Frame] = []
        position = 0
        try:
            while (size := self._size_at(position)) is not None and len(self._buffer) - position >= size:
                messages.append(_decode_message(bytes(self._buffer[position : position + size])))
                position += size
        except DecodeError as error:
            self._failure = error
            if not messages:
                raise
        del self._buffer[:position]
        self._given += position
        return messages

    def finish(self) -> list[Frame]:
        """An incomplete message is dropped."""
        return []

    def rest(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def _size_at(self, position: int) -> int | None:
        if len(self._buffer) - position < _PRELUDE.size:
            return None
        total, headers, checksum = _PRELUDE.unpack_from(self._buffer, position)
        place = f"byte {self._given + position}"
        if crc32(self._buffer[position : position + 8]) != checksum:
            raise DecodeError("event stream prelude fails its checksum", place)
        if total > self._limit:
            raise LimitExceeded(f"an event stream message is longer than {self._limit} bytes", place)
        if total < _OVERHEAD + headers:
            raise DecodeError("event stream message is shorter than its headers", place)
        return int(total)


class NamedEvents(EventStream):
    """Messages as SDKs show them: objects with one member, named after the event. An exception is such a member too."""

    def feed(self, data: bytes) -> list[Frame]:
        return [replace(frame, payload=_named(frame)) for frame in super().feed(data)]


def _named(frame: Frame) -> bytes:
    headers = frame.headers
    kind = headers.get(":message-type", "event")
    if kind == "event":
        return object_of([(headers.get(":event-type", ""), frame.payload or b"{}")])
    name = headers.get(":exception-type") or headers.get(":error-code") or kind
    payload = frame.payload or encode(headers.get(":error-message", ""))
    return object_of([("exception", object_of([(name, payload)]))])


def _decode_message(message: bytes) -> Frame:
    _, headers_size, _ = _PRELUDE.unpack_from(message)
    if crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
        raise DecodeError("event stream message fails its checksum")
    start = _PRELUDE.size + headers_size
    headers = _decode_headers(message[_PRELUDE.size : start])
    return Frame(message[:start], message[start:-4], message[-4:], headers=headers)


def _decode_headers(data: bytes) -> dict[str, str]:
    headers = {}
    position = 0
    try:
        while position < len(data):
            name_end = position + 1 + data[position]
            name, kind = data[position + 1 : name_end].decode(), data[name_end]
            start, size = name_end + 1, _FIXED_SIZES.get(kind, 0)
            if kind in (_BYTES_TYPE, _STRING_TYPE):
                size = int.from_bytes(data[start : start + 2], "big")
                start += 2
            elif kind not in _FIXED_SIZES:
                raise DecodeError(f"unknown event stream header type {kind}")
            if start + size > len(data):
                raise DecodeError("unreadable event stream headers")
            if kind == _STRING_TYPE:
                headers[name] = data[start : start + size].decode()
            position = start + size
    except (IndexError, UnicodeDecodeError):
        raise DecodeError("unreadable event stream headers") from None
    return headers


def encode_message(headers: dict[str, str], payload: bytes) -> bytes:
    encoded = b"".join(_encode_header(name, value) for name, value in headers.items())
    total = _OVERHEAD + len(encoded) + len(payload)
    prelude = struct.pack(">II", total, len(encoded))
    message = prelude + crc32(prelude).to_bytes(4, "big") + encoded + payload
    return message + crc32(message).to_bytes(4, "big")


def encode_event(name: str, payload: bytes) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, payload)


def encode_exception(error: Raw) -> bytes:
    """An error in mid-stream: under its own name, or as a fault of the service."""
    named = msgspec.json.decode(error)
    name, body = "internalServerException", bytes(error)
    if isinstance(named, dict) and len(named) == 1 and str(next(iter(named))).endswith("Exception"):
        name, body = next(iter(named)), encode(next(iter(named.values())))
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return encode_message(headers, body)


def _encode_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_STRING_TYPE]) + len(text).to_bytes(2, "big") + text
