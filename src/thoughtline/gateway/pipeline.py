"""What a request goes through on its way up, and its answer on its way down: two lists of stages.

A stage is made only where it applies. In one format, without routes and tags, a request is only restored, and its
answer only read beside being passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct

from thoughtline.gateway import preparing
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.edits import EditStream, EditWhole
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.pieces import Stage
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.reading import Decompress, ReadStream, ReadWhole
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.values.errors import DecodeError
from thoughtline.watching import StreamWatch, Watch

UP_ONCE: tuple[Callable[[Incoming], Awaitable[None] | None], ...] = (
    preparing.admit,
    preparing.limit,
    Incoming.read,
    preparing.route,
)
UP: tuple[Callable[[Attempt], Awaitable[None] | None], ...] = (
    preparing.held_state,
    preparing.continuity,
    preparing.stored_responses,
    preparing.translate,
    preparing.restore,
    preparing.tags,
)


async def take_in(incoming: Incoming) -> None:
    """Who asks for what, and who can be asked for it. Raises where that is nobody."""
    for stage in UP_ONCE:
        if (waits := stage(incoming)) is not None:
            await waits


async def prepare(attempt: Attempt) -> None:
    """What to send to a target. Raises where the request can't be carried into the provider's format."""
    for stage in UP:
        if (waits := stage(attempt)) is not None:
            await waits


class Received(NamedTuple):
    """An answer that is read: who asked for it, whether it streams, how it is packed, and who remembers it."""

    attempt: Attempt
    response: UpstreamResponse
    watch: Watch
    is_stream: bool
    encoding: str
    now: float

    @property
    def streams_down(self) -> bool:
        """Whether the client gets a stream."""
        return self.attempt.client.is_streaming if self.attempt.is_rewritten else self.is_stream

    @property
    def is_editable(self) -> bool:
        """Whether the client's bytes may be changed: they can't be if they are compressed."""
        return self.attempt.is_rewritten or not self.encoding


def decompress(answer: Received) -> Stage | None:
    return Decompress(answer.encoding) if answer.encoding else None


def read(answer: Received) -> Stage:
    is_needed, is_packed = answer.attempt.is_rewritten, bool(answer.encoding)
    if isinstance(answer.watch, StreamWatch):
        return ReadStream(answer.watch, is_needed=is_needed, is_packed=is_packed)
    return ReadWhole(answer.watch, is_needed=is_needed, is_packed=is_packed)


def translate(answer: Received) -> Stage | None:
    attempt, made = answer.attempt, answer.watch.provenance
    if not attempt.is_rewritten or attempt.prepared is None or made is None:
        return None
    way = way_back(attempt.prepared, attempt.client, attempt.sealer, made, answer.now)
    return Translate(way, attempt.client, attempt.tags)


def plain_content(answer: Received) -> Stage | None:
    if not answer.attempt.is_plain or not answer.is_editable:
        return None
    return EditStream(PlainContent()) if answer.streams_down else EditWhole(without_lists)


def tags(answer: Received) -> Stage | None:
    """In an answer that is written anew they are gone already."""
    attempt = answer.attempt
    if attempt.tags == "off" or attempt.is_rewritten or answer.encoding or attempt.prepared is None:
        return None
    make = tags_in_stream if answer.is_stream else tags_in_body
    return make(attempt.target.format, attempt.tags, attempt.prepared.contract.dialect)


def rename(answer: Received) -> Stage | None:
    if not answer.attempt.names.client or not answer.is_editable:
        return None
    calls = RenamedCalls(answer.attempt.names)
    return EditStream(calls) if answer.streams_down else EditWhole(calls.whole)


DOWN: tuple[Callable[[Received], Stage | None], ...] = (decompress, read, translate, plain_content, tags, rename)


class Down(Struct, gc=False):
    """The stages of one answer, and what the pump has to know of them. Without any the answer goes on as it comes.

    `starts_at_once`: its head need not wait for its first bytes. `is_sized`: its length is known at its end.
    """

    stages: tuple[Stage, ...] = ()
    reader: ReadStream | ReadWhole | None = None
    translation: Translate | None = None
    starts_at_once: bool = True
    is_sized: bool = False
    unread: str = ""


def down(answer: Received) -> Down:
    """The stages that apply. What is packed in a way that we can't undo goes on unread."""
    try:
        stages = tuple([stage for make in DOWN if (stage := make(answer)) is not None])
    except DecodeError as problem:
        if answer.attempt.is_rewritten:
            raise
        return Down(unread=problem.problem)
    reader = next(stage for stage in stages if isinstance(stage, (ReadStream, ReadWhole)))
    if stages[-1] is reader:
        starts_at_once = answer.is_stream or not answer.response.tells_length
        return Down(stages, reader, None, starts_at_once)
    streams_down = answer.streams_down
    return Down(
        stages,
        reader,
        next((stage for stage in stages if isinstance(stage, Translate)), None),
        starts_at_once=answer.is_stream and streams_down,
        is_sized=not streams_down,
    )
