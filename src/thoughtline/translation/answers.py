"""Writes one answer of an upstream for a client of another format: one item at a time, in order, without waiting.

An item ends when another one interrupts it; a parallel call that arrives meanwhile waits until the open call is
complete. Reasoning takes the shape that the client's format has, and its seals go into our envelope in the client's
opaque slot.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import is_json
from thoughtline.replay.findings import Finding
from thoughtline.translation.calls import place_in
from thoughtline.translation.conversation import as_object, refusal_of
from thoughtline.translation.envelopes import Held, Place, letters_of
from thoughtline.translation.response_context import (
    NoteBook,
    OpenItem,
    OpenKind,
    ResponseContext,
    Unsealed,
    find,
    gathered,
)
from thoughtline.translation.searches import search_call
from thoughtline.translation.tools import wrapped_text
from thoughtline.values.events import CallDelta, Event, ItemDone, Noted, ReasoningDelta, TextDelta, TurnDone
from thoughtline.values.items import (
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
    readable_text,
)
from thoughtline.values.notes import NO_NOTES, Notes

_SEALED_LATE = ("reasoning_details", "reasoning_text", "google_extra")
"""Carriers whose seals come at the end of a stream, long after the reasoning they belong to was sent."""


class AnswerTranslator:
    """Translates the events of one answer of a response."""

    def __init__(self, choice: int, context: ResponseContext, findings: list[Finding]) -> None:
        self._choice = choice
        self._context = context
        self._to = FORMATS[context.to]
        self._noted = FORMATS[context.source].notes
        self._slot = self._to.envelope_slot
        self._findings = findings
        self._book: NoteBook | None = None
        self._events: list[Event] = []
        self._open: OpenItem | None = None
        self._closed: set[int] = set()
        self._whole_only: set[int] = set()
        self._waiting: dict[int, list[CallDelta]] = {}
        self._seals_late = context.source_dialect.carrier in _SEALED_LATE
        self._early: dict[int, Place] = {}
        self._late: list[Held] = []
        self._sealed: list[Item] = []
        self._unsealed = Unsealed(context) if self._slot == "call" else None
        self._next = 0
        self._calls = 0
        self._letters = 0
        self._characters = 0
        self._blocks = 0
        self._thoughts = 0

    def grown(self, event: TextDelta | ReasoningDelta) -> Event | None:
        """The next delta of the open, announced item; None if the event belongs to another one."""
        opened = self._open
        if opened is None or opened.source != event.position or opened.is_done or not opened.is_announced:
            return None
        if opened.kind == "text" and isinstance(event, TextDelta):
            opened.pieces.append(event.text)
            return TextDelta(self._choice, opened.position, event.text)
        if opened.kind == "reasoning" and isinstance(event, ReasoningDelta) and not event.known:
            opened.pieces.append(event.text)
            return ReasoningDelta(self._choice, opened.position, event.text, opened.is_summary)
        return None

    def feed(self, event: TextDelta | ReasoningDelta | CallDelta | ItemDone | Noted | TurnDone) -> list[Event]:
        """The events for the client."""
        self._events = []
        match event:
            case TextDelta():
                self._text(event)
            case ReasoningDelta():
                self._reasoning(event)
            case CallDelta():
                self._call(event)
            case ItemDone():
                self._item(event)
            case Noted():
                self._notes().feed(event.notes)
            case TurnDone():
                self._end(event)
            case _:
                assert_never(event)
        return self._events

    def _enter(self, kind: OpenKind, source: int) -> OpenItem:
        self._leave()
        self._open = OpenItem(kind, source, self._next)
        self._next += 1
        return self._open

    def _is_open(self, source: int, kind: str) -> bool:
        opened = self._open
        return opened is not None and opened.source == source and opened.kind == kind and not opened.is_done

    def _notes(self) -> NoteBook:
        if self._book is None:
            self._book = NoteBook(self._context, self._findings)
        return self._book

    # --- growing ------------------------------------------------------------------------------------------------------

    def _text(self, event: TextDelta) -> None:
        opened = self._open
        if opened is not None and self._slot == "element" and opened.kind == "text" and opened.is_done:
            opened.source, opened.base, opened.is_done = event.position, len("".join(opened.pieces)), False
        elif opened is None or not self._is_open(event.position, "text"):
            opened = self._enter("text", event.position)
        opened.pieces.append(event.text)
        opened.is_announced = True
        self._events.append(TextDelta(self._choice, opened.position, event.text))

    def _reasoning(self, event: ReasoningDelta) -> None:
        if event.known:
            self._seal_early(event.known)
            return
        opened = self._open
        if opened is None or not self._is_open(event.position, "reasoning"):
            opened = self._enter("reasoning", event.position)
            opened.is_summary = event.is_summary
            self._thoughts += 1
        opened.pieces.append(event.text)
        self._report(opened, event.text)

    def _seal_early(self, known: tuple[Item, ...]) -> None:
        """Send an envelope for the reasoning known so far, before the item that follows it."""
        fresh = [item for item in known if item not in self._sealed]
        if self._slot == "call":
            fresh = [item for item in fresh if not isinstance(item, ToolCall)]  # its seal goes with it
        if self._slot == "none" or not fresh:
            return
        self._sealed += fresh
        for item in fresh:
            self._seal_alone(replace(item, raw=NO_RAW) if isinstance(item, ToolCall) else item)

    def _report(self, opened: OpenItem, text: str) -> None:
        """Send a piece of thinking. Clients with a single field for all of it get an empty line between two pieces."""
        is_joined = "one_text" in self._to.quirks and self._thoughts > 1 and not opened.is_announced
        opened.is_announced = True
        delta = "\n\n" + text if is_joined else text
        self._events.append(ReasoningDelta(self._choice, opened.position, delta, opened.is_summary))

    def _call(self, event: CallDelta) -> None:
        if self._is_whole_only(event):
            return
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

    def _is_whole_only(self, event: CallDelta) -> bool:
        """Whether the call can only be translated when it is complete: free text to an object, or an object to free
        text.
        """
        if self._context.tools.is_read_whole(event.name) or (event.is_custom and not self._to.has_openai_tools):
            self._whole_only.add(event.position)
            self._waiting.pop(event.position, None)
        return event.position in self._whole_only

    def _is_call_growing(self) -> bool:
        """Whether a call is open whose arguments are incomplete."""
        opened = self._open
        if opened is None or opened.kind != "call" or opened.is_done:
            return False
        return not is_json("".join(opened.pieces) or "?")

    def _release(self) -> None:
        """Send calls whose name came late, unless another call is still open."""
        for source in list(self._waiting):
            is_named = any(delta.name for delta in self._waiting[source])
            if not is_named or self._is_call_growing():
                return
            self._open_call(source, gathered(self._waiting.pop(source)))

    def _open_call(self, source: int, event: CallDelta) -> None:
        opened = self._enter("call", source)
        name = self._context.ids.for_client(event.id, place_in(self._choice, self._calls), event.name or "")
        self._calls += 1
        call = self._context.tools.called(ToolCall(event.name or "", event.arguments, is_custom=event.is_custom))
        opened.call = CallDelta(
            self._choice,
            opened.position,
            call.arguments,
            id=name,
            name=call.name,
            is_custom=call.is_custom,
            namespace=call.namespace,
        )
        opened.pieces.append(call.arguments)
        opened.is_announced = True
        self._events.append(opened.call)

    # --- whole items --------------------------------------------------------------------------------------------------

    def _item(self, event: ItemDone) -> None:
        item = event.item
        if isinstance(item, REASONING_KINDS):
            self._reasoning_done(event.position, item)
        elif event.position in self._closed:
            self._sealed_late(item)
        elif isinstance(item, Text):
            notes = self._noted.decode(item) if self._noted.mark.search(item.raw) else NO_NOTES
            self._text_done(event.position, item.text, notes)
        elif isinstance(item, ToolCall):
            self._call_done(event.position, item)
        elif isinstance(item, Unknown) and item.kind == "refusal":
            self._text_done(event.position, refusal_of(item))
        else:
            kind = item.kind if isinstance(item, Unknown) else type(item).__name__
            message = f"{self._context.to} has no place for what came as {kind or 'an unknown kind'}"
            find(self._findings, kind, message)

    def _text_done(self, source: int, text: str, notes: Notes = NO_NOTES) -> None:
        """A text is complete. In a Responses list the next text continues it: both are one message."""
        opened = self._open
        if opened is not None and self._is_open(source, "text"):
            sent = "".join(opened.pieces)[opened.base :]
            if text != sent and text.startswith(sent):  # the deltas left out a part
                self._text(TextDelta(self._choice, source, text[len(sent) :]))
        elif text and self._slot == "element":
            self._text(TextDelta(self._choice, source, text))
        elif text:
            self._enter("text", source).pieces.append(text)
        opened = self._open
        if opened is None or opened.kind != "text":
            return
        if notes is not NO_NOTES:
            self._notes()
            opened.notes.append(notes.moved(opened.base))
        opened.is_done = True
        self._closed.add(source)
        if self._slot != "element":
            self._leave()

    def _reasoning_done(self, source: int, item: Reasoning) -> None:
        """A piece of reasoning is complete. It stays open until another item begins: its ciphertext may follow."""
        if item in self._sealed:
            return
        text, opened = readable_text(item), self._open
        has_begun = bool(self._letters or self._calls) or (opened is not None and opened.kind != "reasoning")
        is_late = self._seals_late and self._slot != "call" and has_begun
        if opened is not None and self._is_open(source, "reasoning"):
            sent = "".join(opened.pieces)
            if text != sent and text.startswith(sent):
                self._reasoning(ReasoningDelta(self._choice, source, text[len(sent) :], opened.is_summary))
            opened.is_done = True
            opened.held.append(self._held(item))
        elif self._early or self._sealed or is_late:  # it was sent before its seal came
            self._late.append(Held(self._early.get(source, self._place), item))
        elif source in self._closed and text:
            return
        elif opened is not None and opened.kind == "reasoning" and not text:
            opened.is_done = True
            opened.held.append(self._held(item))
        else:
            opened = self._enter("reasoning", source)
            opened.is_summary = isinstance(item, ReasoningSummary)
            opened.pieces.append(text)
            opened.held.append(self._held(item))
            opened.is_done = True
            if text:
                self._thoughts += 1
                self._report(opened, text)

    def _call_done(self, source: int, item: ToolCall) -> None:
        if item.is_custom and not self._to.has_openai_tools:
            find(self._findings, "calls", "a call with free text stands as one with an object")
            item = replace(item, arguments=wrapped_text(item.arguments), is_custom=False)
        if source in self._waiting:
            del self._waiting[source]
        elif self._context.tools.is_search(item.name):
            self._search_done(source, item)
            return
        elif self._is_open(source, "call"):
            if self._slot != "call":
                self._sealed_late(item)
            sent = "".join(self._open.pieces) if self._open is not None else ""
            if item.arguments != sent and item.arguments.startswith(sent):
                self._call(CallDelta(self._choice, source, item.arguments[len(sent) :]))
            self._leave(item)
            self._release()
            return
        if item.seal is not None and self._slot in ("block", "element"):
            self._seal_alone(replace(item, raw=NO_RAW))
        self._leave()
        call = CallDelta(self._choice, source, item.arguments, id=item.id, name=item.name, is_custom=item.is_custom)
        self._open_call(source, call)
        self._leave(item)
        self._release()

    def _search_done(self, source: int, item: ToolCall) -> None:
        """Send a tool search as the item that the client's format has for it."""
        if item.seal is not None:
            self._seal_alone(replace(item, raw=NO_RAW))
        name = self._context.ids.for_client(item.id, place_in(self._choice, self._calls), item.name)
        self._enter("call", source)
        self._open, self._calls = None, self._calls + 1
        self._closed.add(source)
        self._events.append(ItemDone(self._choice, self._next - 1, search_call(name, item.arguments)))

    def _sealed_late(self, item: Item) -> None:
        """Keep the seal of a call that was already sent."""
        if isinstance(item, ToolCall) and item.seal is not None and item not in self._sealed:
            self._late.append(self._held(replace(item, raw=NO_RAW)))

    def _seal_alone(self, item: Item) -> None:
        """Send a seal in an envelope of its own, before the item it belongs to: for clients without a slot on that
        item.
        """
        opened = self._open
        if opened is None or opened.kind != "reasoning":
            opened = self._enter("reasoning", -1)
        opened.is_done = True
        opened.held.append(self._held(item))

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _leave(self, item: ToolCall | None = None) -> None:
        """Close the open item and send it as complete."""
        opened, self._open = self._open, None
        if opened is None:
            return
        self._closed.add(opened.source)
        match opened.kind:
            case "text":
                text = "".join(opened.pieces)
                if self._unsealed is not None:
                    self._unsealed.add_words(text, self._place)
                words = Text(text) if self._book is None else self._book.written(text, self._characters, opened.notes)
                self._letters += letters_of(text)
                self._characters += len(text)
                self._events.append(ItemDone(self._choice, opened.position, words))
            case "reasoning":
                self._leave_reasoning(opened)
            case "call":
                self._leave_call(opened, item)

    def _leave_reasoning(self, opened: OpenItem) -> None:
        made_by = self._context.source_dialect.reasoning_format
        if not opened.held and self._seals_late:
            self._early[opened.source] = self._place
        elif not opened.held:  # the upstream never closed it: use what arrived
            text = "".join(opened.pieces)
            whole = ReasoningSummary(text, made_by) if opened.is_summary else ReasoningText(text, None, made_by)
            opened.held.append(self._held(whole))
        for shaped in self._shaped(opened):
            self._events.append(ItemDone(self._choice, opened.position, shaped))

    def _shaped(self, opened: OpenItem) -> list[Item]:
        """Reasoning in the client's format, with the envelope if the format has a slot for one."""
        text, ours = "".join(opened.pieces), self._context.dialect.reasoning_format
        if self._unsealed is not None:
            self._unsealed.add(opened.held)
            return [ReasoningText(text, None, ours)] if text else []
        sealing = self._context.sealing if self._slot != "none" else None
        token = sealing.token(opened.held) if sealing is not None else None
        match self._slot:
            case "block":
                return [ReasoningText(text, token or "", ours)] if text or token else []
            case "element":
                at, self._blocks = self._blocks, self._blocks + 1
                is_summary = opened.is_summary
                plain = (
                    ReasoningSummary(text, ours, None, at) if is_summary else ReasoningText(text, None, ours, None, at)
                )
                sealed: list[Item] = [ReasoningEncrypted(token, ours, None, at)] if token else []
                return [plain, *sealed] if text else sealed
            case _:
                return [ReasoningText(text, None, ours)] if text else []

    @property
    def _place(self) -> Place:
        return self._letters, self._calls

    def _held(self, item: Item) -> Held:
        return Held((self._letters, self._calls), item)

    def _leave_call(self, opened: OpenItem, item: ToolCall | None) -> None:
        made = opened.call
        arguments = "".join(opened.pieces) if item is None or made.is_custom else item.arguments
        if self._to.has_object_arguments and not made.is_custom:
            arguments = as_object(arguments)
        elif not arguments.strip() and not made.is_custom:
            arguments = "{}"
            self._events.append(CallDelta(self._choice, opened.position, arguments))
        seal: Seal | None = None
        if self._unsealed is not None:
            if item is not None and item.seal is not None:
                self._unsealed.add([self._held(replace(item, raw=NO_RAW))])
            seal = self._unsealed.sealed()
        call = ToolCall(made.name or "", arguments, made.id, is_custom=made.is_custom, seal=seal)
        self._events.append(ItemDone(self._choice, opened.position, replace(call, namespace=made.namespace)))

    def _end(self, event: TurnDone) -> None:
        self._leave()
        for source in list(self._waiting):
            self._open_call(source, gathered(self._waiting.pop(source)))
            self._leave()
        if self._late:
            self._give_late()
        if self._unsealed is not None and (seal := self._unsealed.sealed()):
            self._events.append(ItemDone(self._choice, self._next, Text("", seal)))
            self._next += 1
        if self._book is not None and (notes := self._book.beside(self._characters)):
            self._events.append(Noted(self._choice, notes))
        self._events.append(TurnDone(self._choice, event.finish))

    def _give_late(self) -> None:
        """Send late seals in an envelope at the end. Never after text: some clients take the last item for the answer,
        and the seals are in the record of the turn.
        """
        late, self._late = self._late, []
        if self._unsealed is not None:
            self._unsealed.add(late)
        elif self._slot != "none" and not self._letters:
            opened = self._enter("reasoning", -1)
            opened.held += late
            opened.is_done = True
            self._leave()
