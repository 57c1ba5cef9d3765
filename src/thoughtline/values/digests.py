"""Digests of credentials and names. Stores keep them, so the digest of a value must never change."""

from __future__ import annotations

from hashlib import blake2b, sha256


def joined(*parts: bytes) -> bytes:
    """Joins parts unambiguously: no other parts give the same bytes."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def secret_digest(secret: str) -> bytes:
    """256 bits of a credential: long and random ones can't be guessed from it, and a comparison takes constant time."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def named_digest(text: str, purpose: bytes, size: int = 16) -> bytes:
    """A digest of `size` bytes, different for every purpose."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size, person=purpose).digest()
