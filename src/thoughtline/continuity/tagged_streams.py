"""Removes thinking tags from an answer that is forwarded in its own format: bytes in, bytes out.

Only characters inside the strings of visible texts are removed; every other byte stays, escapes included. No event is
added or removed: an event that had only a marker is forwarded with an empty text. An event is held back only while the
end of a text may still become a tag, and later events wait with it.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from thoughtline.continuity.tags import Run, Scanner, TagMode, Verdict
from thoughtline.formats.framing import EditedStream, Frame
from thoughtline.formats.json_text import member_spans, set_members, span_at
from thoughtline.formats.texts import EVERY, Reading, Steps, Texts, TextSpot
from thoughtline.providers import Dialect

_UNITS = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
"""A character of a JSON string, as it is written."""


class _Piece:
    """The text at one spot, and the verdicts on its characters."""

    def __init__(self, spot: TextSpot) -> None:
        self.spot = spot
        self.runs: list[Run] = []
        self.missing = len(spot.text)

    def take(self, runs: deque[Run]) -> bool:
        """Take the verdicts for this text from the front; returns whether there were enough."""
        while runs and self.missing:
            verdict, text = runs.popleft()
            if len(text) > self.missing:
                runs.appendleft(Run(verdict, text[self.missing :]))
            self.runs.append(Run(verdict, text[: self.missing]))
            self.missing -= len(self.runs[-1].text)
        return not self.missing

    def has(self, *verdicts: Verdict) -> bool:
        return any(run.verdict in verdicts for run in self.runs)

    def segments(self, payload: bytes) -> list[tuple[Verdict, str]]:
        """The parts of the text, as written in the JSON string."""
        start, end = span_at(payload, self.spot.path) or (0, 0)
        written = payload[start + 1 : end - 1].decode()
        units = _UNITS.findall(written) if "\\" in written else written
        found = []
        at = 0
        for verdict, text in self.runs:
            found.append((verdict, "".join(units[at : at + len(text)])))
            at += len(text)
        return found


class _Tags:
    """The open texts, each with its scanner and the pieces that wait for verdicts."""

    def __init__(self, mode: TagMode) -> None:
        self._mode = mode
        self._open: dict[Steps, tuple[Scanner, deque[_Piece]]] = {}

    def read(self, reading: Reading) -> tuple[_Piece, ...]:
        """The pieces in an event, decided as far as possible."""
        pieces = tuple(map(_Piece, reading.spots))
        for piece in pieces:
            key, text = piece.spot.key, piece.spot.text
            scanner, waiting = self._open.setdefault(key, (Scanner(self._mode), deque()))
            waiting.append(piece)
            _settle(scanner.feed(text), waiting)
            if piece.spot.is_whole:
                self._end(key)
        for key in reading.ended:
            self.end_all() if key == EVERY else self._end(key)
        return pieces

    def end_all(self) -> None:
        for key in list(self._open):
            self._end(key)

    def _end(self, key: Steps) -> None:
        if key in self._open:
            scanner, waiting = self._open.pop(key)
            _settle(scanner.finish(), waiting)


def _settle(verdicts: list[Run], waiting: deque[_Piece]) -> None:
    runs = deque(verdicts)
    while waiting and waiting[0].take(runs):
        waiting.popleft()


class _Event(NamedTuple):
    """An event being forwarded, and its texts."""

    frame: Frame
    pieces: tuple[_Piece, ...]


class TaggedStream(EditedStream):
    """A stream of one format without thinking tags; the text between them is removed or lifted to reasoning."""

    def __init__(self, texts: Texts, mode: TagMode, dialect: Dialect) -> None:
        if not edits_in_place(texts, mode, is_stream=True) or texts.framing is None:
            raise ValueError("this stream can't be changed in place")
        super().__init__(texts.framing())
        self._texts = _in_dialect(texts, dialect)
        self._tags = _Tags(mode)
        self._waiting: deque[_Event] = deque()

    def _edit(self, frame: Frame) -> bytes:
        pieces = self._tags.read(self._texts.read_event(frame.payload)) if frame.payload else ()
        self._waiting.append(_Event(frame, pieces))
        return self._released()

    def _held(self) -> bytes:
        self._tags.end_all()
        return self._released()

    def _released(self) -> bytes:
        out = []
        while self._waiting and not any(piece.missing for piece in self._waiting[0].pieces):
            frame, pieces = self._waiting.popleft()
            payload = _edited(frame.payload, pieces, self._texts)
            out.append(frame.raw if payload is frame.payload else frame.with_payload(payload))
        return b"".join(out)


def edits_in_place(texts: Texts, mode: TagMode, *, is_stream: bool) -> bool:
    """Whether tags can be edited in the bytes: not if reasoning must be lifted to an item of its own."""
    return (mode != "lift" or texts.has_reasoning_beside) and not (is_stream and texts.framing is None)


def edit_whole(texts: Texts, body: bytes, mode: TagMode, dialect: Dialect) -> bytes:
    """Edit a whole response in place."""
    return _edited(body, _Tags(mode).read(texts.read_whole(body)), _in_dialect(texts, dialect))


def _in_dialect(texts: Texts, dialect: Dialect) -> Texts:
    """Chat has two members for reasoning: use the provider's."""
    return texts._replace(member="reasoning") if texts.member and dialect.carrier == "reasoning" else texts


def _edited(payload: bytes, pieces: tuple[_Piece, ...], texts: Texts) -> bytes:
    """Edit the parts from the last to the first: earlier positions stay valid if one part becomes several."""
    for piece in reversed(pieces) if texts.flag else pieces:
        if piece.has("lift"):
            edit = _with_member if texts.member else _with_parts
            payload = edit(payload, piece, texts.member or texts.flag)
        elif piece.has("drop"):
            start, end = span_at(payload, piece.spot.path) or (0, 0)
            payload = payload[:start] + _literal(piece.segments(payload), "keep") + payload[end:]
    return payload


def _literal(segments: list[tuple[Verdict, str]], wanted: Verdict) -> bytes:
    return ('"' + "".join(text for verdict, text in segments if verdict == wanted) + '"').encode()


def _with_member(payload: bytes, piece: _Piece, name: str) -> bytes:
    """Add reasoning to a member next to the text, after its current content."""
    segments = piece.segments(payload)
    start, end = span_at(payload, piece.spot.owner) or (0, len(payload))
    inner_start, inner_end = span_at(payload, piece.spot.path) or (0, 0)
    owner = payload[start:inner_start] + _literal(segments, "keep") + payload[inner_end:end]
    had = next((owner[one.value_start : one.end] for one in member_spans(owner) if one.key == name), b"null")
    before = had[:-1] if had[:1] == b'"' else b'"'
    return payload[:start] + set_members(owner, [(name, before + _literal(segments, "lift")[1:])]) + payload[end:]


def _with_parts(payload: bytes, piece: _Piece, flag: str) -> bytes:
    """Split a part as needed, with the lifted parts marked as thought."""
    start, end = span_at(payload, piece.spot.owner) or (0, 0)
    part = payload[start:end]
    parts = []
    for verdict, text in piece.segments(payload):
        if verdict != "drop":
            words = [("text", f'"{text}"'.encode())]
            parts.append(set_members(part, [*words, (flag, b"true")] if verdict == "lift" else words))
    return payload[:start] + b",".join(parts or [set_members(part, [("text", b'""')])]) + payload[end:]
