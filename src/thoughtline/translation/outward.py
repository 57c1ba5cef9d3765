"""What an upstream says, as a client's format can hold it: event by event, in order, without waiting.

    upstream's events ── Outward ──> events that the client's encoder takes

One item is open at a time, as most grammars want it: an item that another one interrupts ends there, a parallel call
that grows beside another waits until that one is whole. Reasoning takes the shape the client has for it, its seals go
into our envelope in the client's opaque slot, ids become valid for the client. What it has no place for is found, not
lost in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from thoughtline.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.formats.json_text import is_json
from thoughtline.items import (
    NO_RAW,
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    Unknown,
)
from thoughtline.providers import Dialect
from thoughtline.records import Key
from thoughtline.replay.findings import Finding
from thoughtline.translation.calls import CallIds
from thoughtline.translation.conversation import readable, refusal_of
from thoughtline.translation.envelopes import Opened, Sealer
from thoughtline.translation.errors import error_in_stream
from thoughtline.translation.spokes import SPOKES
from thoughtline.turns import Finish, FormatName, Provenance

Slot = Literal["block", "element", "call", "none"]
_SLOTS: dict[FormatName, Slot] = {
    "anthropic_messages": "block",
    "openai_responses": "element",
    "gemini_generate": "call",
}
_ONE_ANSWER = ("anthropic_messages", "openai_responses", "ollama_chat", "bedrock_converse")
_SAME_WORDS = ("anthropic_messages", "bedrock_converse")
"""Formats that share their words for why a turn ended."""

_PREFIXES: dict[FormatName, str] = {
    "openai_chat": "chatcmpl-",
    "openai_responses": "resp_",
    "anthropic_messages": "msg_",
}
_SEALED_LATE = ("reasoning_details", "reasoning_text", "google_extra")
"""Carriers whose seals come at the end of a stream, when the reasoning they are for has long gone out."""


class Held(NamedTuple):
    """An item for an envelope, and how many visible ones stood before it."""

    place: int
    item: Item


class Sealing(NamedTuple):
    """What goes into an envelope beside the reasoning."""

    sealer: Sealer
    provenance: Provenance
    prefix: Key = Key("")
    created_at: float = 0.0

    def token(self, held: Sequence[Held]) -> str | None:
        if not held:
            return None
        items, places = tuple(one.item for one in held), tuple(one.place for one in held)
        return self.sealer.seal(Opened(self.provenance, items, places, self.prefix, self.created_at))


class Way(NamedTuple):
    """From where to where: formats and dialects, ids, and what the client was told before."""

    source: FormatName
    source_dialect: Dialect
    to: FormatName
    dialect: Dialect
    ids: CallIds
    sealing: Sealing | None = None
    wants_usage: bool = True
    created: int = 0


class _Open:
    """The item that is being said."""

    def __init__(self, kind: Literal["text", "reasoning", "call"], source: int, position: int) -> None:
        self.kind = kind
        self.source = source
        self.position = position
        self.pieces: list[str] = []
        self.call = CallDelta(0, 0, "")
        self.held: list[Held] = []
        self.is_summary = False
        self.is_told = False
        self.is_done = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Outward:
    """Events of an upstream in, events for a client out."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._answers: dict[int, _Answer] = {}
        self._ended: dict[int, TurnDone] = {}
        self._usage: UsageReported | None = None
        self._is_started = False
        self.findings: list[Finding] = []

    def take(self, event: Event) -> list[Event]:
        """What the client is to hear of this event. Most events are more of an item that is open: they come first."""
        if isinstance(event, (TextDelta, ReasoningDelta)):
            answer = self._answers.get(event.choice)
            grown = answer.grown(event) if answer is not None else None
            if grown is not None:
                return [grown]
        match event:
            case Started():
                return self._start(event)
            case UsageReported():
                return self._used(event)
            case Failed():
                return [*self._start(Started()), Failed(error_in_stream(event.error, self._way.to))]
            case Other():
                return [event] if self._is_started else []
            case TurnDone() if self._way.source == "gemini_generate":
                self._ended[event.choice] = event  # with code execution it says so and then goes on
                return []
            case TextDelta() | ReasoningDelta() | CallDelta() | ItemDone() | TurnDone():
                return [*self._start(Started()), *self._answer(event)]
            case _:
                assert_never(event)

    def finish(self) -> list[Event]:
        """The upstream has said all: what was held back."""
        ended = [one for event in self._ended.values() for one in self._answer(event)]
        self._ended = {}
        return [*ended, *([self._usage] if self._usage is not None else [])]

    def _start(self, event: Started) -> list[Event]:
        if self._is_started:
            return []
        self._is_started = True
        prefix = _PREFIXES.get(self._way.to, "")
        name = "".join(one if one.isalnum() or one in "-_" else "-" for one in event.id or self._way.ids.salt)
        name = name if name.startswith(prefix) else prefix + name
        return [Started(name, event.model, self._way.created)]

    def _used(self, event: UsageReported) -> list[Event]:
        """A chat stream tells its usage last, and only to those who asked."""
        plain = UsageReported(replace(event.usage, raw=NO_RAW))
        if self._way.to != "openai_chat":
            return [plain]
        self._usage = plain if self._way.wants_usage else None
        return []

    def _answer(self, event: TextDelta | ReasoningDelta | CallDelta | ItemDone | TurnDone) -> list[Event]:
        if event.choice > 0 and self._way.to in _ONE_ANSWER:
            return []
        answer = self._answers.get(event.choice)
        if answer is None:
            answer = self._answers[event.choice] = _Answer(event.choice, self._way, self.findings)
        answer.take(event)
        return answer.given()


class _Answer:
    """One answer of a response."""

    def __init__(self, choice: int, way: Way, findings: list[Finding]) -> None:
        self._choice = choice
        self._way = way
        self._slot = _SLOTS.get(way.to, "none")
        self._spoke = SPOKES[way.to]
        self._findings = findings
        self._events: list[Event] = []
        self._open: _Open | None = None
        self._closed: set[int] = set()
        self._waiting: dict[int, list[CallDelta]] = {}
        self._seals_late = way.source_dialect.carrier in _SEALED_LATE
        self._early: dict[int, int] = {}
        self._late: list[Held] = []
        self._unsealed: list[Held] = []
        self._next = 0
        self._calls = 0
        self._shown = 0
        self._blocks = 0
        self._thoughts = 0

    def given(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def grown(self, event: TextDelta | ReasoningDelta) -> Event | None:
        """More of the item that is open, and was told of before; None if it is another one."""
        opened = self._open
        if opened is None or opened.source != event.position or opened.is_done or not opened.is_told:
            return None
        if opened.kind == "text" and isinstance(event, TextDelta):
            opened.pieces.append(event.text)
            return TextDelta(self._choice, opened.position, event.text)
        if opened.kind == "reasoning" and isinstance(event, ReasoningDelta):
            opened.pieces.append(event.text)
            return ReasoningDelta(self._choice, opened.position, event.text, opened.is_summary)
        return None

    def take(self, event: TextDelta | ReasoningDelta | CallDelta | ItemDone | TurnDone) -> None:
        match event:
            case TextDelta():
                self._text(event)
            case ReasoningDelta():
                self._reasoning(event)
            case CallDelta():
                self._call(event)
            case ItemDone():
                self._item(event)
            case TurnDone():
                self._end(event)
            case _:
                assert_never(event)

    def _enter(self, kind: Literal["text", "reasoning", "call"], source: int) -> _Open:
        self._leave()
        self._open = _Open(kind, source, self._next)
        self._next += 1
        self._shown += kind != "reasoning"
        return self._open

    def _is_open(self, source: int, kind: str) -> bool:
        opened = self._open
        return opened is not None and opened.source == source and opened.kind == kind and not opened.is_done

    def _give(self, position: int, item: Item) -> None:
        self._events.append(ItemDone(self._choice, position, item))

    # --- growing ------------------------------------------------------------------------------------------------------

    def _text(self, event: TextDelta) -> None:
        opened = self._open
        if opened is None or not self._is_open(event.position, "text"):
            opened = self._enter("text", event.position)
        opened.pieces.append(event.text)
        opened.is_told = True
        self._events.append(TextDelta(self._choice, opened.position, event.text))

    def _reasoning(self, event: ReasoningDelta) -> None:
        opened = self._open
        if opened is None or not self._is_open(event.position, "reasoning"):
            opened = self._enter("reasoning", event.position)
            opened.is_summary = event.is_summary
            self._thoughts += 1
        opened.pieces.append(event.text)
        self._tell(opened, event.text)

    def _tell(self, opened: _Open, text: str) -> None:
        """Thinking for the client. Where it has one field for all of it, an empty line stands between two pieces."""
        is_joined = self._slot == "none" and self._thoughts > 1 and not opened.is_told
        opened.is_told = True
        said = "\n\n" + text if is_joined else text
        self._events.append(ReasoningDelta(self._choice, opened.position, said, opened.is_summary))

    def _call(self, event: CallDelta) -> None:
        if event.is_custom and not self._spoke.custom_tools:
            return  # free text becomes an object once it is whole
        opened = self._open
        if opened is not None and self._is_open(event.position, "call"):
            opened.pieces.append(event.arguments)
            if event.arguments:
                self._events.append(CallDelta(self._choice, opened.position, event.arguments))
        elif event.position in self._closed:
            return  # white space after the last brace
        elif event.position in self._waiting or not event.name or self._is_call_growing():
            self._waiting.setdefault(event.position, []).append(event)
            self._release()
        else:
            self._open_call(event.position, event)

    def _is_call_growing(self) -> bool:
        """Whether a call is open whose arguments are not whole yet."""
        opened = self._open
        return opened is not None and opened.kind == "call" and not opened.is_done and not is_json(opened.text or "?")

    def _release(self) -> None:
        """A call whose name came late, if nothing keeps it waiting."""
        for source in list(self._waiting):
            deltas = self._waiting[source]
            name = next((delta.name for delta in deltas if delta.name), None)
            if name is None or self._is_call_growing():
                return
            del self._waiting[source]
            said = "".join(delta.arguments for delta in deltas)
            known = next((delta.id for delta in deltas if delta.id), None)
            self._open_call(source, CallDelta(self._choice, source, said, known, name, deltas[0].is_custom))

    def _open_call(self, source: int, event: CallDelta) -> None:
        opened = self._enter("call", source)
        name = self._way.ids.outward(event.id, f"{self._choice}.{self._calls}", event.name or "")
        self._calls += 1
        opened.call = CallDelta(self._choice, opened.position, event.arguments, name, event.name, event.is_custom)
        opened.pieces.append(event.arguments)
        opened.is_told = True
        self._events.append(opened.call)

    # --- whole items --------------------------------------------------------------------------------------------------

    def _item(self, event: ItemDone) -> None:
        item = event.item
        if isinstance(item, REASONING_KINDS):
            self._reasoning_done(event.position, item)
        elif event.position in self._closed:
            self._sealed_late(item)
        elif isinstance(item, Text):
            self._text_done(event.position, item.text)
        elif isinstance(item, ToolCall):
            self._call_done(event.position, item)
        elif isinstance(item, Unknown) and item.kind == "refusal":
            self._text_done(event.position, refusal_of(item))
        else:
            kind = item.kind if isinstance(item, Unknown) else type(item).__name__
            message = f"{self._way.to} has no place for what came as {kind or 'an unknown kind'}"
            self._findings.append(Finding("untranslatable", "", message, ""))

    def _text_done(self, source: int, text: str) -> None:
        opened = self._open
        if opened is not None and self._is_open(source, "text"):
            if rest := rest_of(text, opened.text):
                self._text(TextDelta(self._choice, source, rest))
            self._leave()
        elif text:
            opened = self._enter("text", source)
            opened.pieces.append(text)
            self._leave()

    def _reasoning_done(self, source: int, item: Reasoning) -> None:
        """A piece of reasoning is whole. It stays open until something else comes: its ciphertext may follow."""
        opened = self._open
        if opened is not None and self._is_open(source, "reasoning"):
            if rest := rest_of(readable(item), opened.text):
                self._reasoning(ReasoningDelta(self._choice, source, rest, opened.is_summary))
            opened.is_done = True
            opened.held.append(self._held(item))
        elif self._early:  # it went out before its seal came
            self._late.append(Held(self._early.get(source, self._shown), item))
        elif source in self._closed and readable(item):
            return
        elif opened is not None and opened.kind == "reasoning" and not readable(item):
            opened.is_done = True
            opened.held.append(self._held(item))
        else:
            opened = self._enter("reasoning", source)
            opened.is_summary = isinstance(item, ReasoningSummary)
            opened.pieces.append(readable(item))
            opened.held.append(self._held(item))
            opened.is_done = True
            if readable(item):
                self._thoughts += 1
                self._tell(opened, readable(item))

    def _call_done(self, source: int, item: ToolCall) -> None:
        if item.is_custom and not self._spoke.custom_tools:
            self._findings.append(
                Finding("untranslatable", "", "a call with free text stands as one with an object", "")
            )
            item = replace(item, arguments=msgspec.json.encode({"input": item.arguments}).decode(), is_custom=False)
        if source in self._waiting:
            del self._waiting[source]
        elif self._is_open(source, "call"):
            if self._slot != "call":
                self._sealed_late(item)
            if rest := rest_of(item.arguments, self._open.text if self._open is not None else ""):
                self._call(CallDelta(self._choice, source, rest))
            self._leave(item)
            self._release()
            return
        if item.seal is not None and self._slot in ("block", "element"):
            self._seal_alone(replace(item, raw=NO_RAW))
        self._leave()
        self._open_call(source, CallDelta(self._choice, source, item.arguments, item.id, item.name, item.is_custom))
        self._leave(item)
        self._release()

    def _sealed_late(self, item: Item) -> None:
        """A call whose seal came when it had gone out."""
        if isinstance(item, ToolCall) and item.seal is not None:
            self._late.append(self._held(replace(item, raw=NO_RAW)))

    def _seal_alone(self, item: ToolCall) -> None:
        """The seal of a call, for a client that has no slot on calls: in an envelope of its own before it."""
        opened = self._open
        if opened is not None and opened.kind == "reasoning":
            opened.is_done = True
            opened.held.append(self._held(item))
            return
        opened = self._enter("reasoning", -1)
        opened.is_done = True
        opened.held.append(self._held(item))

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _leave(self, item: ToolCall | None = None) -> None:
        """End the open item with what was said of it."""
        opened, self._open = self._open, None
        if opened is None:
            return
        self._closed.add(opened.source)
        match opened.kind:
            case "text":
                self._give(opened.position, Text(opened.text))
            case "reasoning":
                self._leave_reasoning(opened)
            case "call":
                self._leave_call(opened, item)

    def _leave_reasoning(self, opened: _Open) -> None:
        made_by = self._way.source_dialect.reasoning_format
        if not opened.held and self._seals_late:
            self._early[opened.source] = self._shown
        elif not opened.held:  # nobody ended it: what came is all there is
            kind = (
                ReasoningSummary(opened.text, made_by)
                if opened.is_summary
                else ReasoningText(opened.text, None, made_by)
            )
            opened.held.append(self._held(kind))
        for shaped in self._shaped(opened):
            self._give(opened.position, shaped)

    def _shaped(self, opened: _Open) -> list[Item]:
        """Reasoning as the client's format has it, with the envelope where that has a slot."""
        text, ours = opened.text, self._way.dialect.reasoning_format
        if self._slot == "call":
            self._unsealed += opened.held
            return [ReasoningText(text, None, ours)] if text else []
        token = self._token(opened.held) if self._slot != "none" else None
        match self._slot:
            case "block":
                return [ReasoningText(text, token or "", ours)] if text or token else []
            case "element":
                said: list[Item] = [self._element_text(opened, text)] if text else []
                sealed: list[Item] = [ReasoningEncrypted(token, ours, None, self._blocks)] if token else []
                self._blocks += 1
                return [*said, *sealed]
            case _:
                return [ReasoningText(text, None, ours)] if text else []

    def _element_text(self, opened: _Open, text: str) -> Item:
        ours = self._way.dialect.reasoning_format
        if opened.is_summary:
            return ReasoningSummary(text, ours, None, self._blocks)
        return ReasoningText(text, None, ours, None, self._blocks)

    def _held(self, item: Item) -> Held:
        return Held(self._shown, item)

    def _token(self, held: Sequence[Held]) -> str | None:
        sealing = self._way.sealing
        return sealing.token(held) if sealing is not None else None

    def _leave_call(self, opened: _Open, item: ToolCall | None) -> None:
        arguments = opened.text if item is None else item.arguments
        made = opened.call
        if self._spoke.is_object and not made.is_custom:
            arguments = as_object(arguments)
        seal: Seal | None = None
        if self._slot == "call":
            is_sealed = item is not None and item.seal is not None
            sealed = [self._held(replace(item, raw=NO_RAW))] if item is not None and is_sealed else []
            token = self._token([*self._unsealed, *sealed])
            seal = Seal(token, self._way.dialect.reasoning_format) if token else None
            self._unsealed = []
        call = ToolCall(made.name or "", arguments, made.id, None, made.is_custom, seal)
        self._give(opened.position, call)

    def _end(self, event: TurnDone) -> None:
        self._leave()
        for source in list(self._waiting):
            deltas = self._waiting.pop(source)
            said = "".join(delta.arguments for delta in deltas)
            name = next((delta.name for delta in deltas if delta.name), "")
            known = next((delta.id for delta in deltas if delta.id), None)
            self._open_call(source, CallDelta(self._choice, source, said, known, name, deltas[0].is_custom))
            self._leave()
        self._give_late()
        if self._unsealed:
            token = self._token(self._unsealed)
            self._unsealed = []
            if token:
                self._give(self._next, Text("", Seal(token, self._way.dialect.reasoning_format)))
                self._next += 1
        self._events.append(TurnDone(self._choice, self._finish(event.finish)))

    def _give_late(self) -> None:
        """Seals that came last, in an envelope at the end."""
        late, self._late = self._late, []
        if late and self._slot == "call":
            self._unsealed += late
        elif late and self._slot != "none":
            opened = self._enter("reasoning", -1)
            opened.held += late
            opened.is_done = True
            self._leave()

    def _finish(self, finish: Finish | None) -> Finish | None:
        """Why it ended, in words that the client's encoder makes its own."""
        if finish is None or (self._way.source in _SAME_WORDS and self._way.to in _SAME_WORDS):
            return finish
        if self._way.to == "openai_chat" and finish.reason == "error":
            return Finish("stop", "")
        return Finish(finish.reason, "")


def rest_of(whole: str, told: str) -> str:
    """What the deltas of an item left out."""
    return whole[len(told) :] if whole.startswith(told) else ""


def as_object(arguments: str) -> str:
    """Arguments for a wire that holds an object: those of a call cut short, or of another kind, stand inside one."""
    text = arguments.strip()
    if text.startswith("{") and is_json(text):
        return arguments
    return "{}" if text in ("", "null") else msgspec.json.encode({"arguments": arguments}).decode()
