"""The notes of one answer on their way to a client: on its words or beside the answer, wherever its format has them.

What it has no place for is found once for each kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from thoughtline.formats import FORMATS
from thoughtline.replay.findings import Finding
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.items import Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes, together

_LONGEST = 64
"""No kind of item has a longer name; one that has is a provider's mistake, and goes into no log."""


def find(findings: list[Finding], what: str, message: str) -> None:
    """Note what an answer lost on its way: once, however often it was there."""
    finding = Finding("untranslatable", f"answer/{what[:_LONGEST]}", message, "")
    if finding not in findings:
        findings.append(finding)


class NoteBook:
    """What was heard about the words of an answer, and how much of it was passed on."""

    def __init__(self, context: ResponseContext, findings: list[Finding]) -> None:
        self._to = context.to
        self._place = FORMATS[context.to].notes
        self._findings = findings
        self._heard = NO_NOTES
        self._own: list[Notes] = []
        self._marked: set[Citation] = set()
        self._said = 0

    def hear(self, notes: Notes) -> None:
        """What stands beside the upstream's answer, by places in all its words."""
        self._heard = notes

    def written(self, text: str, own: Sequence[Notes]) -> Text:
        """Words that are whole, with the notes on them if that is where the client's format has them."""
        start, self._said = self._said, self._said + len(text)
        notes = together(own)
        self._own.append(notes.moved(start))
        if self._place.encode is None:
            return Text(text)
        near = [one for one in self._heard.citations if one.is_within(start, self._said)]
        self._marked.update(near)
        citations = self._carried((*notes.citations, *(one.moved(-start) for one in near)), len(text))
        return self._place.encode(text, Notes(citations)) if citations else Text(text)

    def beside(self) -> Notes:
        """What stands beside the client's answer, all its words being told."""
        notes = together((self._heard, *self._own))
        for kind in notes.others:
            self._lose(kind)
        if self._place.encode is None:
            return Notes(self._carried(notes.citations, self._said))
        if any(one not in self._marked for one in self._heard.citations):
            self._lose("citations whose words are not told, or had gone out")
        return NO_NOTES

    def _carried(self, citations: tuple[Citation, ...], size: int) -> tuple[Citation, ...]:
        """The citations that the client's format can tell of words of this size."""
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
