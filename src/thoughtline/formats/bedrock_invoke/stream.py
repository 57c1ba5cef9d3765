"""InvokeModel streams: Messages events, each in base64 inside a message of Amazon's framing."""

from __future__ import annotations

import base64

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.formats.anthropic_messages import stream, stream_encoder
from thoughtline.formats.aws_event_stream import NamedEvents, encode_event, encode_exception
from thoughtline.formats.framing import ServerSentEvents
from thoughtline.formats.json_text import NULL, is_given, object_of
from thoughtline.providers import ANTHROPIC, Dialect
from thoughtline.values.events import Event, Failed, Other


class _Chunk(Struct, gc=False):
    event: bytes = field(default=b"{}", name="bytes")


class _Named(Struct, gc=False):
    chunk: _Chunk | None = None
    exception: Raw = NULL


_decode_named = msgspec.json.Decoder(_Named).decode


class StreamDecoder(stream.StreamDecoder):
    def __init__(self, dialect: Dialect = ANTHROPIC) -> None:
        super().__init__(dialect, framing=NamedEvents())

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        named = _decode_named(payload)
        if named.chunk is not None:
            super()._consume(named.chunk.event, events)
        elif is_given(named.exception):
            events.append(Failed(named.exception.copy()))
        else:
            events.append(Other(Raw(payload)))


class StreamEncoder(stream_encoder.StreamEncoder):
    keep_alive = b""

    def encode(self, event: Event) -> bytes:
        return encode_exception(event.error) if isinstance(event, Failed) else _framed(super().encode(event))

    def pulse(self) -> bytes:
        return _framed(stream_encoder.StreamEncoder.keep_alive)

    def finish(self) -> bytes:
        return _framed(super().finish())


def _framed(events: bytes) -> bytes:
    """Server-sent events in Amazon's framing."""
    payloads = (frame.payload for frame in ServerSentEvents().feed(events)) if events else ()
    return b"".join(encode_event("chunk", _chunk(payload)) for payload in payloads)


def _chunk(event: bytes) -> bytes:
    return object_of([("bytes", b'"' + base64.b64encode(event) + b'"')])
