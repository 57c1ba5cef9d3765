r"""Lone surrogates: the `\ud83d` that remains when a client cuts a text in the middle of an emoji.

JavaScript cuts strings inside of a pair, and writes the other half as an escape. Providers that read JSON as Python
does accept it; a decoder that produces UTF-8 can't. For decoding, a lone surrogate is written as a character of the
private use area, with the same number of bytes and in a spelling that no encoder uses; when sent, it is a surrogate
again.

    as sent   \ud83d   \uD83D        in either case
    readable  \uE03d   \uF03D        U+E000 to U+E7FF and U+F000 to U+F7FF, with a capital first digit
"""

from __future__ import annotations

import re

MAX_ESCAPES = 100_000
"""Pairs and lone surrogates that are examined: a body with more would take too long, and is rejected."""

MAX_BACKSLASHES = 1024

_PAIR_OR_LONE = re.compile(
    rb"\\u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
_SPELLED = re.compile(rb"\\u(?P<lone>[EF][0-7][0-9a-fA-F]{2})")
_ONE_CASE = re.compile(rb"d[89a-f][0-9a-f]{2}|D[89A-F][0-9A-F]{2}")


def readable(body: bytes) -> bytes | None:
    """The body in a spelling that can be decoded; None if it has no lone surrogate, or the change could not be
    reversed.
    """
    places = _places(_PAIR_OR_LONE, body)
    if not places or _places(_SPELLED, body) != [] or not all(_ONE_CASE.match(body, at) for at in places):
        return None
    changed = bytearray(body)
    for at in places:
        changed[at : at + 2] = b"%c%d" % (
            b"E" if body[at : at + 1] == b"d" else b"F",
            int(body[at + 1 : at + 2], 16) - 8,
        )
    return bytes(changed)


def as_sent(body: bytes) -> bytes:
    """The body with the lone surrogates that the client sent."""
    changed = bytearray(body)
    for at in _places(_SPELLED, body) or ():
        first = b"d%x" % (int(body[at + 1 : at + 2]) + 8)
        changed[at : at + 2] = first if body[at : at + 1] == b"E" else first.upper()
    return bytes(changed)


def _places(pattern: re.Pattern[bytes], body: bytes) -> list[int] | None:
    """The positions of the digits of lone surrogates; None if there are too many candidates."""
    places: list[int] = []
    at = 0
    for _ in range(MAX_ESCAPES):
        found = pattern.search(body, at)
        if found is None:
            return places
        is_escape = _is_escape(body, found.start())
        if is_escape and found["lone"] is not None:
            places.append(found.start("lone"))
        at = found.end() if is_escape else found.start() + 2
    return None


def _is_escape(body: bytes, at: int) -> bool:
    """Whether the backslash at this position is not escaped itself: an even number precedes it, up to a limit."""
    before = body[max(0, at - MAX_BACKSLASHES) : at]
    count = len(before) - len(before.rstrip(b"\\"))
    return count % 2 == 0 and count < MAX_BACKSLASHES
