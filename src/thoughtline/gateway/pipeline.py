"""What a request goes through on its way up, and its answer on its way down: two lists of stages.

A stage is made only where it applies. In one format, without tags, a request is only restored, and its answer only read
beside being passed on. Before a target is chosen, `Exchange` admits the request, counts it, reads it and chooses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from thoughtline.gateway import preparing
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.edits import EditStream, EditWhole
from thoughtline.gateway.pieces import Stage
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.reading import LONG_BYTES, Decompress, ReadStream, ReadWhole
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.gateway.upstream import UpstreamResponse
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import DecodeError
from thoughtline.watching import StreamWatch, Watch

_BRIEF_BYTES = 8 * 2**10
"""What is compressed and no longer than this is unpacked and read at once."""

UP: tuple[Callable[[Attempt], Awaitable[None] | None], ...] = (
    preparing.held_state,
    preparing.continuity,
    preparing.stored_responses,
    preparing.translate,
    preparing.restore,
    preparing.tags,
)


async def prepare(attempt: Attempt) -> None:
    """What to send. Raises where the request can't be carried into the provider's format."""
    for stage in UP:
        if (waits := stage(attempt)) is not None:
            await waits


class Answer(NamedTuple):
    """An answer that is read: whose it is, whether it streams, and who remembers it."""

    attempt: Attempt
    response: UpstreamResponse
    watch: Watch
    is_stream: bool
    now: float

    @property
    def encoding(self) -> str:
        found = self.response.header("content-encoding").lower()
        return "" if found == "identity" else found

    @property
    def streams_down(self) -> bool:
        """Whether the client gets a stream."""
        return self.attempt.client.is_streaming if self.attempt.is_rewritten else self.is_stream

    @property
    def is_editable(self) -> bool:
        """Whether the client's bytes may be changed: they can't be if they are compressed."""
        return self.attempt.is_rewritten or not self.encoding


def decompress(answer: Answer) -> Stage | None:
    return Decompress(answer.encoding) if answer.encoding else None


def read(answer: Answer) -> Stage:
    is_needed = answer.attempt.is_rewritten
    if isinstance(answer.watch, StreamWatch):
        return ReadStream(answer.watch, is_needed=is_needed)
    return ReadWhole(answer.watch, is_needed=is_needed)


def translate(answer: Answer) -> Stage | None:
    attempt, made = answer.attempt, answer.watch.provenance
    if not attempt.is_rewritten or attempt.prepared is None or made is None:
        return None
    way = way_back(attempt.prepared, attempt.client, attempt.sealer, made, answer.now)
    return Translate(way, attempt.client, attempt.tags)


def plain_content(answer: Answer) -> Stage | None:
    if not answer.attempt.is_plain or not answer.is_editable:
        return None
    return EditStream(PlainContent()) if answer.streams_down else EditWhole(without_lists)


def tags(answer: Answer) -> Stage | None:
    """In an answer that is written anew they are gone already."""
    attempt = answer.attempt
    if attempt.tags == "off" or attempt.is_rewritten or answer.encoding or attempt.prepared is None:
        return None
    make = tags_in_stream if answer.is_stream else tags_in_body
    return make(attempt.target.format, attempt.tags, attempt.prepared.contract.dialect)


def rename(answer: Answer) -> Stage | None:
    if not answer.attempt.names.client or not answer.is_editable:
        return None
    calls = RenamedCalls(answer.attempt.names)
    return EditStream(calls) if answer.streams_down else EditWhole(calls.whole)


DOWN: tuple[Callable[[Answer], Stage | None], ...] = (decompress, read, translate, plain_content, tags, rename)


class Down:
    """The stages of one answer, and what the pump has to know of them. Without any the answer goes on as it comes."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.stages: tuple[Stage, ...] = ()
        self.starts_at_once = True
        self.is_rewritten = self.is_sized = self._is_packed = False
        self._reader: ReadStream | ReadWhole | None = None
        self._translation: Translate | None = None
        self._unread = ""
        if answer is not None:
            try:
                self._make(answer)
            except DecodeError as problem:
                if answer.attempt.is_rewritten:
                    raise
                self._unread = problem.problem  # packed in a way that we can't undo: it goes on unread

    def _make(self, answer: Answer) -> None:
        stages = tuple([stage for make in DOWN if (stage := make(answer)) is not None])
        self._is_packed = isinstance(stages[0], Decompress)
        for stage in stages:
            if isinstance(stage, (ReadStream, ReadWhole)):
                self._reader = stage
            elif isinstance(stage, Translate):
                self._translation = stage
        self.stages = stages
        self.is_rewritten = self._translation is not None
        is_changed = stages[-1] is not self._reader
        self.is_sized = is_changed and not answer.streams_down
        if is_changed:
            self.starts_at_once = answer.is_stream and answer.streams_down
        else:
            self.starts_at_once = answer.is_stream or not answer.response.tells_length

    @property
    def is_watched(self) -> bool:
        return self._reader is not None and self._reader.watch is not None

    @property
    def has_news(self) -> bool:
        """Whether there is something to save."""
        watch = self._reader.watch if self._reader is not None else None
        return (watch is not None and watch.has_news) or (
            self._translation is not None and bool(self._translation.answer)
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._translation.findings if self._translation is not None else ()

    @property
    def note(self) -> str:
        return self._reader.note if self._reader is not None else self._unread

    def take_answer(self) -> bytes:
        """What a client of Responses may name in its next request."""
        return self._translation.take_answer() if self._translation is not None else b""

    def is_long(self, size: int) -> bool:
        """Whether a piece of this size takes long to read."""
        if self._reader is None:
            return False
        return self._reader.is_long(size) or (self._is_packed and size > _BRIEF_BYTES)

    def is_long_at_end(self, size: int) -> bool:
        """Whether the end of an answer of this size takes long."""
        if size <= _BRIEF_BYTES or self._reader is None:
            return False
        return self._reader.is_long_at_end() or (self.is_sized and size > LONG_BYTES)
