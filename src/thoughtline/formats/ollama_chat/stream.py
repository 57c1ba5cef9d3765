"""Streams of Ollama's chat: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from thoughtline.formats import think_tags
from thoughtline.formats.framing import JsonLines, one_line
from thoughtline.formats.json_text import is_given, object_of
from thoughtline.formats.ollama_chat.chat import (
    Response,
    decode_call,
    encode_message,
    finish_of,
    line_of,
    message_of,
    response_decoder,
    usage_of,
)
from thoughtline.formats.streaming import EventEncoder, PayloadStreamDecoder
from thoughtline.formats.texts import EVERY, Json, Reading, Texts, TextSpot, inner
from thoughtline.providers import OLLAMA, Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.items import Item, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Turn


class StreamDecoder(PayloadStreamDecoder):
    has_end_mark = False

    def __init__(self, dialect: Dialect = OLLAMA) -> None:
        super().__init__(JsonLines())
        self._dialect = dialect
        self._splitter = think_tags.Splitter() if dialect.carrier == "think_tags" else None
        self._thoughts: list[str] = []
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._is_started = False
        self._is_done = False

    def _consume(self, payload: bytes, events: list[Event]) -> None:
        line = response_decoder.decode(payload)
        if is_given(line.error):
            events.append(Failed(line.error.copy()))
            return
        if not self._is_started:
            self._is_started = True
            events.append(Started(None, line.model))
        message = message_of(line)
        self._add(message.thinking or "", message.content or "", events)
        for raw in message.tool_calls or ():
            call = decode_call(raw.copy())
            self._calls.append(call)
            events.append(CallDelta(0, 1 + len(self._calls), call.arguments, call.id, call.name))
        if line.done and not self._is_done:
            usage = usage_of(line)
            if usage is not None:
                events.append(UsageReported(usage))
            self._end(line, events)

    def _add(self, thought: str, content: str, events: list[Event]) -> None:
        if self._splitter is not None and content:
            tagged, content = self._splitter.feed(content)
            thought += tagged
        if thought:
            self._thoughts.append(thought)
            events.append(ReasoningDelta(0, 0, thought))
        if content:
            self._texts.append(content)
            events.append(TextDelta(0, 1, content))

    def _end(self, line: Response | None, events: list[Event]) -> None:
        self._is_done = True
        if self._splitter is not None:
            splitter, self._splitter = self._splitter, None
            self._add(*splitter.finish(), events)
        items: list[tuple[int, Item]] = []
        if self._thoughts:
            items.append((0, ReasoningText("".join(self._thoughts), None, self._dialect.reasoning_format)))
        if self._texts:
            items.append((1, Text("".join(self._texts))))
        items += enumerate(self._calls, start=2)
        events += [ItemDone(0, position, item) for position, item in items]
        events.append(TurnDone(0, finish_of(line, self._calls) if line is not None else None))

    def _close(self, events: list[Event]) -> None:
        if self._is_started and not self._is_done:
            self._end(None, events)


class StreamEncoder(EventEncoder):
    """Encodes events to lines of an Ollama stream. Reasoning is written to `thinking`, whatever the dialect reads."""

    def __init__(self, dialect: Dialect = OLLAMA) -> None:
        super().__init__(dialect)
        self._written: set[int] = set()

    def _text(self, event: TextDelta) -> bytes:
        return self._line_of(event.choice, event.position, Text(event.text))

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._line_of(event.choice, event.position, ReasoningText(event.text))

    def _item_done(self, event: ItemDone) -> bytes:
        encode_message(Turn("assistant", (event.item,)), None, OLLAMA)  # rejects items without a place
        return b"" if event.position in self._written else self._line_of(event.choice, event.position, event.item)

    def _fail(self, error: Raw) -> bytes:
        return one_line(object_of([("error", error)])) + b"\n"

    def pulse(self) -> bytes:
        """A line without content."""
        message = b'{"role":"assistant","content":""}'
        return one_line(line_of(self._started.model, message, None, None, self._started.created)) + b"\n"

    def finish(self) -> bytes:
        """The last line; nothing if the turn was cut off."""
        if self._finish is None:
            return b""
        message = b'{"role":"assistant","content":""}'
        return line_of(self._started.model, message, self._finish, self._usage, self._started.created) + b"\n"

    def _line_of(self, choice: int, position: int, item: Item) -> bytes:
        if choice != 0:
            raise EncodeError("an Ollama stream holds one answer")
        self._written.add(position)
        message = encode_message(Turn("assistant", (item,)), None, OLLAMA)
        return one_line(line_of(self._started.model, message, None, None, self._started.created)) + b"\n"


# --- positions of visible text ----------------------------------------------------------------------------------------


def _event(value: Json) -> Reading:
    spots = tuple(spot._replace(is_whole=False) for spot in _body(value))
    return Reading(spots, (EVERY,) if value.get("done") or value.get("error") else ())


def _body(value: Json) -> Iterator[TextSpot]:
    content = inner(value, "message").get("content")
    if isinstance(content, str):
        yield TextSpot((0,), ("message", "content"), content, ("message",), is_whole=True)
    if isinstance(value.get("response"), str):
        yield TextSpot((1,), ("response",), value["response"], is_whole=True)


TEXTS = Texts(_body, _event, JsonLines, member="thinking")
