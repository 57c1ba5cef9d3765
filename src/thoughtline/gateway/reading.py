"""Reading a copy of an answer: unpacked, decoded once, and given to a watch.

What the watch does with its copy is never a reason for the client not to get its bytes. Only where the answer is
written anew (`is_needed`) nothing can go on that was not read.
"""

from __future__ import annotations

from thoughtline.encodings import Decompressor
from thoughtline.formats.weighing import is_light
from thoughtline.gateway.pieces import Piece
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.watching import MAX_BYTES, StreamWatch, Watch, log_problem

MAX_WHOLE_BYTES = 32 * 2**20
"""As much of a whole response as is kept until it can be read; what is larger goes on unread."""

LONG_BYTES = 64 * 2**10
"""An event that is longer is read where it holds nobody up: images, and answers that are repeated at their end."""


BRIEF_BYTES = 8 * 2**10
"""What is compressed and no longer than this is unpacked and read at once."""


class Decompress:
    """An answer that came compressed goes on as it came, and is read unpacked."""

    def __init__(self, encoding: str) -> None:
        self._decompressor = Decompressor(encoding, MAX_BYTES)

    def feed(self, piece: Piece) -> None:
        """What can't be unpacked is the business of whoever reads it."""
        try:
            piece.plain = self._decompressor.feed(piece.data)
        except DecodeError as problem:
            piece.plain, piece.problem = b"", problem

    def end(self, piece: Piece) -> None:
        """Nothing is left."""

    def cut(self, piece: Piece, problem: str) -> None:
        """Nothing is left."""


class _Reader:
    """What reading a stream and reading a whole answer have in common. A piece that is longer than `brief_bytes` takes
    long to read."""

    _long_bytes = MAX_BYTES
    watch: Watch | None

    def __init__(self, watch: Watch, *, is_needed: bool, is_packed: bool) -> None:
        self.watch = watch
        self.note = ""
        self._is_needed = is_needed
        self._most = self.brief_bytes = min(BRIEF_BYTES if is_packed else MAX_BYTES, self._long_bytes)

    def _give_up(self, problem: Exception) -> None:
        """A decoder's fault, whatever it is, stays here; if it is none that was foreseen, it is logged."""
        if self._is_needed:
            raise problem
        self.watch = None
        if isinstance(problem, DecodeError):
            self.note = problem.problem
        else:
            self.note = f"not read: {type(problem).__name__}"
            log_problem("a response could not be read", problem)


class ReadStream(_Reader):
    """A stream, event by event. A piece that ends a turn waits until the turn is saved."""

    _long_bytes = LONG_BYTES
    watch: StreamWatch | None

    def is_long_at_end(self) -> bool:
        return False

    def feed(self, piece: Piece) -> None:
        stream = self.watch
        if stream is None:
            return
        try:
            if piece.problem is not None:
                raise piece.problem
            piece.events = stream.read(piece.plain)
        except Exception as problem:
            self._give_up(problem)
        if stream.has_news:
            piece.data, piece.ending, piece.ends_turn = b"", piece.data, True
        self.brief_bytes = min(self._most, LONG_BYTES - stream.unended_bytes)  # it may end a long event

    def end(self, piece: Piece) -> None:
        if self.watch is not None:
            try:
                piece.events = self.watch.end()
            except Exception as problem:
                self._give_up(problem)

    def cut(self, piece: Piece, problem: str) -> None:
        """What was said so far is a turn cut short."""
        try:
            self.end(piece)
        except DecodeError:
            piece.events = None


class ReadWhole(_Reader):
    """An answer that is one body: it goes on as it comes, but for its last piece, which waits for the record."""

    def __init__(self, watch: Watch, *, is_needed: bool, is_packed: bool) -> None:
        super().__init__(watch, is_needed=is_needed, is_packed=is_packed)
        self._pieces: list[bytes] = []
        self._size = 0
        self._last = b""

    def is_long_at_end(self) -> bool:
        self._pieces = [b"".join(self._pieces)]
        return not is_light(self._pieces[0])

    def feed(self, piece: Piece) -> None:
        piece.data, self._last = self._last, piece.data
        if self.watch is None:
            return
        self._pieces.append(piece.plain)
        self._size += len(piece.plain)
        if piece.problem is not None:
            self._give_up(piece.problem)
        elif self._size > MAX_WHOLE_BYTES:
            self._drop()

    def _drop(self) -> None:
        if self._is_needed:
            raise too_large()
        self.watch, self._pieces, self.note = None, [], "too large to remember"

    def end(self, piece: Piece) -> None:
        piece.ending, watch = self._last, self.watch
        if watch is None:
            return
        try:
            piece.reply = watch.read_whole(b"".join(self._pieces))
            if watch.problem is not None and self._is_needed:
                raise watch.problem
        except Exception as problem:
            self._give_up(problem)

    def cut(self, piece: Piece, problem: str) -> None:
        piece.data, self.watch = self._last, None


def too_large() -> Declined:
    return Declined(502, "answer_too_large", "The provider's answer is too large to be translated.")
