"""Encodes chat streams: each event becomes the chunk that a server of the dialect would send."""

from __future__ import annotations

from msgspec import Raw, Struct

from thoughtline.formats.framing import one_line, sse
from thoughtline.formats.json_text import array, encode, members, object_of
from thoughtline.formats.openai_chat.bodies import FINISH, encode_usage
from thoughtline.formats.openai_chat.message_encoder import encode_call, encode_message
from thoughtline.formats.openai_chat.notes import encode_annotations
from thoughtline.formats.reasoning_details import encode_detail
from thoughtline.formats.streaming import EventEncoder
from thoughtline.providers import REASONING_CONTENT, Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import (
    CallDelta,
    ItemDone,
    Noted,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
)
from thoughtline.values.items import REASONING_KINDS, Item, ReasoningText, Text, ToolCall, Unknown
from thoughtline.values.notes import Citation
from thoughtline.values.turns import Usage

_PLAIN_MEMBERS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Carriers that are a text member next to `content`."""

_GROWS = b'data: %b,"choices":[{"index":%d,"delta":{"%b":%b},"finish_reason":null}]}\n\n'


def _head_of(started: Started) -> bytes:
    """The beginning of every chunk."""
    head = [
        ("id", encode(started.id or "")),
        ("object", b'"chat.completion.chunk"'),
        ("created", encode(started.created)),
        ("model", encode(started.model or "")),
    ]
    return object_of(head)[:-1]


class _Choice(Struct):
    """What was written of one choice so far; `written` are the positions of its items."""

    written: set[int] = set()
    calls: dict[int, int] = {}
    is_thinking: bool = False
    has_role: bool = False
    citations: tuple[Citation, ...] = ()


class StreamEncoder(EventEncoder):
    """Encodes events to the bytes of a chat stream."""

    def __init__(self, dialect: Dialect = REASONING_CONTENT) -> None:
        super().__init__(dialect)
        self._choices: dict[int, _Choice] = {}
        self._thinks_in = dialect.carrier.encode() if dialect.carrier in _PLAIN_MEMBERS else b""
        self._head = _head_of(Started())

    keep_alive = b": keep-alive\n\n"

    def _start(self, event: Started) -> bytes:
        self._head = _head_of(event)
        return b""

    def _grow(self, event: TextDelta | ReasoningDelta, member: bytes) -> bytes:
        """Continue the member that was last written; nothing if the event is for another one."""
        choice = self._choices.get(event.choice)
        if choice is None or choice.is_thinking or event.position not in choice.written or not member:
            return b""
        return _GROWS % (self._head, event.choice, member, encode(event.text))

    def _text(self, event: TextDelta) -> bytes:
        if grown := self._grow(event, b"content"):
            return grown
        return self._delta(event.choice, event.position, self._leave_thinking(event.choice, event.text))

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        if event.known:
            return b""  # it is written complete at the end
        if grown := self._grow(event, self._thinks_in):
            return grown
        return self._delta(event.choice, event.position, self._thinking(event.choice, event.text))

    def _call(self, event: CallDelta) -> bytes:
        return self._delta(event.choice, event.position, self._call_members(event))

    def _note(self, event: Noted) -> bytes:
        self._choice(event.choice).citations = event.notes.citations
        return b""

    def _report(self, usage: Usage) -> bytes:
        return self._chunk([("choices", b"[]"), ("usage", encode_usage(usage))])

    def _fail(self, error: Raw) -> bytes:
        return sse(object_of([("error", error)]))

    def finish(self) -> bytes:
        """The end of the stream."""
        return sse(b"[DONE]")

    def _choice(self, index: int) -> _Choice:
        if index not in self._choices:
            self._choices[index] = _Choice()
        return self._choices[index]

    def _delta(self, index: int, position: int, delta: list[tuple[str, bytes]], finish: bytes = b"null") -> bytes:
        choice = self._choice(index)
        choice.written.add(position)
        if not choice.has_role:
            choice.has_role = True
            delta = [("role", b'"assistant"'), *delta]
        written = b",".join([b'"%b":%b' % (key.encode(), value) for key, value in delta])
        choices = b'"choices":[{"index":%d,"delta":{%b},"finish_reason":%b}]' % (index, written, finish)
        return b"data: %b,%b}\n\n" % (self._head, one_line(choices))

    def _chunk(self, rest: list[tuple[str, bytes]]) -> bytes:
        return b"data: %b,%b\n\n" % (self._head, one_line(object_of(rest)[1:]))

    def _thinking(self, index: int, text: str) -> list[tuple[str, bytes]]:
        match self._dialect.carrier:
            case "reasoning_content" | "reasoning" | "reasoning_text" | "thinking":
                return [(self._dialect.carrier, encode(text))]
            case "reasoning_details":
                return [("reasoning", encode(text))]  # the entry itself is written complete at the end
            case "think_tags":
                choice = self._choice(index)
                opening = "" if choice.is_thinking else "<think>"
                choice.is_thinking = True
                return [("content", encode(opening + text))]
            case "mistral_chunks":
                chunk = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
                return [("content", encode([chunk]))]
            case "cohere_chunks":
                return [("content", encode([{"type": "thinking", "thinking": text}]))]
            case "google_extra" | "native" | "none":
                raise EncodeError(f"a stream in the dialect {self._dialect.name} has no place for reasoning text")

    def _leave_thinking(self, index: int, text: str) -> list[tuple[str, bytes]]:
        choice = self._choice(index)
        closing = "</think>" if choice.is_thinking else ""
        choice.is_thinking = False
        return [("content", encode(closing + text))]

    def _call_members(self, event: CallDelta) -> list[tuple[str, bytes]]:
        choice = self._choice(event.choice)
        is_new = event.position not in choice.calls
        number = choice.calls.setdefault(event.position, len(choice.calls))
        kind, text = ("custom", "input") if event.is_custom else ("function", "arguments")
        function: dict[str, str] = {"name": event.name} if event.name else {}
        function[text] = event.arguments
        call: dict[str, object] = {"index": number}
        if is_new:
            call |= {"id": event.id, "type": kind} if event.id is not None else {"type": kind}
        return [("tool_calls", encode([{**call, kind: function}]))]

    def _item_done(self, event: ItemDone) -> bytes:
        has_begun = event.position in self._choice(event.choice).written
        delta = self._rest_of(event) if has_begun else self._whole(event)
        return self._delta(event.choice, event.position, delta) if delta else b""

    def _whole(self, event: ItemDone) -> list[tuple[str, bytes]]:
        """An item without deltas."""
        item = event.item
        match item:
            case Text():
                return self._leave_thinking(event.choice, item.text)
            case ToolCall():
                call = self._call_members(
                    CallDelta(
                        event.choice,
                        event.position,
                        item.arguments,
                        id=item.id,
                        name=item.name,
                        is_custom=item.is_custom,
                    )
                )
                return call if item.seal is None else self._seal_of_call(event.choice, event.position, item)
            case Unknown(kind="refusal"):
                return [("refusal", bytes(item.raw))]
            case Unknown() if item.kind.startswith("reasoning."):
                return self._reasoning_members(item)
            case Unknown():
                return [("content", array([item.raw]))]
            case ReasoningText(signature=None) if self._dialect.carrier not in ("reasoning_details", "google_extra"):
                return self._thinking(event.choice, item.text)
            case _:
                return self._reasoning_members(item)

    def _rest_of(self, event: ItemDone) -> list[tuple[str, bytes]]:
        """The part of an item that its deltas could not express."""
        item = event.item
        if isinstance(item, ToolCall) and item.seal is not None:
            return self._seal_of_call(event.choice, event.position, item)
        if isinstance(item, REASONING_KINDS) and self._dialect.carrier in ("reasoning_details", "reasoning_text"):
            return [member for member in self._reasoning_members(item) if member[0] != "reasoning_text"]
        return []

    def _reasoning_members(self, item: Item) -> list[tuple[str, bytes]]:
        """Reasoning in the members that a whole message would have for it."""
        if self._dialect.carrier == "reasoning_details":
            return [("reasoning_details", array([encode_detail(item)]))]
        message = encode_message("assistant", (item,), None, self._dialect)
        ours = {key: bytes(value) for key, value in members(message).items() if key not in ("role", "content")}
        return list(ours.items())

    def _seal_of_call(self, index: int, position: int, item: ToolCall) -> list[tuple[str, bytes]]:
        call = members(encode_call(item, (), self._dialect))
        choice = self._choice(index)
        number = choice.calls.setdefault(position, len(choice.calls))
        keep = ("extra_content",) if position in choice.written else ("id", "type", "function", "extra_content")
        body = object_of([("index", encode(number)), *((key, call.get(key)) for key in keep)])
        return [("tool_calls", array([body]))]

    def _turn_done(self, event: TurnDone) -> bytes:
        choice = self._choice(event.choice)
        noted = [("annotations", encode_annotations(choice.citations))] if choice.citations else []
        output = self._delta(event.choice, -1, noted) if noted else b""
        if event.finish is None:
            return output
        closing = self._leave_thinking(event.choice, "") if choice.is_thinking else []
        return output + self._delta(event.choice, -1, closing, FINISH.encode(event.finish))
