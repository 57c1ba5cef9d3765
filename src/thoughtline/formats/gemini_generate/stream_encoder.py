"""Writing `streamGenerateContent`: each event becomes a partial response."""

from __future__ import annotations

from typing import Literal, assert_never

from thoughtline.formats.framing import sse
from thoughtline.formats.gemini_generate.notes import encode_notes
from thoughtline.formats.gemini_generate.parts import encode_part
from thoughtline.formats.gemini_generate.usage import encode_finish, encode_usage
from thoughtline.formats.json_text import array, encode, object_of
from thoughtline.providers import GEMINI, Dialect
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Noted,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.items import Item, ReasoningText, Seal, Text, ToolCall
from thoughtline.values.notes import NO_NOTES, Notes


class StreamEncoder:
    """Events in, bytes of a Gemini stream out."""

    def __init__(self, dialect: Dialect = GEMINI, framing: Literal["sse", "json_array"] = "sse") -> None:
        self._dialect = dialect
        self._framing = framing
        self._started = Started()
        self._told: set[tuple[int, int]] = set()
        self._has_written = False
        self._usage: bytes | None = None
        self._ended: list[bytes] = []
        self._words: dict[int, list[Item]] = {}
        self._noted: dict[int, Notes] = {}

    def encode(self, event: Event) -> bytes:
        """The bytes that say what this event says."""
        match event:
            case Started():
                self._started = event
                return b""
            case TextDelta():
                self._told.add((event.choice, event.position))
                return self._part(event.choice, encode({"text": event.text}))
            case ReasoningDelta():
                self._told.add((event.choice, event.position))
                return self._part(event.choice, encode({"text": event.text, "thought": True}))
            case CallDelta():
                return b""  # a call comes whole
            case ItemDone():
                self._remember(event)
                return self._item_done(event)
            case Noted():
                self._noted[event.choice] = event.notes
                return b""
            case TurnDone():
                return self._turn_done(event)
            case UsageReported():
                self._usage = encode_usage(event.usage)
                return self._ending() if self._ended else b""
            case Failed():
                return self._frame(object_of([("error", event.error)]))
            case Other():
                return b""
            case _:
                assert_never(event)

    def finish(self) -> bytes:
        """The end of the stream."""
        last = self._ending()
        if self._framing == "sse":
            return last
        return last + (b"\n]\n" if self._has_written else b"[]\n")

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if (event.choice, event.position) not in self._told or isinstance(item, ToolCall):
            return self._part(event.choice, encode_part(item, self._dialect))
        seal = _seal(item)
        if seal is None:
            return b""
        # The text has gone out unsigned; Gemini itself sends the signature in an empty part then.
        return self._part(event.choice, encode_part(Text("", seal), self._dialect))

    def _turn_done(self, event: TurnDone) -> bytes:
        if event.finish is None:
            return b""
        content = object_of([("parts", b"[]"), ("role", b'"model"')])
        known = [("content", content), ("finishReason", encode_finish(event.finish)), ("index", encode(event.choice))]
        self._ended.append(object_of([*known, *self._notes(event.choice)]))
        return self._ending() if self._usage is not None else b""

    def _ending(self) -> bytes:
        """Why answers ended, and what they cost, in one chunk as Gemini has it: its SDKs expect an answer in each."""
        ended, usage = self._ended, self._usage
        self._ended, self._usage = [], None
        members = [("candidates", array(ended))] if ended else []
        members += [("usageMetadata", usage)] if usage is not None else []
        return self._chunk(members) if members else b""

    def _remember(self, event: ItemDone) -> None:
        """Words, for the places of notes: a stream counts from the beginning of all of them."""
        if isinstance(event.item, Text):
            self._words.setdefault(event.choice, []).append(event.item)

    def _notes(self, choice: int) -> list[tuple[str, bytes]]:
        """What stands beside the answer."""
        words = Text("".join(item.text for item in self._words.get(choice, ()) if isinstance(item, Text)))
        return encode_notes(self._noted.get(choice, NO_NOTES), (words,))

    def _part(self, choice: int, part: bytes) -> bytes:
        content = object_of([("parts", array([part])), ("role", b'"model"')])
        candidate = object_of([("content", content), ("index", encode(choice))])
        return self._chunk([("candidates", array([candidate]))])

    def _chunk(self, members: list[tuple[str, bytes]]) -> bytes:
        named = [("modelVersion", self._started.model), ("responseId", self._started.id)]
        tail = [(key, encode(value)) for key, value in named if value is not None]
        return self._frame(object_of([*members, *tail]))

    def _frame(self, payload: bytes) -> bytes:
        if self._framing == "sse":
            return sse(payload)
        opening = b",\n" if self._has_written else b"["
        self._has_written = True
        return opening + payload


def _seal(item: Item) -> Seal | None:
    match item:
        case Text():
            return item.seal
        case ReasoningText(signature=str() as signature):
            return Seal(signature, item.format)
        case _:
            return None
