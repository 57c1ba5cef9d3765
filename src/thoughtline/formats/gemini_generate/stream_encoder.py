"""Writing `streamGenerateContent`: each event becomes a partial response."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats.framing import sse
from thoughtline.formats.gemini_generate.bodies import FINISH, encode_usage
from thoughtline.formats.gemini_generate.notes import encode_notes
from thoughtline.formats.gemini_generate.parts import encode_part
from thoughtline.formats.json_text import array, encode, object_of
from thoughtline.formats.streaming import EventEncoder
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.events import (
    ItemDone,
    Noted,
    ReasoningDelta,
    TextDelta,
    TurnDone,
)
from thoughtline.values.items import NO_RAW, ReasoningText, Text, ToolCall, seal_of
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.turns import Usage


class StreamEncoder(EventEncoder):
    """Events in, bytes of a Gemini stream out."""

    def __init__(self, dialect: Dialect = GEMINI, framing: Literal["sse", "json_array"] = "sse") -> None:
        super().__init__(dialect)
        self._framing = framing
        self._told: set[tuple[int, int]] = set()
        self._has_written = False
        self._ended: list[bytes] = []
        self._words: dict[int, str] = {}
        self._noted: dict[int, Notes] = {}

    def _text(self, event: TextDelta) -> bytes:
        self._told.add((event.choice, event.position))
        return self._part(event.choice, encode({"text": event.text}))

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        self._told.add((event.choice, event.position))
        return self._part(event.choice, encode({"text": event.text, "thought": True}))

    def _note(self, event: Noted) -> bytes:
        self._noted[event.choice] = event.notes
        return b""

    def _report(self, usage: Usage) -> bytes:
        return self._ending() if self._ended else b""

    def _fail(self, error: Raw) -> bytes:
        return self._frame(object_of([("error", error)]))

    def finish(self) -> bytes:
        """The end of the stream."""
        last = self._ending()
        if self._framing == "sse":
            return last
        return last + (b"\n]\n" if self._has_written else b"[]\n")

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if isinstance(item, Text):  # for the places of notes: a stream counts from the beginning of all its words
            self._words[event.choice] = self._words.get(event.choice, "") + item.text
        if (event.choice, event.position) not in self._told or isinstance(item, ToolCall):
            return self._part(event.choice, encode_part(item, self._dialect))
        if not isinstance(item, (Text, ReasoningText)) or seal_of(item) is None:
            return b""
        # The text has gone out unsigned; Gemini itself sends the signature in an empty part then.
        return self._part(event.choice, encode_part(replace(item, text="", raw=NO_RAW), self._dialect))

    def _turn_done(self, event: TurnDone) -> bytes:
        if event.finish is None:
            return b""
        content = object_of([("parts", b"[]"), ("role", b'"model"')])
        known = [("content", content), ("finishReason", FINISH.encode(event.finish)), ("index", encode(event.choice))]
        self._ended.append(object_of([*known, *self._notes(event.choice)]))
        return self._ending() if self._usage else b""

    def _ending(self) -> bytes:
        """Why answers ended, and what they cost, in one chunk as Gemini has it: its SDKs expect an answer in each."""
        ended, usage = self._ended, self._usage
        self._ended, self._usage = [], None
        members = [("candidates", array(ended))] if ended else []
        members += [("usageMetadata", encode_usage(usage))] if usage is not None else []
        return self._chunk(members) if members else b""

    def _notes(self, choice: int) -> list[tuple[str, bytes]]:
        """What stands beside the answer."""
        return encode_notes(self._noted.get(choice, NO_NOTES), (Text(self._words.get(choice, "")),))

    def _part(self, choice: int, part: bytes) -> bytes:
        content = object_of([("parts", array([part])), ("role", b'"model"')])
        candidate = object_of([("content", content), ("index", encode(choice))])
        return self._chunk([("candidates", array([candidate]))])

    def _chunk(self, members: list[tuple[str, bytes]]) -> bytes:
        named = [("modelVersion", self._started.model), ("responseId", self._started.id)]
        tail = [(key, encode(value)) for key, value in named if value is not None]
        return self._frame(self._answer(object_of([*members, *tail])))

    def _answer(self, answer: bytes) -> bytes:
        """A partial response as it is sent."""
        return answer

    def _frame(self, payload: bytes) -> bytes:
        if self._framing == "sse":
            return sse(payload)
        opening = b",\n" if self._has_written else b"["
        self._has_written = True
        return opening + payload
