"""Cursors: where a page ended, as text that a caller hands back."""

from __future__ import annotations

from thoughtline.errors import StoreRefused


def encode_cursor(number: int) -> str:
    return str(number)


def decode_cursor(text: str | None) -> int | None:
    """Raises for text that no page gave."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise StoreRefused("a cursor that no page gave")
    return int(text)


def encode_pair_cursor(created_at: float, identity: bytes) -> str:
    return f"{created_at!r}:{identity.hex()}"


def decode_pair_cursor(text: str | None) -> tuple[float, bytes] | None:
    """Raises for text that no page gave."""
    if text is None:
        return None
    created_at, _, identity = text.partition(":")
    try:
        return float(created_at), bytes.fromhex(identity)
    except ValueError:
        raise StoreRefused("a cursor that no page gave") from None
