"""The stages of an answer on its way down. A stage is made only where it applies.

In one format, without tags, an answer is only read beside being passed on.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from thoughtline.continuity.tagged_events import TaggedEvents, shown_items
from thoughtline.encodings import Decompressor
from thoughtline.formats.weighing import is_light
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.edits import EditStream, EditWhole
from thoughtline.gateway.pieces import MAX_WHOLE_BYTES, Piece, Stage, too_large
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.prepared import Prepared
from thoughtline.translation import Sealing
from thoughtline.translation.compactions import CompactedEvents, compaction_of
from thoughtline.translation.replies import EditsEvents
from thoughtline.values.errors import DecodeError
from thoughtline.watching import MAX_BYTES, StreamWatch, Watch, log_problem

LONG_BYTES = 64 * 2**10
"""An event that is longer is read where it holds nobody up: images, and answers that are repeated at their end."""


BRIEF_BYTES = 8 * 2**10
"""What is compressed and no longer than this is unpacked and read at once."""


class Down(Struct, gc=False):
    """The stages of one answer, its watch, and what the pump has to know of them. Without any the answer goes on as it
    comes.

    `starts_at_once`: its head need not wait for its first bytes. `is_sized`: its length is known at its end.
    """

    stages: tuple[Stage, ...] = ()
    reader: ReadStream | ReadWhole | None = None
    watch: Watch | None = None
    translation: Translate | None = None
    starts_at_once: bool = True
    is_sized: bool = False
    unread: str = ""


def down(attempt: Attempt, response: UpstreamResponse, prepared: Prepared, *, is_stream: bool, now: float) -> Down:
    """decompress, read, translate, plain content, tags, rename: those that apply, in this order.

    What is packed in a way that we can't undo goes on unread.
    """
    is_rewritten, encoding = attempt.is_rewritten, response.encoding
    edit = None
    if attempt.tags != "off":  # in a stream words come first, their seal behind them
        edit = partial(shown_items, mode=attempt.tags, shows_seals=not is_stream and not attempt.is_translated)
    watch = StreamWatch(prepared, edit) if is_stream else Watch(prepared, edit)
    before: tuple[Stage, ...] = ()
    if encoding:
        try:
            before = (Decompress(encoding),)
        except DecodeError as problem:
            if is_rewritten:
                raise
            return Down(watch=watch, unread=problem.problem)
    make = ReadStream if is_stream else ReadWhole
    reader: ReadStream | ReadWhole = make(watch, is_needed=is_rewritten, is_packed=bool(encoding))
    translation = _translation(attempt, watch, now) if is_rewritten else None
    streams_down = attempt.client.is_streaming if is_rewritten else is_stream
    # The client's bytes may be changed, unless they are compressed.
    is_edited = attempt.is_plain or attempt.tags != "off" or attempt.names.client or attempt.retained is not None
    edits = _edits(attempt, is_stream=streams_down) if is_edited and (is_rewritten or not encoding) else ()
    if translation is None and not edits:
        return Down((*before, reader), reader, watch, starts_at_once=is_stream or not response.tells_length)
    return Down(
        (*before, reader, *((translation,) if translation is not None else ()), *edits),
        reader,
        watch,
        translation,
        starts_at_once=is_stream and streams_down,
        is_sized=not streams_down,
    )


def _translation(attempt: Attempt, watch: Watch, now: float) -> Translate | None:
    if attempt.prepared is None or watch.provenance is None:
        return None
    way = way_back(attempt.prepared, attempt.client, attempt.sealer, watch.provenance, now)
    edits: EditsEvents | None = None
    if attempt.compacts:
        edits = CompactedEvents(Sealing(attempt.sealer, watch.provenance, created_at=now))
    elif attempt.tags != "off":
        edits = TaggedEvents(attempt.tags, way.dialect.reasoning_format)
    return Translate(way, attempt.client, edits)


def _edits(attempt: Attempt, *, is_stream: bool) -> tuple[Stage, ...]:
    """In an answer that is written anew tags are gone already."""
    stages: list[Stage] = []
    if attempt.is_plain:
        stages.append(EditStream(PlainContent()) if is_stream else EditWhole(without_lists))
    if attempt.tags != "off" and not attempt.is_rewritten and attempt.prepared is not None:
        make = tags_in_stream if is_stream else tags_in_body
        stages.append(make(attempt.target.format, attempt.tags, attempt.prepared.contract.dialect))
    if attempt.names.client:
        calls = RenamedCalls(attempt.names)
        stages.append(EditStream(calls) if is_stream else EditWhole(calls.whole))
    if attempt.retained is not None:
        stages.append(EditWhole(partial(compaction_of, attempt.retained)))
    return tuple(stages)


# --- reading a copy of an answer: unpacked, decoded once, and given to a watch ----------------------------------------
# What the watch does with its copy is never a reason for the client not to get its bytes. Only where the answer is
# written anew (`is_needed`) nothing can go on that was not read.


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
