r"""Half characters: the `\ud83d` that is left where a client cut a text in the middle of an emoji.

JavaScript cuts strings between the halves of a character, and writes such a half as an escape of its own. Providers
that read JSON as Python does take it; a decoder that gives UTF-8 can't. To be read, a half is spelled as a character of
the private use area, in as many bytes and in a spelling that no encoder uses; on the way out it is a half again.

    as sent   \ud83d   \uD83D        lone halves, in either case
    readable  \uE03d   \uF03D        U+E000 to U+E7FF and U+F000 to U+F7FF, with a capital first digit
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from thoughtline.errors import DecodeError
from thoughtline.providers import Dialect
from thoughtline.turns import Transcript

T = TypeVar("T")
Decode = Callable[[bytes, Dialect], Transcript]
Encode = Callable[[Transcript, Dialect], bytes]

# Every escape is taken as a whole, so that an escaped backslash before a `u` is not taken for one.
_AS_SENT = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of a character
    rb"|u(?P<half>d[89a-f][0-9a-f]{2}|D[89A-F][0-9A-F]{2})"
    rb"|u(?P<taken>[EF][0-7][0-9a-fA-F]{2}|[dD][89a-fA-F])"  # our own spelling, or a half that would lose its own
    rb"|.)",
    re.DOTALL,
)
_READABLE = re.compile(rb"\\(?:u([EF])([0-7])([0-9a-fA-F]{2})|.)", re.DOTALL)
_UP = {b"%x" % (digit + 8): b"%d" % digit for digit in range(8)} | {
    b"%X" % (digit + 8): b"%d" % digit for digit in range(8)
}


def readable(body: bytes) -> bytes | None:
    """The body with its halves in a spelling that can be read; None if it has none, or they could not be told again."""
    halves = 0

    def spelled(escape: re.Match[bytes]) -> bytes:
        nonlocal halves
        half = escape["half"]
        if half is None:
            return escape[0]
        halves += 1
        return (b"\\uE" if half[:1] == b"d" else b"\\uF") + _UP[half[1:2]] + half[2:]

    if any(escape["taken"] for escape in _AS_SENT.finditer(body)):
        return None
    changed = _AS_SENT.sub(spelled, body)
    return changed if halves else None


def as_sent(body: bytes) -> bytes:
    """The body with the halves that the client sent."""
    return _READABLE.sub(_half, body)


def _half(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        return escape[0]
    first = b"%x" % (int(escape[2]) + 8)
    return b"\\ud" + first + escape[3] if escape[1] == b"E" else b"\\uD" + first.upper() + escape[3]


def glanced(decoder: msgspec.json.Decoder[T], body: bytes) -> T | None:
    """What a decoder finds in a body, half characters or none; None if it can't be read."""
    for text in (body, None):
        spelled = readable(body) if text is None else text
        try:
            return decoder.decode(spelled) if spelled is not None else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return None


def reading(decode: Decode) -> Decode:
    """A decoder of requests that takes half characters too."""

    def read(body: bytes, dialect: Dialect) -> Transcript:
        try:
            return decode(body, dialect)
        except DecodeError:
            spelled = readable(body)
            if spelled is None:
                raise
        return replace(decode(spelled, dialect), has_halves=True)

    return read


def writing(encode: Encode) -> Encode:
    """The encoder for what such a decoder has read."""

    def write(transcript: Transcript, dialect: Dialect) -> bytes:
        body = encode(transcript, dialect)
        return as_sent(body) if transcript.has_halves else body

    return write
