"""The stages of an answer: each is there only where it applies.

In one format, without tags, a copy of an answer is read while the answer is passed on.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct, field

from thoughtline.continuity.tagged_events import TaggedEvents, shown_items
from thoughtline.engine.capture import MAX_BYTES, StreamWatch, Watch, log_problem
from thoughtline.engine.request import Prepared
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import is_light
from thoughtline.gateway.http_client import UpstreamResponse
from thoughtline.gateway.outgoing import Outgoing
from thoughtline.gateway.pieces import MAX_WHOLE_BYTES, Decompress, EditStream, EditWhole, Piece, Stage, too_large
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.translation import Sealer, Sealing, StreamTranslator
from thoughtline.translation.compactions import CompactedEvents, compaction_of
from thoughtline.translation.replies import EditsEvents
from thoughtline.values.errors import DecodeError

LONG_BYTES = 64 * 2**10
"""A longer event is read in a thread: images, and answers that are repeated at their end."""


BRIEF_BYTES = 8 * 2**10
"""Maximum size of compressed data that is unpacked and read on the event loop."""


class Down(Struct, gc=False):
    """The stages of one answer, its watch, and what the pump has to know of them. Without any the answer goes on as it
    comes.

    `starts_at_once`: its head need not wait for its first bytes. `is_sized`: its length is known at its end.
    `is_resized`: it is a stream that gets longer or shorter on its way.
    """

    stages: tuple[Stage, ...] = ()
    reader: ReadStream | ReadWhole | None = None
    watch: Watch | None = None
    translation: Translate | None = None
    starts_at_once: bool = True
    is_sized: bool = False
    is_resized: bool = False
    unread: str = ""


def down(request: Outgoing, response: UpstreamResponse, envelope_key: bytes, *, is_stream: bool, now: float) -> Down:
    """decompress, read, translate, plain content, tags, rename: those that apply, in this order.

    What is packed in a way that we can't undo goes on unread.
    """
    is_rewritten, encoding, prepared = request.is_rewritten, response.encoding, request.prepared
    assert prepared is not None
    edit = None
    if request.tags != "off":  # in a stream words come first, their seal behind them
        edit = partial(shown_items, mode=request.tags, shows_seals=not is_stream and not request.ask.is_translated)
    watch = StreamWatch(prepared, edit) if is_stream else Watch(prepared, edit)
    before: tuple[Stage, ...] = ()
    if encoding:
        try:
            before = (Decompress(encoding),)
        except DecodeError as problem:
            if is_rewritten:
                raise
            return Down(watch=watch, unread=problem.problem)
    reader: ReadStream | ReadWhole
    if isinstance(watch, StreamWatch):
        most = BRIEF_BYTES if encoding else LONG_BYTES
        reader = ReadStream(watch, is_rewritten, brief_bytes=most, most=most)
    else:
        reader = ReadWhole(watch, is_rewritten, brief_bytes=BRIEF_BYTES if encoding else MAX_BYTES)
    translation = _translation(request, prepared, envelope_key, watch=watch, now=now) if is_rewritten else None
    streams_down = request.client.is_streaming if is_rewritten else is_stream
    # The client's bytes may be changed, unless they are compressed.
    is_edited = (
        request.ask.is_plain
        or request.tags != "off"
        or request.renamed_tools.client
        or request.kept_user_messages is not None
    )
    edits = _edits(request, prepared, is_stream=streams_down) if is_edited and (is_rewritten or not encoding) else ()
    if translation is None and not edits:
        return Down((*before, reader), reader, watch, starts_at_once=is_stream or not response.tells_length)
    return Down(
        (*before, reader, *((translation,) if translation is not None else ()), *edits),
        reader,
        watch,
        translation,
        starts_at_once=is_stream and streams_down,
        is_sized=not streams_down,
        is_resized=streams_down,
    )


def _translation(
    request: Outgoing, prepared: Prepared, envelope_key: bytes, *, watch: Watch, now: float
) -> Translate | None:
    if watch.provenance is None:
        return None
    sealer = Sealer(envelope_key, prepared.identity.tenant)
    context = way_back(prepared, request.client, sealer, watch.provenance, now)
    edits: EditsEvents | None = None
    if request.makes_compaction:
        edits = CompactedEvents(Sealing(sealer, watch.provenance, created_at=now))
    elif request.tags != "off":
        edits = TaggedEvents(request.tags, context.dialect.reasoning_format)
    client = request.client
    keeps_answer = "stored_responses" in FORMATS[client.format].quirks and context.source != context.to
    translator = StreamTranslator(context, edits, keeps_answer=keeps_answer) if client.is_streaming else None
    return Translate(context, client, edits, keeps_answer, translator)


def _edits(request: Outgoing, prepared: Prepared, *, is_stream: bool) -> tuple[Stage, ...]:
    """The edits of bytes that the client needs. An answer that we write has no tags any more."""
    stages: list[Stage] = []
    if request.ask.is_plain:
        stages.append(EditStream(PlainContent()) if is_stream else EditWhole(without_lists))
    if request.tags != "off" and not request.is_rewritten:
        make = tags_in_stream if is_stream else tags_in_body
        stages.append(make(request.ask.target.format, request.tags, prepared.contract.dialect))
    if request.renamed_tools.client:
        calls = RenamedCalls(request.renamed_tools)
        stages.append(EditStream(calls) if is_stream else EditWhole(calls.whole))
    if request.kept_user_messages is not None:
        stages.append(EditWhole(partial(compaction_of, request.kept_user_messages)))
    return tuple(stages)


# --- reading a copy of an answer: unpacked, decoded once, and given to a watch ----------------------------------------
# What the watch does with its copy is never a reason for the client not to get its bytes. Only where the answer is
# written anew (`is_needed`) nothing can go on that was not read.


class _Reader(Struct):
    """What reading a stream and reading a whole answer have in common. A piece that is longer than `brief_bytes` takes
    long to read."""

    watch: Watch | None
    is_needed: bool
    brief_bytes: int
    note: str = ""

    def _give_up(self, problem: Exception) -> None:
        """A decoder's fault, whatever it is, stays here; if it is none that was foreseen, it is logged."""
        if self.is_needed:
            raise problem
        self.watch = None
        if isinstance(problem, DecodeError):
            self.note = problem.problem
        else:
            self.note = f"not read: {type(problem).__name__}"
            log_problem("a response could not be read", problem)


class ReadStream(_Reader):
    """A stream, event by event. A piece that ends a turn waits until the turn is saved. `brief_bytes` are `most`, or
    less where an event has begun."""

    watch: StreamWatch | None
    most: int = LONG_BYTES

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
        self.brief_bytes = min(self.most, LONG_BYTES - stream.unended_bytes)  # it may end a long event

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
    """An answer that is one body: it goes on as it comes, except its last piece, which waits for the record."""

    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0
    _last: bytes = b""

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
        if self.is_needed:
            raise too_large()
        self.watch, self._pieces, self.note = None, [], "too large to remember"

    def end(self, piece: Piece) -> None:
        piece.ending, watch = self._last, self.watch
        if watch is None:
            return
        try:
            piece.reply = watch.read_whole(b"".join(self._pieces))
            if watch.problem is not None and self.is_needed:
                raise watch.problem
        except Exception as problem:
            self._give_up(problem)

    def cut(self, piece: Piece, problem: str) -> None:
        piece.data, self.watch = self._last, None
