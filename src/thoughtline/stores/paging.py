"""Cursors: where a page ended, as text that a caller hands back."""

from __future__ import annotations

import re

from thoughtline.values.errors import StoreRefused

MAX_NUMBER = 2**63 - 1
"""What a column of whole numbers holds: beyond it a database has an error, which would look like a failure of it."""

_PAIR = re.compile(r"(\d{1,15}(?:\.\d{1,20})?):((?:[0-9a-f]{2}){1,64})", re.ASCII)


def encode_cursor(number: int) -> str:
    return str(number)


def decode_cursor(text: str | None) -> int | None:
    """Raises for text that no page gave."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MAX_NUMBER):
        raise StoreRefused("this cursor belongs to no page")
    return int(text)


def encode_pair_cursor(created_at: float, identity: bytes) -> str:
    return f"{created_at!r}:{identity.hex()}"


def decode_pair_cursor(text: str | None) -> tuple[float, bytes] | None:
    """Raises for text that no page gave."""
    if text is None:
        return None
    found = _PAIR.fullmatch(text)
    if found is None:
        raise StoreRefused("this cursor belongs to no page")
    return float(found[1]), bytes.fromhex(found[2])
