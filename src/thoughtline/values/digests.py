"""Digests: short names for texts. Stores keep what they give, so what they give never changes."""

from __future__ import annotations

from hashlib import blake2b, sha256


def digest(data: bytes) -> bytes:
    """128 bits. SHA-256: the standard library's fastest with hardware support, for short texts too."""
    return sha256(data).digest()[:16]


def digest_of(*parts: bytes) -> bytes:
    """One digest of several texts, none of which can pass for another's end."""
    whole = sha256()
    for part in parts:
        whole.update(b"%d:%b" % (len(part), part))
    return whole.digest()[:16]


def joined(*parts: bytes) -> bytes:
    """Parts as bytes that no other parts give."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def secret_digest(secret: str) -> bytes:
    """256 bits of a credential: long and random ones can't be guessed from it, and comparing takes one time."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def named_digest(text: str, purpose: bytes, size: int = 16) -> bytes:
    """Of so many bytes, and another one for every purpose."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size, person=purpose).digest()
