"""Writing streams of interactions: one step open at a time."""

from __future__ import annotations

from msgspec import Raw

from thoughtline.formats.framing import sse
from thoughtline.formats.gemini_interactions.bodies import FINISH, encode_usage
from thoughtline.formats.gemini_interactions.steps import encode_step
from thoughtline.formats.json_text import encode, object_of
from thoughtline.formats.streaming import BlockCursor, EventEncoder
from thoughtline.providers import INTERACTIONS, Dialect
from thoughtline.values.events import CallDelta, ItemDone, ReasoningDelta, Started, TextDelta, TurnDone
from thoughtline.values.items import Item, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Finish


class StreamEncoder(EventEncoder):
    """Events in, bytes of a stream of interactions out."""

    def __init__(self, dialect: Dialect = INTERACTIONS) -> None:
        super().__init__(dialect)
        self._cursor = BlockCursor()

    def _start(self, event: Started) -> bytes:
        return _event("interaction.created", ("interaction", self._interaction(None)))

    def _text(self, event: TextDelta) -> bytes:
        return self._enter(event.choice, event.position, b'{"type":"model_output"}') + self._grow(
            {"type": "text", "text": event.text}
        )

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._enter(event.choice, event.position, b'{"type":"thought"}') + self._grow(_summary(event.text))

    def _call(self, event: CallDelta) -> bytes:
        step = {"type": "function_call", "id": event.id or "", "name": event.name or "", "arguments": {}}
        opened = self._enter(event.choice, event.position, encode(step))
        return opened + (self._grow(_arguments(event.arguments)) if event.arguments else b"")

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        step = encode_step(item, self._dialect)  # refuses a seal of another maker
        if event.position not in self._cursor.told:
            return self._whole(event.choice, event.position, item, step)
        if self._cursor.open != event.position:
            return b""
        return self._signed(item) + self._leave()

    def _whole(self, choice: int, position: int, item: Item, step: bytes) -> bytes:
        """An item that no delta announced."""
        match item:
            case ReasoningText():
                opened = self._enter(choice, position, b'{"type":"thought"}')
                return (
                    opened
                    + (self._grow(_summary(item.text)) if item.text else b"")
                    + self._signed(item)
                    + self._leave()
                )
            case Text():
                opened = self._enter(choice, position, b'{"type":"model_output"}')
                return opened + self._grow({"type": "text", "text": item.text}) + self._leave()
            case ToolCall():
                return self._call(CallDelta(choice, position, item.arguments, item.id, item.name)) + self._leave()
            case _:
                return self._enter(choice, position, step) + self._leave()

    def _signed(self, item: Item) -> bytes:
        if not isinstance(item, ReasoningText) or not item.signature:
            return b""
        return self._grow({"type": "thought_signature", "signature": item.signature})

    def _turn_done(self, event: TurnDone) -> bytes:
        return self._leave()

    def _fail(self, error: Raw) -> bytes:
        return _event("error", ("error", error))

    def finish(self) -> bytes:
        """The end of the stream; nothing if the turn was cut."""
        if self._finish is None:
            return b""
        done = _event("interaction.completed", ("interaction", self._interaction(self._finish)))
        return done + b"event: done\ndata: [DONE]\n\n"

    def _interaction(self, finish: Finish | None) -> bytes:
        return object_of(
            [
                ("id", encode(self._started.id or "")),
                ("object", b'"interaction"'),
                ("status", FINISH.encode(finish) if finish else b'"in_progress"'),
                ("model", encode(self._started.model or "")),
                ("usage", encode_usage(self._usage) if self._usage else None),
            ]
        )

    def _enter(self, choice: int, position: int, step: bytes) -> bytes:
        """Open the step at this position, if it is not open."""
        if self._cursor.open == position:
            return b""
        left = self._leave()
        self._cursor.enter(choice, position)
        return left + _event("step.start", ("index", encode(self._cursor.index)), ("step", step))

    def _grow(self, delta: dict[str, object]) -> bytes:
        return _event("step.delta", ("index", encode(self._cursor.index)), ("delta", encode(delta)))

    def _leave(self) -> bytes:
        index = self._cursor.leave()
        return b"" if index is None else _event("step.stop", ("index", encode(index)))


def _summary(text: str) -> dict[str, object]:
    return {"type": "thought_summary", "content": {"type": "text", "text": text}}


def _arguments(text: str) -> dict[str, object]:
    return {"type": "arguments_delta", "arguments": text}


def _event(name: str, *members: tuple[str, bytes | Raw]) -> bytes:
    return sse(object_of([*members, ("event_type", encode(name))]), name)
