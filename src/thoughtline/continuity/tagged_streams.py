"""Thinking tags out of a stream that is passed on in its own format: bytes in, bytes out.

Only characters inside the strings of text deltas go; every other byte stays, escapes as they were written. No event is
added, and none is taken out: one whose text was all marker goes on with an empty text. An event waits only while
the end of a text could still become a tag, and those behind it wait with it.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple, Protocol

from thoughtline.continuity.raw_events import RawEvent, SplitsEvents, splitter_for
from thoughtline.continuity.tagged_texts import EVERY, Reading, TextKey, read_event, read_whole
from thoughtline.continuity.tags import Run, Scanner, TagMode, Verdict
from thoughtline.formats.framing import one_line
from thoughtline.formats.json_text import encode, member_spans, set_members, span_at
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.turns import FormatName

_UNITS = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
"""A character of a JSON string as it is written."""

LIFTED_IN_PLACE: frozenset[FormatName] = frozenset({"openai_chat", "ollama_chat", "gemini_generate"})
"""Formats in which an event can bring reasoning beside text. In the others it is an item of its own, with events of its
own: there a stream is lifted as typed events (tagged_events.py)."""


class FiltersStream(Protocol):
    """Bytes cut anywhere in, bytes out."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class _Piece:
    """The text of one event: where it stands, and the verdicts on its characters."""

    def __init__(self, payload: bytes, path: tuple[str | int, ...], chars: int) -> None:
        self._payload = payload
        self.path = path
        self.runs: list[Run] = []
        self.missing = chars

    def take(self, runs: deque[Run]) -> None:
        """As many verdicts as it needs, from the front."""
        while runs and self.missing:
            verdict, chars = runs.popleft()
            used = min(chars, self.missing)
            if used < chars:
                runs.appendleft(Run(verdict, chars - used))
            self.runs.append(Run(verdict, used))
            self.missing -= used

    @property
    def is_touched(self) -> bool:
        return any(run.verdict != "keep" for run in self.runs)

    def segments(self) -> list[tuple[Verdict, str]]:
        """The text in its parts, as JSON has it between quotes."""
        start, end = span_at(self._payload, self.path) or (0, 0)
        written = self._payload[start + 1 : end - 1].decode()
        units = _UNITS.findall(written) if "\\" in written else written
        found = []
        at = 0
        for verdict, chars in self.runs:
            found.append((verdict, "".join(units[at : at + chars])))
            at += chars
        return found

    def literal(self, wanted: Verdict) -> bytes:
        return ('"' + "".join(text for verdict, text in self.segments() if verdict == wanted) + '"').encode()


class _Held(NamedTuple):
    """An event on its way, and its texts."""

    event: RawEvent
    pieces: tuple[_Piece, ...]


class _Texts:
    """The texts that are open, each with its scanner and the pieces that wait for verdicts."""

    def __init__(self, mode: TagMode) -> None:
        self._mode = mode
        self._scanners: dict[TextKey, Scanner] = {}
        self._waiting: dict[TextKey, deque[_Piece]] = {}

    def hear(self, payload: bytes, reading: Reading) -> tuple[_Piece, ...]:
        pieces = []
        for key, path, text, is_whole in reading.spots:
            piece = _Piece(payload, path, len(text))
            pieces.append(piece)
            self._waiting.setdefault(key, deque()).append(piece)
            scanner = self._scanners.get(key)
            if scanner is None:
                scanner = self._scanners[key] = Scanner(self._mode)
            self._settle(key, scanner.feed(text))
            if is_whole:
                self._end(key)
        for key in reading.ended:
            self.end_all() if key == EVERY else self._end(key)
        return tuple(pieces)

    def end_all(self) -> None:
        for key in list(self._scanners):
            self._end(key)

    def _end(self, key: TextKey) -> None:
        scanner = self._scanners.pop(key, None)
        if scanner is not None:
            self._settle(key, scanner.finish())
            self._waiting.pop(key, None)

    def _settle(self, key: TextKey, verdicts: list[Run]) -> None:
        runs = deque(verdicts)
        waiting = self._waiting[key]
        while waiting:
            waiting[0].take(runs)
            if waiting[0].missing:
                return
            waiting.popleft()


class TaggedStream:
    """A stream of one format, without the markers of thinking tags, or with what stands between them as reasoning."""

    def __init__(self, format: FormatName, mode: TagMode, reasoning_field: str = "reasoning_content") -> None:
        if mode == "lift" and format not in LIFTED_IN_PLACE:
            raise ValueError(f"reasoning of {format} can't be lifted in place")
        self._format = format
        self._field = reasoning_field if format == "openai_chat" else "thinking"
        self._splitter: SplitsEvents = splitter_for(format)
        self._texts = _Texts(mode)
        self._held: deque[_Held] = deque()
        self._gave_up = False

    def feed(self, data: bytes) -> bytes:
        """What can go on. An event beyond all bounds passes as it is, and so does all that follows."""
        if self._gave_up:
            return data
        try:
            events = self._splitter.feed(data)
        except LimitExceeded:
            self._gave_up = True
            self._texts.end_all()
            return self._released() + self._splitter.rest()
        return self._passed(events)

    def finish(self) -> bytes:
        """Nothing more comes: what is left, as it is."""
        if self._gave_up:
            return b""
        out = self._passed(self._splitter.finish())
        self._texts.end_all()
        return out + self._released() + self._splitter.rest()

    def _passed(self, events: list[RawEvent]) -> bytes:
        for event in events:
            pieces: tuple[_Piece, ...] = ()
            if event.payload:
                pieces = self._texts.hear(event.payload, read_event(self._format, event.payload))
            self._held.append(_Held(event, pieces))
        return self._released()

    def _released(self) -> bytes:
        out = []
        while self._held and not any(piece.missing for piece in self._held[0].pieces):
            event, pieces = self._held.popleft()
            touched = [piece for piece in pieces if piece.is_touched]
            if touched:
                payload = _edited(self._format, event.payload, touched, self._field)
                out += [event.head, one_line(payload), event.tail]
            else:
                out.append(event.raw)
        return b"".join(out)


def edit_whole(format: FormatName, body: bytes, mode: TagMode, reasoning_field: str = "reasoning_content") -> bytes:
    """A whole response, in place. `tagged_events.edit_body` is for every format and mode."""
    if mode == "lift" and format not in LIFTED_IN_PLACE:
        raise ValueError(f"reasoning of {format} can't be lifted in place")
    touched = [piece for piece in _Texts(mode).hear(body, read_whole(format, body)) if piece.is_touched]
    field = reasoning_field if format == "openai_chat" else "thinking"
    return _edited(format, body, touched, field) if touched else body


def _edited(format: FormatName, payload: bytes, pieces: list[_Piece], field: str) -> bytes:
    """Gemini's from the back: where a part becomes several, the places of those before it stay right."""
    for piece in reversed(pieces) if format == "gemini_generate" else pieces:
        lifts = any(run.verdict == "lift" for run in piece.runs)
        if lifts and format == "gemini_generate":
            payload = _with_parts(payload, piece)
        elif lifts:
            payload = _with_field(payload, piece, field)
        else:
            start, end = span_at(payload, piece.path) or (0, 0)
            payload = payload[:start] + piece.literal("keep") + payload[end:]
    return payload


def _with_field(payload: bytes, piece: _Piece, field: str) -> bytes:
    """Reasoning in a member beside the text, behind what that may hold already."""
    at = next(number for number, step in enumerate(piece.path) if step in ("content", "response"))
    start, end = span_at(payload, piece.path[:at]) or (0, len(payload))
    inner_start, inner_end = span_at(payload, piece.path) or (0, 0)
    owner = payload[start:inner_start] + piece.literal("keep") + payload[inner_end:end]
    had = next((owner[one.value_start : one.end] for one in member_spans(owner) if one.key == field), b"null")
    before = had[1:-1] if had[:1] == b'"' else b""
    value = b'"' + before + piece.literal("lift")[1:-1] + b'"'
    return payload[:start] + set_members(owner, [(field, value)]) + payload[end:]


def _with_parts(payload: bytes, piece: _Piece) -> bytes:
    """A part in as many as it takes, the lifted ones marked as thought."""
    start, end = span_at(payload, piece.path[:-1]) or (0, 0)
    part = payload[start:end]
    parts = []
    for verdict, text in piece.segments():
        if verdict != "drop":
            changes: list[tuple[str, bytes | None]] = [("text", f'"{text}"'.encode())]
            parts.append(set_members(part, [*changes, ("thought", encode(True))] if verdict == "lift" else changes))
    return payload[:start] + b",".join(parts or [set_members(part, [("text", b'""')])]) + payload[end:]
