"""Pieces of an answer on its way to the client, the stages they pass through, and the stages that only see bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from thoughtline.engine.capture import MAX_BYTES
from thoughtline.formats.encodings import Decompressor
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.events import Event
from thoughtline.values.turns import Reply

MAX_WHOLE_BYTES = 32 * 2**20
"""Maximum size of a whole response that is kept until it can be read; a larger one is passed on unread."""


class Piece(Struct, gc=False):
    """Some bytes of an answer.

    `data` is sent to the client at once. `ending`, which shows the client that its turn is over, is sent when that turn
    is saved: `ends_turn` says that one may have to be; the watch knows. `plain` is what the provider sent, without
    compression; `problem` is why it can't be decompressed. `events`, or in a whole answer its `reply`, are the decoded
    content; None if it could not be read.
    """

    data: bytes
    ending: bytes = b""
    plain: bytes = b""
    problem: DecodeError | None = None
    events: list[Event] | None = None
    reply: Reply | None = None
    ends_turn: bool = False


class Stage(Protocol):
    """Changes pieces as they pass."""

    def feed(self, piece: Piece) -> None:
        """Process more of the answer."""

    def end(self, piece: Piece) -> None:
        """End a complete answer: `piece` is what the earlier stages had left."""

    def cut(self, piece: Piece, problem: str) -> None:
        """End an answer that broke off."""


def too_large() -> Declined:
    return Declined(502, "answer_too_large", "The provider's answer is too large to be translated.")


class Decompress:
    """Decompresses an answer for reading; the client gets the compressed bytes."""

    def __init__(self, encoding: str) -> None:
        self._decompressor = Decompressor(encoding, MAX_BYTES)
        self._problem: DecodeError | None = None

    def feed(self, piece: Piece) -> None:
        """Decompress a piece. A failure is left to the reader, and nothing after it is decompressed."""
        if self._problem is None:
            try:
                piece.plain = self._decompressor.feed(piece.data)
            except DecodeError as problem:
                self._problem = problem
        if self._problem is not None:
            piece.plain, piece.problem = b"", self._problem

    def end(self, piece: Piece) -> None:
        """Nothing is left."""

    def cut(self, piece: Piece, problem: str) -> None:
        """Nothing is left."""


# --- editing bytes for a client of the same format: as a stream, or as a whole ----------------------------------------


class EditsBytes(Protocol):
    """Edits the bytes of a stream, cut anywhere."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class EditStream:
    """Edits a stream as it comes."""

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
    """Edits a body once it is complete. One that is too large for that is passed on unchanged."""

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
