"""Records as compact bytes: encoded once, compressed above a small size, encrypted if there is a key.

    packed     1 byte flags | body                                  not encrypted
               1 byte flags | 4 bytes key name | 12 bytes nonce | sealed body

The identity of the record is authenticated with an encrypted body, so that bodies can't be exchanged between rows.
"""

from __future__ import annotations

import binascii
import hashlib
import os
from base64 import b64decode
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING

import zstandard

from thoughtline.values.errors import DecodeError, StoreRefused, WrongKey
from thoughtline.values.records import Record, decode_record, encode_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

COMPRESS_ABOVE = 512
"""Bytes. Shorter bodies are not worth the time: eight of them fit a database page uncompressed."""

LEVEL = 3
"""zstandard's default. Level 6 makes a 3 kB turn 2 % smaller and takes twice as long (bench/figures.md)."""

MAX_UNPACKED = 64 * 2**20
"""A record is one turn. If it claims to be longer than any body we accept, it is damaged or hostile."""

_COMPRESSED, _ENCRYPTED = 1, 2
_NAME, _NONCE = 4, 12
_CHECK = b"thoughtline key check 1"


class _EncryptionKey:
    """AES-256-GCM with one key, and the key's name in packed bytes."""

    def __init__(self, key: bytes) -> None:
        self.name = hashlib.blake2b(key, digest_size=_NAME, person=b"tl key name").digest()
        try:
            module = import_module("cryptography.hazmat.primitives.ciphers.aead")
        except ImportError:
            raise StoreRefused("encryption needs `pip install thoughtline[encryption]`") from None
        self.cipher: AESGCM = module.AESGCM(key)


class Packer:
    """Packs with the current key and unpacks with either; without a key, packs unencrypted.

    Not thread-safe: it reuses zstandard's compressors.
    """

    def __init__(self, key: str | None = None, previous_key: str | None = None) -> None:
        if previous_key and not key:
            raise StoreRefused("a previous encryption key is set, but no current one")
        keys = [_EncryptionKey(decode_key(text)) for text in (key, previous_key) if text]
        self._current = keys[0] if keys else None
        self._by_name = {key.name: key for key in keys}
        self._compressor = zstandard.ZstdCompressor(LEVEL, write_checksum=True)
        self._decompressor = zstandard.ZstdDecompressor()

    def aside(self) -> Packer:
        """Return a packer for another thread: the same keys, its own compressors."""
        other = copy(self)
        other._compressor = zstandard.ZstdCompressor(LEVEL, write_checksum=True)
        other._decompressor = zstandard.ZstdDecompressor()
        return other

    def pack(self, record: Record, identity: bytes) -> bytes:
        return self.seal(encode_record(record), identity)

    def unpack(self, data: bytes, identity: bytes) -> Record:
        """Unpack a record. Raises `WrongKey` for an unknown key, `DecodeError` for damaged bytes."""
        return decode_record(self.unseal(data, identity))

    def is_current(self, data: bytes) -> bool:
        """Whether these bytes are packed with the current key."""
        name = data[1 : 1 + _NAME] if data and data[0] & _ENCRYPTED else None
        return name == (self._current.name if self._current else None)

    def repack(self, data: bytes, identity: bytes) -> bytes | None:
        """Repack a record with the current key; None if it already has that key, or can't be read."""
        if self.is_current(data):
            return None
        try:
            return self.seal(self.unseal(data, identity), identity)
        except (WrongKey, DecodeError):
            return None

    def key_check(self) -> bytes:
        """Return bytes by which a store recognises its key."""
        return self.seal(_CHECK, b"")

    def check(self, kept: bytes) -> bool:
        """Whether a store's key check is of the current key. Raises `WrongKey` if it fits none of our keys."""
        if self.unseal(kept, b"") != _CHECK:
            raise WrongKey("the store's key check was not made by thoughtline")
        return self.is_current(kept)

    def seal(self, body: bytes, identity: bytes) -> bytes:
        """Pack bytes that are not a record, with an identity of their own."""
        how = 0
        if len(body) > COMPRESS_ABOVE:
            body, how = self._compressor.compress(body), _COMPRESSED
        if self._current is None:
            return bytes((how,)) + body
        nonce = os.urandom(_NONCE)
        head = bytes((how | _ENCRYPTED,)) + self._current.name
        return head + nonce + self._current.cipher.encrypt(nonce, body, head + identity)

    def unseal(self, data: bytes, identity: bytes) -> bytes:
        if not data or data[0] & ~(_COMPRESSED | _ENCRYPTED):
            raise DecodeError("a stored record is packed in an unknown way")
        body = self._decrypt(data, identity) if data[0] & _ENCRYPTED else data[1:]
        return self._decompress(body) if data[0] & _COMPRESSED else body

    def _decompress(self, body: bytes) -> bytes:
        try:
            size = zstandard.frame_content_size(body)
            if not 0 <= size <= MAX_UNPACKED:
                raise DecodeError(f"a stored record claims to be {size} bytes long; at most {MAX_UNPACKED} are read")
            return self._decompressor.decompress(body, allow_extra_data=False)
        except zstandard.ZstdError:
            raise DecodeError("a stored record can't be decompressed") from None

    def _decrypt(self, data: bytes, identity: bytes) -> bytes:
        head, nonce, body = data[: 1 + _NAME], data[1 + _NAME : 1 + _NAME + _NONCE], data[1 + _NAME + _NONCE :]
        key = self._by_name.get(head[1:])
        if key is None:
            held = ", ".join(name.hex() for name in self._by_name) or "none"
            raise WrongKey(f"encrypted with key {head[1:].hex()}; the keys we have: {held}")
        try:
            return key.cipher.decrypt(nonce, body, head + identity)
        except Exception as error:  # cryptography's InvalidTag, or a ValueError for a truncated body
            raise DecodeError(f"a stored record was changed or damaged: {type(error).__name__}") from None


def decode_key(text: str) -> bytes:
    """Decode 32 bytes from base64 or hexadecimal."""
    try:
        key = bytes.fromhex(text) if len(text) == 64 else b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != 32:
        raise StoreRefused(
            "an encryption key is 32 bytes in base64 or hexadecimal: `openssl rand -base64 32` makes one"
        )
    return key
