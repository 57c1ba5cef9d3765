"""Signatures and sealed reasoning: real authentication of everything a provider binds a token to.

A token is `head | nonce | ciphertext | tag`. The ciphertext is the token's claims under a keystream of HMAC-SHA256; the
tag is an HMAC over the bound strings, the nonce and the ciphertext. To open it, the bound strings must be the same:
with another account, another model or one changed bit it does not open. Why not a library for AEAD:
docs/decisions/0011-simulator-tokens.md.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from thoughtline_sim.reading import JsonObject, standard

_NONCE_BYTES = 12
_TAG_BYTES = 32
MAX_TOKEN_CHARS = 4_000_000


class Spelling(NamedTuple):
    """How a family writes its tokens: the prefix, the alphabet, the padding."""

    head: bytes
    alphabet: Literal["standard", "url"] = "standard"
    is_padded: bool = True


ANTHROPIC = Spelling(b"\x12")
ANTHROPIC_BOUND = Spelling(b"\x08")
GEMINI = Spelling(b"\x12")
GEMINI_2_5 = Spelling(b"\x0a")
OPENAI = Spelling(b"\x80\x00\x00\x00\x00", "url")
XAI = Spelling(b"", "standard", False)


class Mint:
    """Creates and opens tokens. `random_bytes` provides nonces; the secret identifies the issuer."""

    def __init__(self, secret: bytes, random_bytes: Callable[[int], bytes]) -> None:
        self._secret = secret
        self._random_bytes = random_bytes

    def seal(self, claims: JsonObject, bound: tuple[str, ...], spelling: Spelling) -> str:
        """A token with these claims, valid only with the same bound strings."""
        nonce = self._random_bytes(_NONCE_BYTES)
        plain = msgspec.json.encode(claims)
        sealed = _xor(plain, self._keystream(bound, nonce, len(plain)))
        return _spell(spelling.head + nonce + sealed + self._tag(bound, nonce + sealed), spelling)

    def open(self, token: str, bound: tuple[str, ...], spelling: Spelling) -> JsonObject | None:
        """The claims of a token that was sealed here with the same bound strings; `None` for any other."""
        data = _unspell(token, spelling)
        if data is None or len(data) < _NONCE_BYTES + _TAG_BYTES:
            return None
        body, tag = data[:-_TAG_BYTES], data[-_TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(bound, body)):
            return None
        nonce, sealed = body[:_NONCE_BYTES], body[_NONCE_BYTES:]
        claims = msgspec.json.decode(_xor(sealed, self._keystream(bound, nonce, len(sealed))))
        return claims if isinstance(claims, dict) else None

    def _key(self, purpose: bytes, bound: tuple[str, ...]) -> bytes:
        framed = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in bound)
        return hmac.digest(self._secret, purpose + framed, sha256)

    def _tag(self, bound: tuple[str, ...], data: bytes) -> bytes:
        return hmac.digest(self._key(b"tag:", bound), data, sha256)

    def _keystream(self, bound: tuple[str, ...], nonce: bytes, size: int) -> bytes:
        key = self._key(b"stream:", bound)
        blocks = range(-(-size // sha256().digest_size))
        return b"".join(hmac.digest(key, nonce + block.to_bytes(8, "big"), sha256) for block in blocks)[:size]


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def _spell(data: bytes, spelling: Spelling) -> str:
    encode = base64.urlsafe_b64encode if spelling.alphabet == "url" else base64.b64encode
    text = encode(data).decode()
    return text if spelling.is_padded else text.rstrip("=")


def _unspell(token: str, spelling: Spelling) -> bytes | None:
    """Both alphabets are accepted, as by Gemini; otherwise a token must have its original spelling."""
    if len(token) > MAX_TOKEN_CHARS:
        return None
    try:
        text = standard(token)
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    # The last character of base64 has bits that decode to nothing: a change of them counts too.
    if base64.b64encode(data).decode().rstrip("=") != text.rstrip("=") or not data.startswith(spelling.head):
        return None
    return data[len(spelling.head) :]
