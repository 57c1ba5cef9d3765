"""How an answer begins, before any of it has gone to the client: some providers say 200, and then that they can't.

Looked at only where another target, or another key, may do better. What was looked at is read again by whoever passes
the answer on.
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
"""An error has one of these near its beginning, or a member that holds a provider's numbers."""


async def failure_at_start(
    response: UpstreamResponse, *, is_streaming: bool, due: float | None
) -> TargetFailure | None:
    """What the beginning of an answer says against its target. `due` is the loop's time by which it must have begun."""
    try:
        async with asyncio.timeout_at(due):
            begun = await _begun(response, is_streaming=is_streaming)
    except TimeoutError:
        return TargetFailure("late")
    except UpstreamCut:
        return TargetFailure("broken")
    except DecodeError:
        return None  # packed in a way that can't be read: passed on as it is
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
    """The first message of such a stream, if it is an exception: as AWS tells one in a body."""
    stream = EventStream(LOOKED_AT_BYTES)
    while (piece := await response.peek()) is not None:
        for message in stream.feed(unpack.feed(piece)):
            return _exception(message)
    return b""


def _exception(message: Frame) -> bytes:
    named = message.headers.get(":exception-type") or message.headers.get(":error-code")
    return msgspec.json.encode({"__type": named}) if named else b""


def _is_enough(begun: bytes, *, is_streaming: bool) -> bool:
    """A stream is told by its first event, whatever comments stand before it; a body by all of it, if it may be one."""
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
