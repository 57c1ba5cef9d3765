"""Thinking tags in an answer: removed from its bytes, or moved into its reasoning.

Answers that stay in their format are edited in place if possible. If reasoning is a separate item there, or frames are
binary, the answer is rewritten from what was read of it.
"""

from __future__ import annotations

from functools import partial

from thoughtline.continuity.tagged_events import TaggedEvents, edit_body, edit_reply
from thoughtline.continuity.tagged_streams import TaggedStream, edits_in_place
from thoughtline.continuity.tags import TagMode
from thoughtline.formats import FORMATS
from thoughtline.gateway.pieces import EditStream, EditWhole, Piece, Stage
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.events import Event
from thoughtline.values.turns import FormatName


def tags_in_stream(format: FormatName, mode: TagMode, dialect: Dialect) -> Stage:
    """Return the stage for a stream that stays in its format."""
    texts = FORMATS[format].texts
    if texts is not None and edits_in_place(texts, mode, is_stream=True):
        return EditStream(TaggedStream(texts, mode, dialect))
    return _RewriteStream(format, mode, dialect)


def tags_in_body(format: FormatName, mode: TagMode, dialect: Dialect) -> Stage:
    """Return the stage for a whole answer that stays in its format."""
    texts = FORMATS[format].texts
    if texts is None or edits_in_place(texts, mode, is_stream=False):
        return EditWhole(partial(_in_place, format, mode, dialect))
    return _RewriteWhole(format, mode, dialect)


def _in_place(format: FormatName, mode: TagMode, dialect: Dialect, body: bytes) -> bytes:
    """Edit a body. One that can't be read is passed on unchanged."""
    try:
        return edit_body(format, body, mode, dialect)
    except DecodeError:
        return body


class _RewriteStream:
    """Rewrites a stream from its decoded events. If it can't be read, the rest is passed on unchanged."""

    def __init__(self, format: FormatName, mode: TagMode, dialect: Dialect) -> None:
        self._encoder = FORMATS[format].stream_encoder(dialect)
        self._events = TaggedEvents(mode, dialect.reasoning_format)

    def feed(self, piece: Piece) -> None:
        if piece.events is None:
            return
        written = self._written([one for event in piece.events for one in self._events.feed(event)])
        piece.data, piece.ending = (b"", written) if piece.ending else (written, b"")

    def end(self, piece: Piece) -> None:
        if piece.events is not None:
            last = [one for event in piece.events for one in self._events.feed(event)]
            piece.ending = self._written([*last, *self._events.finish()]) + self._encoder.finish()

    def cut(self, piece: Piece, problem: str) -> None:
        """Held-back text is dropped: the client sees that the answer broke off."""

    def _written(self, events: list[Event]) -> bytes:
        return b"".join(map(self._encoder.encode, events))


class _RewriteWhole(EditWhole):
    """Rewrites a whole answer from its decoded reply; one without tags is passed on unchanged."""

    def __init__(self, format: FormatName, mode: TagMode, dialect: Dialect) -> None:
        super().__init__(bytes)
        self._bodies = FORMATS[format].bodies
        self._mode: TagMode = mode
        self._dialect = dialect

    def _edited(self, piece: Piece, body: bytes) -> bytes:
        if piece.reply is None:
            return body
        edited = edit_reply(piece.reply, self._mode, self._dialect.reasoning_format)
        return self._bodies.encode_response(edited, self._dialect) if edited.is_edited else body
