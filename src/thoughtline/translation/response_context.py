"""The context of an answer's translation: both sides, the reasoning to seal, the open item, notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.replay.findings import Finding
from thoughtline.translation.calls import CallIds
from thoughtline.translation.envelopes import Held, Place, Sealing
from thoughtline.translation.tools import NO_NAMES, ToolNames
from thoughtline.values.events import CallDelta
from thoughtline.values.items import Seal, Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes, together
from thoughtline.values.turns import FormatName

OpenKind: TypeAlias = Literal["text", "reasoning", "call"]

_LONGEST = 64
"""No kind of item has a longer name; a longer one is a provider's mistake and is not logged."""


class ResponseContext(NamedTuple):
    """Both sides of a translation: formats and dialects, ids, names of tools, and earlier parts of the conversation.

    `name` is the id of the answer if the client may refer to it later; else the answer keeps the upstream's id.
    """

    source: FormatName
    source_dialect: Dialect
    to: FormatName
    dialect: Dialect
    ids: CallIds
    sealing: Sealing | None = None
    wants_usage: bool = True
    created: int = 0
    name: str = ""
    tools: ToolNames = NO_NAMES


class Unsealed:
    """What waits for the next slot, for a client whose slots come after the text: Gemini's, on a call or at the end.

    It includes texts with white space around them. Some clients trim the texts they send back, and a model may have
    bound its next thought to the exact text. They are only needed together with the reasoning of their turn.
    """

    def __init__(self, context: ResponseContext) -> None:
        self._context = context
        self._held: list[Held] = []
        self._has_reasoning = False

    def add(self, held: Sequence[Held]) -> None:
        self._held += held
        self._has_reasoning = self._has_reasoning or bool(held)

    def add_words(self, text: str, place: Place) -> None:
        if text != text.strip() != "":
            self._held.append(Held(place, Text(text)))

    def sealed(self) -> Seal | None:
        """All of it in one envelope."""
        sealing = self._context.sealing
        if sealing is None or not self._has_reasoning:
            return None
        token, self._held = sealing.token(self._held), []
        return Seal(token, self._context.dialect.reasoning_format) if token else None


class OpenItem(Struct):
    """The item that is being sent to the client, and what was sent of it so far.

    `source` is its position at the upstream, `position` that at the client.
    """

    kind: OpenKind
    source: int
    position: int
    pieces: list[str] = []
    call: CallDelta = CallDelta(0, 0, "")
    held: list[Held] = []
    notes: list[Notes] = []
    base: int = 0
    is_summary: bool = False
    is_announced: bool = False
    is_done: bool = False


def gathered(deltas: list[CallDelta]) -> CallDelta:
    """A call that waited, as one delta."""
    arguments = "".join(delta.arguments for delta in deltas)
    known = next((delta.id for delta in deltas if delta.id), None)
    name = next((delta.name for delta in deltas if delta.name), "")
    return replace(deltas[0], arguments=arguments, id=known, name=name)


def find(findings: list[Finding], what: str, message: str) -> None:
    """Report a loss in an answer once, however often it occurs."""
    finding = Finding("untranslatable", f"answer/{what[:_LONGEST]}", message, "")
    if finding not in findings:
        findings.append(finding)


class NoteBook:
    """The notes on an answer's texts, and which of them were sent: on a text or with the whole answer, depending on the
    client's format. Each kind that the format can't hold is reported once.
    """

    def __init__(self, context: ResponseContext, findings: list[Finding]) -> None:
        self._to = context.to
        self._place = FORMATS[context.to].notes
        self._findings = findings
        self._upstream_notes = NO_NOTES
        self._own: list[Notes] = []
        self._marked: set[Citation] = set()

    def feed(self, notes: Notes) -> None:
        """Notes of the upstream on the whole answer, with positions in its text."""
        self._upstream_notes = notes

    def written(self, text: str, start: int, own: Sequence[Notes]) -> Text:
        """A complete text that begins at `start`, with its notes if the client's format puts them on texts."""
        notes = together(own)
        self._own.append(notes.moved(start))
        if self._place.encode is None:
            return Text(text)
        near = [one for one in self._upstream_notes.citations if one.is_within(start, start + len(text))]
        self._marked.update(near)
        citations = self._carried((*notes.citations, *(one.moved(-start) for one in near)), len(text))
        return self._place.encode(text, Notes(citations)) if citations else Text(text)

    def beside(self, size: int) -> Notes:
        """Notes on the whole answer, once its text (`size` characters long) is written."""
        notes = together((self._upstream_notes, *self._own))
        for kind in notes.others:
            self._lose(kind)
        if self._place.encode is None:
            return Notes(self._carried(notes.citations, size))
        if any(one not in self._marked for one in self._upstream_notes.citations):
            self._lose("citations whose words are not told, or had gone out")
        return NO_NOTES

    def _carried(self, citations: tuple[Citation, ...], size: int) -> tuple[Citation, ...]:
        """The citations that the client's format can express for a text of this size."""
        if not citations:
            return ()
        if not self._place.has_citations:
            self._lose("citations: the words are kept, where they came from is not")
            return ()
        if self._place.places == "needed" and not all(one.is_within(0, size) for one in citations):
            self._lose("citations whose words are not told, or had gone out")
            citations = tuple(one for one in citations if one.is_within(0, size))
        if self._place.places == "none" and any((one.start, one.end) != (0, size) for one in citations):
            self._lose("the place of a citation inside a block")
        if not self._place.has_quotes and any(one.quote for one in citations):
            self._lose("what a cited page says")
        return citations

    def _lose(self, what: str) -> None:
        find(self._findings, "notes", f"{self._to} has no place for {what}")
