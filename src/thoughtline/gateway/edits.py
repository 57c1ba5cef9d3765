"""Answers whose bytes are changed on their way to a client of the same format: as they come, or whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from thoughtline.gateway.pieces import MAX_WHOLE_BYTES, Piece


class EditsBytes(Protocol):
    """Bytes of a stream in, cut anywhere; bytes out."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class EditStream:
    """Changes a stream as it comes."""

    def __init__(self, edit: EditsBytes) -> None:
        self._edit = edit

    def feed(self, piece: Piece) -> None:
        if piece.data:
            piece.data = self._edit.feed(piece.data)
        if piece.ending:
            piece.ending = self._edit.feed(piece.ending)

    def end(self, piece: Piece) -> None:
        self.feed(piece)
        piece.ending += self._edit.finish()

    def cut(self, piece: Piece, problem: str) -> None:
        self.feed(piece)


class EditWhole:
    """Changes a whole body, when all of it is there. One that is too large for that goes on as it comes."""

    def __init__(self, edit: Callable[[bytes], bytes]) -> None:
        self._edit = edit
        self._pieces: list[bytes] = []
        self._size = 0
        self._gave_up = False

    def feed(self, piece: Piece) -> None:
        if self._gave_up:
            return
        self._pieces.append(piece.data)
        self._size += len(piece.data)
        self._gave_up = self._size > MAX_WHOLE_BYTES
        piece.data = self._taken() if self._gave_up else b""

    def end(self, piece: Piece) -> None:
        if not self._gave_up:
            piece.ending = self._edited(piece, self._taken() + piece.data + piece.ending)
            piece.data = b""

    def cut(self, piece: Piece, problem: str) -> None:
        piece.data = self._taken() + piece.data

    def _edited(self, piece: Piece, body: bytes) -> bytes:
        return self._edit(body)

    def _taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
