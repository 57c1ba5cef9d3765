"""Our own envelope for a client's opaque slot: what an upstream thought, sealed so that only we open it.

Where a client's format has a slot for a token (`signature`, `encrypted_content`, `thoughtSignature`), it gets one of
these. It holds the reasoning as the upstream gave it, seals and all, with its provenance; a client that keeps it can be
served by a replica whose store is empty. It is authenticated (HMAC-SHA256) under a key of ours and bound to the tenant:
one that was changed, made elsewhere or belongs to somebody else does not open. It is never sent to an upstream.

    base64( 3 bytes of mark, "TLT1" in base64 | 16 bytes of HMAC | zlib(JSON) )

It is plain base64, for SDKs turn some slots into bytes and back, in either alphabet. Version 1 is not encrypted: it
holds nothing that its own client has not been shown or could not have got from the provider itself.
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
"""Bytes of JSON in one envelope: beyond any reasoning seen, and too little to fill the memory with."""


class Opened(Struct, frozen=True, gc=False, omit_defaults=True):
    """What an envelope holds: items of one turn in their order, who made them, behind which prefix, and when.

    `places` says of each item what was visible before it in its turn: characters that are no white space, and calls.
    Clients join and split and trim words; that much of them stays.
    """

    provenance: Provenance
    items: tuple[Item, ...]
    places: tuple[Place, ...] = ()
    prefix: Key = Key("")
    created_at: float = 0.0


_decoder = msgspec.json.Decoder(Opened)


def letters_of(text: str) -> int:
    """How many characters a text has that are no white space."""
    return len("".join(text.split()))


class Sealer:
    """Seals and opens for one tenant. Without a key it does neither."""

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
        """What it holds; None if it is not ours, not this tenant's, or not as we made it."""
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
    """An item for an envelope, and what was visible before it."""

    place: Place
    item: Item


class Sealing(NamedTuple):
    """What goes into an envelope beside the reasoning."""

    sealer: Sealer
    provenance: Provenance
    prefix: Key = Key("")
    created_at: float = 0.0

    def token(self, held: Sequence[Held]) -> str | None:
        if not held:
            return None
        places, items = zip(*held, strict=True)
        return self.sealer.seal(Opened(self.provenance, items, places, self.prefix, self.created_at))
