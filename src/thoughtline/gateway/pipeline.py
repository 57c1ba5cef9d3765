"""The stages of an answer on its way down. A stage is made only where it applies.

In one format, without tags, an answer is only read beside being passed on.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from thoughtline.continuity.tagged_events import TaggedEvents, shown_items
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.edits import EditStream, EditWhole
from thoughtline.gateway.pieces import Stage
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.reading import Decompress, ReadStream, ReadWhole
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.prepared import Prepared
from thoughtline.translation import Sealing
from thoughtline.translation.compactions import CompactedEvents, compaction_of
from thoughtline.translation.replies import EditsEvents
from thoughtline.values.errors import DecodeError
from thoughtline.watching import StreamWatch, Watch


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
