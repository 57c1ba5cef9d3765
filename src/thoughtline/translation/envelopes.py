"""Our own envelope for a client's opaque slot: an upstream's reasoning, sealed so that only we can open it.

Where a client's format has a slot for a token (`signature`, `encrypted_content`, `thoughtSignature`), it gets one of
these. It holds the reasoning as the upstream gave it, seals and all, with its provenance; a client that keeps it can be
served by a replica whose store is empty. It is authenticated (HMAC-SHA256) with our key and bound to the tenant:
one that was changed, made elsewhere or belongs to another tenant does not open. It is never sent to an upstream.

    base64( 3 bytes of mark, "TLT1" in base64 | 16 bytes of HMAC | zlib(JSON) )

It is plain base64 because SDKs convert some slots to bytes and back, in either alphabet. Version 1 is not encrypted:
it only holds what the client was shown or could have got from the provider directly.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from thoughtline.values.items import ENVELOPE_MARK, Item, is_envelope
from thoughtline.values.records import Key
from thoughtline.values.turns import Provenance

Place: TypeAlias = tuple[int, int]

_MARK_BYTES = base64.b64decode(ENVELOPE_MARK)
_STANDARD = str.maketrans("-_", "+/")
_TAG_BYTES = 16
MAX_OPENED = 8 * 1024 * 1024
"""Bytes of JSON in one envelope: more than any reasoning seen, and too little to exhaust the memory."""


class Opened(Struct, frozen=True, gc=False, omit_defaults=True):
    """The contents of an envelope: items of one turn in order, their provider, the prefix before them, and the time.

    `places` has the position of each item in the visible part of its turn: characters other than white space, and
    calls. Clients join, split and trim texts, but these counts survive.
    """

    provenance: Provenance
    items: tuple[Item, ...]
    places: tuple[Place, ...] = ()
    prefix: Key = Key("")
    created_at: float = 0.0


_decoder = msgspec.json.Decoder(Opened)


def letters_of(text: str) -> int:
    """The number of characters other than white space."""
    return len("".join(text.split()))


class Sealer:
    """Seals and opens envelopes of one tenant. Without a key it does neither."""

    def __init__(self, key: bytes, tenant: str) -> None:
        self._key = hashlib.sha256(b"thoughtline envelope 1\0" + key).digest() if key else b""
        self._tenant = tenant

    @property
    def is_able(self) -> bool:
        return bool(self._key)

    def seal(self, held: Opened) -> str | None:
        """The token; None without a key, or if it would be larger than we would open."""
        text = msgspec.json.encode(held)
        if not self._key or len(text) > MAX_OPENED:
            return None
        packed = zlib.compress(text, 6)
        return base64.b64encode(_MARK_BYTES + self._tag(packed) + packed).decode()

    def open(self, token: str) -> Opened | None:
        """The contents; None if the envelope is not ours, not this tenant's, or was changed."""
        if not self._key or not is_envelope(token):
            return None
        try:
            text = token.translate(_STANDARD).rstrip("=")
            data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).removeprefix(_MARK_BYTES)
            tag, packed = data[:_TAG_BYTES], data[_TAG_BYTES:]
            if not hmac.compare_digest(tag, self._tag(packed)):
                return None
            held = _decoder.decode(_unpacked(packed))
        except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError):
            return None
        return held if held.provenance.tenant == self._tenant else None

    def _tag(self, packed: bytes) -> bytes:
        bound = len(self._tenant.encode()).to_bytes(4, "big") + self._tenant.encode()
        return hmac.new(self._key, bound + packed, hashlib.sha256).digest()[:_TAG_BYTES]


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, MAX_OPENED)
    if unpacker.unconsumed_tail:
        raise ValueError("an envelope that holds too much")
    return text


NO_SEALER = Sealer(b"", "")


class Held(NamedTuple):
    """An item for an envelope, and its position in the visible part of the turn."""

    place: Place
    item: Item


class Sealing(NamedTuple):
    """What an envelope contains besides the reasoning."""

    sealer: Sealer
    provenance: Provenance
    prefix: Key = Key("")
    created_at: float = 0.0

    def token(self, held: Sequence[Held]) -> str | None:
        if not held:
            return None
        places, items = zip(*held, strict=True)
        return self.sealer.seal(Opened(self.provenance, items, places, self.prefix, self.created_at))
