"""Records as compact bytes: encoded once, compressed above a small size, encrypted if there is a key.

    packed     1 byte how | body                                  not encrypted
               1 byte how | 4 bytes key name | 12 bytes nonce | sealed body

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
"""Bytes. What is shorter is not worth the time: eight of them fit a page of a database as they are."""

LEVEL = 3
"""zstandard's own default. Level 6 makes a 3 kB turn 2 % smaller and takes twice as long (bench/figures.md)."""

MAX_UNPACKED = 64 * 2**20
"""A record is a turn; what claims to be longer than any body we accept is damaged or hostile."""

_COMPRESSED, _ENCRYPTED = 1, 2
_NAME, _NONCE = 4, 12
_CHECK = b"thoughtline key check 1"


class _EncryptionKey:
    """AES-256-GCM under one key, and the name that packed bytes know it by."""

    def __init__(self, key: bytes) -> None:
        self.name = hashlib.blake2b(key, digest_size=_NAME, person=b"tl key name").digest()
        try:
            module = import_module("cryptography.hazmat.primitives.ciphers.aead")
        except ImportError:
            raise StoreRefused("encryption needs `pip install thoughtline[encryption]`") from None
        self.cipher: AESGCM = module.AESGCM(key)


class Packer:
    """Packs with the first key, unpacks with either; without a key packs in the clear.

    One thread at a time: zstandard's compressors are kept, and not safe in several.
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
        """One for another thread: the same keys, compressors of its own."""
        other = copy(self)
        other._compressor = zstandard.ZstdCompressor(LEVEL, write_checksum=True)
        other._decompressor = zstandard.ZstdDecompressor()
        return other

    def pack(self, record: Record, identity: bytes) -> bytes:
        return self.seal(encode_record(record), identity)

    def unpack(self, data: bytes, identity: bytes) -> Record:
        """Raises `WrongKey` for a key that we don't have, `DecodeError` for bytes that were damaged."""
        return decode_record(self.unseal(data, identity))

    def is_current(self, data: bytes) -> bool:
        """Whether packing anew would use the same key."""
        name = data[1 : 1 + _NAME] if data and data[0] & _ENCRYPTED else None
        return name == (self._current.name if self._current else None)

    def repack(self, data: bytes, identity: bytes) -> bytes | None:
        """The same record under the current key; none if it is that already, or can't be read."""
        if self.is_current(data):
            return None
        try:
            return self.seal(self.unseal(data, identity), identity)
        except (WrongKey, DecodeError):
            return None

    def key_check(self) -> bytes:
        """What a store keeps to know its key by."""
        return self.seal(_CHECK, b"")

    def check(self, kept: bytes) -> bool:
        """Whether what a store keeps is of the current key. Raises `WrongKey` where it is of none of ours."""
        if self.unseal(kept, b"") != _CHECK:
            raise WrongKey("the store's key check was not made by thoughtline")
        return self.is_current(kept)

    def seal(self, body: bytes, identity: bytes) -> bytes:
        """Bytes that are no record, under an identity of their own."""
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
        except Exception as error:  # cryptography's InvalidTag, or a ValueError for a body cut short
            raise DecodeError(f"a stored record was changed or damaged: {type(error).__name__}") from None


def decode_key(text: str) -> bytes:
    """32 bytes from base64 or hexadecimal."""
    try:
        key = bytes.fromhex(text) if len(text) == 64 else b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != 32:
        raise StoreRefused(
            "an encryption key is 32 bytes in base64 or hexadecimal: `openssl rand -base64 32` makes one"
        )
    return key
