"""Compressed bodies: gzip, deflate, br and zstd, whole or in pieces, with a limit against decompression bombs."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable

import brotli
import zstandard

from thoughtline.values.errors import DecodeError, LimitExceeded

ACCEPTED = frozenset({"gzip", "deflate", "br", "zstd", "identity"})
MAX_RATIO = 100
"""The maximum expansion of a body. JSON and text shrink four to twenty times, logs up to fifty."""
ALWAYS_UNPACKED_BYTES = 2**20
_PIECE = 64 * 2**10
_MAX_MEMBERS = 4096
"""Of one gzip body: with a few bytes each, decompressing them takes long and yields nothing."""


class _Layer(ABC):
    """Decompresses bytes split anywhere, `limit` at most."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    @abstractmethod
    def feed(self, data: bytes) -> bytes: ...

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise LimitExceeded("a compressed body that is too large when unpacked")
        return piece


class _Zlib(_Layer):
    """gzip (also of several members) and deflate, with or without its zlib header."""

    def __init__(self, window: int, limit: int) -> None:
        super().__init__(limit)
        self._window = window
        self._zlib = zlib.decompressobj(window)
        self._members = 1
        self._head: bytes | None = b"" if window == zlib.MAX_WBITS else None

    def feed(self, data: bytes) -> bytes:
        if self._head is not None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            self._head = None
            if not _has_zlib_header(data):
                self._window = -zlib.MAX_WBITS  # raw deflate, as some servers send it
                self._zlib = zlib.decompressobj(self._window)
        out: list[bytes] = []
        for start in range(0, len(data), _PIECE):  # the data after a member is copied, so not all of it at once
            self._unpack(data[start : start + _PIECE], out)
        return b"".join(out)

    def _unpack(self, data: bytes, out: list[bytes]) -> None:
        while data:
            if self._zlib.eof:
                self._begin_member()
            out.append(self._counted(self._zlib.decompress(data, self._left + 1)))
            data = self._zlib.unconsumed_tail or self._zlib.unused_data

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise LimitExceeded("a compressed body of too many members")
        self._zlib = zlib.decompressobj(self._window)


def _has_zlib_header(data: bytes) -> bool:
    """RFC 1950, 2.2: the method is deflate, and the first two bytes are a multiple of 31."""
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


class _Brotli(_Layer):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._brotli = brotli.Decompressor()

    def feed(self, data: bytes) -> bytes:
        out = []
        while True:
            piece = self._counted(self._brotli.process(data, output_buffer_limit=_PIECE))
            out.append(piece)
            data = b""
            if self._brotli.is_finished() or (self._brotli.can_accept_more_data() and not piece):
                return b"".join(out)


class _Zstandard(_Layer):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._zstd = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj(write_size=_PIECE)

    def feed(self, data: bytes) -> bytes:
        starts = range(0, len(data), 1024)  # to detect a bomb before all of it is decompressed
        return b"".join(self._counted(self._zstd.decompress(data[start : start + 1024])) for start in starts)


_MAKERS: dict[str, Callable[[int], _Layer]] = {
    "gzip": lambda limit: _Zlib(16 + zlib.MAX_WBITS, limit),
    "x-gzip": lambda limit: _Zlib(16 + zlib.MAX_WBITS, limit),
    "deflate": lambda limit: _Zlib(zlib.MAX_WBITS, limit),
    "br": _Brotli,
    "zstd": _Zstandard,
}


class Decompressor:
    """The decoder of a `content-encoding`, which may name several: the last one is the outermost."""

    def __init__(self, encoding: str, limit: int) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        names = [name for name in names if name and name != "identity"]
        unknown = [name for name in names if name not in _MAKERS]
        if unknown or len(names) > 3:
            raise DecodeError(f"content-encoding {encoding[:60]!r} is not one of gzip, deflate, br, zstd")
        self._layers = [_MAKERS[name](limit) for name in reversed(names)]

    def feed(self, data: bytes) -> bytes:
        try:
            for layer in self._layers:
                data = layer.feed(data)
        except (zlib.error, brotli.error, zstandard.ZstdError):
            raise DecodeError("a compressed body that can't be unpacked") from None
        return data


def is_soon_unpacked(body: bytes) -> bool:
    """Whether any body like this is decompressed within a few milliseconds."""
    return MAX_RATIO * len(body) <= ALWAYS_UNPACKED_BYTES


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """A whole body without its `content-encoding`. A few bytes can't expand to very many."""
    return Decompressor(encoding, min(limit, max(ALWAYS_UNPACKED_BYTES, MAX_RATIO * len(body)))).feed(body)
