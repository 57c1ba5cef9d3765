"""Shared code of simulators for writing JSON, ids and streams."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from thoughtline_sim.reading import Json


def compact(value: Json) -> bytes:
    """JSON as the providers send it: no spaces, keys in the order they were written."""
    return msgspec.json.encode(value)


def digest(*parts: str) -> str:
    """A short name for these strings; their boundaries matter."""
    framed = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return sha256(framed).hexdigest()[:24]


def uuid_of(*parts: str) -> str:
    digits = digest(*parts) + digest("more", *parts)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def pieces_of(text: str, size: int) -> Iterator[str]:
    """A text as the deltas of a stream: at most `size` characters each, none if it is empty."""
    for start in range(0, len(text), max(1, size)):
        yield text[start : start + max(1, size)]
