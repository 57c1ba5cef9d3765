"""How deep JSON nests, counted from its brackets: no recursion, and linear time.

The interpreter stops recursion at a depth of its own, which differs by version and by the depth of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from thoughtline.values.errors import LimitExceeded

MAX_NESTING = 1_000
"""Objects and arrays inside each other. Schemas of tools, the deepest that programs send, have about thirty. Most texts
have fewer brackets than this in all, and are not scanned."""

TOO_DEEP = "nested too deeply"

_PIECE = 64 * 2**10
_STEPS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes({*range(256)} - {*b"{}[]"})
_PAIR = b"\x01\xff"
_PAIRED_ROUNDS = 8
"""How often empty pairs are taken out before the rest is counted: hardly anything nests deeper, and this is faster."""


def check_nesting(text: bytes, place: str = "") -> None:
    """Raises `LimitExceeded` for JSON that nests deeper than is read."""
    if len(text) <= MAX_NESTING or text.count(b"{") + text.count(b"[") <= MAX_NESTING:
        return
    if depth_of(b"".join(steps_of(outside) for outside, _ in outside_of_strings(text))) > MAX_NESTING:
        raise LimitExceeded(TOO_DEEP, place)


def outside_of_strings(text: bytes) -> Iterator[tuple[bytes, int]]:
    """JSON without its strings, piece by piece; each with the number of backslashes in it."""
    is_inside = is_escaped = False
    for start in range(0, len(text), _PIECE):
        piece = text[start + is_escaped : start + _PIECE]
        is_escaped = (len(piece) - len(piece.rstrip(b"\\"))) % 2 == 1
        escapes = 0
        if b"\\" in piece:
            escapes = piece.count(b"\\")
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        yield b"".join(parts[is_inside::2]), escapes
        is_inside ^= len(parts) % 2 == 0


def steps_of(outside: bytes) -> bytes:
    """The brackets of JSON without strings, as signed bytes: 1 goes in, -1 out."""
    return outside.translate(_STEPS, _NO_BRACKETS)


def depth_of(steps: bytes) -> int:
    """The deepest level."""
    level = 0
    while level < _PAIRED_ROUNDS and _PAIR in steps:
        steps, level = steps.replace(_PAIR, b""), level + 1
    return level + max(accumulate(memoryview(steps).cast("b"), initial=0))
