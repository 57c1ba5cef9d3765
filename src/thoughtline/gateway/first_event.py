"""Reads the beginning of an answer before any of it goes to the client: some providers send 200 and then an error.

Only used if another target or key may do better. The bytes read are read again when the answer is passed on.
"""

from __future__ import annotations

import asyncio

import msgspec

from thoughtline.failover.failures import TargetFailure, failure_holders, failure_of
from thoughtline.formats.aws_event_stream import CONTENT_TYPE, EventStream
from thoughtline.formats.encodings import Decompressor
from thoughtline.formats.framing import Frame
from thoughtline.gateway.http_client import UpstreamCut, UpstreamResponse
from thoughtline.values.errors import DecodeError

LOOKED_AT_BYTES = 64 * 2**10
_MARKS = (b'"error"', b'"__type"')
"""An error has one of these near its beginning, or a member that holds a provider's error numbers."""


async def failure_at_start(
    response: UpstreamResponse, *, is_streaming: bool, due: float | None
) -> TargetFailure | None:
    """Return the failure that the beginning of an answer shows. `due` is the event loop's time by which it must have
    begun."""
    try:
        async with asyncio.timeout_at(due):
            begun = await _begun(response, is_streaming=is_streaming)
    except TimeoutError:
        return TargetFailure("late")
    except UpstreamCut:
        return TargetFailure("broken")
    except DecodeError:
        return None  # in an unreadable encoding: passed on unchanged
    return failure_of(200, begun, response.header("retry-after"))


async def _begun(response: UpstreamResponse, *, is_streaming: bool) -> bytes:
    unpack = Decompressor(response.header("content-encoding"), 2 * LOOKED_AT_BYTES)
    if response.header("content-type").startswith(CONTENT_TYPE):
        return await _begun_in_binary(response, unpack)
    begun = b""
    while len(begun) < LOOKED_AT_BYTES and not _is_enough(begun, is_streaming=is_streaming):
        piece = await response.peek()
        if piece is None:
            break
        begun += unpack.feed(piece)
    return begun


async def _begun_in_binary(response: UpstreamResponse, unpack: Decompressor) -> bytes:
    """Return the first message of an AWS stream, if it is an exception, in the form that AWS uses in a body."""
    stream = EventStream(LOOKED_AT_BYTES)
    while (piece := await response.peek()) is not None:
        for message in stream.feed(unpack.feed(piece)):
            return _exception(message)
    return b""


def _exception(message: Frame) -> bytes:
    named = message.headers.get(":exception-type") or message.headers.get(":error-code")
    return msgspec.json.encode({"__type": named}) if named else b""


def _is_enough(begun: bytes, *, is_streaming: bool) -> bool:
    """Whether enough was read: the first event of a stream, after any comments; of a body all, if it may be an
    error."""
    if not begun.strip():
        return False
    if not is_streaming:
        return not any(mark in begun for mark in (*_MARKS, *_holders()))
    first = begun.lstrip()[:1]
    if first in b"[{" or not first.isascii() or (not first.isalpha() and first != b":"):
        return True
    complete = begun[: begun.rfind(b"\n") + 1]
    return any(line.startswith(b"data:") for line in complete.splitlines())


def _holders() -> tuple[bytes, ...]:
    return tuple(f'"{name}"'.encode() for name in failure_holders())
