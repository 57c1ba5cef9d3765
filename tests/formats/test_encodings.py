"""Compressed bodies, whole and cut anywhere, and the bombs among them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.formats.encodings import Decompressor, unpacked
from thoughtline.values.errors import DecodeError, LimitExceeded

LIMIT = 1 << 20


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", _raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "two gzip members": ("gzip", lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])),
    "two layers": ("gzip, zstd", lambda data: zstandard.compress(gzip.compress(data))),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("name", PACKERS)
@given(data=st.binary(max_size=5000), cut=st.integers(1, 97))
def test_cut_anywhere_gives_the_same(name: str, data: bytes, cut: int) -> None:
    """The pieces of a packed body give what the whole gives."""
    encoding, pack = PACKERS[name]
    packed = pack(data)
    decompressor = Decompressor(encoding, LIMIT)
    pieces = [decompressor.feed(packed[start : start + cut]) for start in range(0, len(packed), cut)]
    assert b"".join(pieces) == data
    assert unpacked(packed, encoding, LIMIT) == data


@pytest.mark.parametrize("name", [name for name in PACKERS if name != "identity"])
def test_a_bomb_is_refused(name: str) -> None:
    """A small body that unpacks to more than the limit is refused by name."""
    encoding, pack = PACKERS[name]
    bomb = pack(b"\0" * (8 * LIMIT))
    assert len(bomb) < LIMIT
    with pytest.raises(LimitExceeded):
        unpacked(bomb, encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_what_is_not_packed_is_refused(encoding: str) -> None:
    """A body that is not what its header says is an error with a name."""
    with pytest.raises(DecodeError):
        unpacked(b'{"model": "plain"}' * 10, encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["compress", "gzip, gzip, gzip, gzip", "aes128gcm"])
def test_an_unknown_encoding_is_rejected(encoding: str) -> None:
    """Unknown encodings, and towers of known ones."""
    with pytest.raises(DecodeError):
        Decompressor(encoding, LIMIT)
