"""Reports what a line did for a call, in the words of the gateway's `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal

from msgspec import Struct

from thoughtline.formats import FORMATS
from thoughtline.replay.refusal_words import meaning_of
from thoughtline.replay.refusals import Refusal
from thoughtline.values.destination import Destination
from thoughtline.values.outcome import NoteChain, Outcome, Reason, Treatment
from thoughtline.values.outcome_words import count_words, words_of

ExchangeOutcome = Literal[
    "pending",  # it is not over
    "ok",  # answered, and nothing had to be done
    "restored",  # answered; turns were restored, filled or stripped before it was sent
    "blank",  # answered; a turn was sent with the smallest accepted filler because its reasoning was not found
    "healed",  # refused because of its reasoning, then corrected and answered
    "refused",  # the provider's 4xx went to the caller
    "failed",  # the provider's 5xx, or no answer at all
    "gone",  # the caller left before the end
]

_MAX_ALIKE = 3
"""Consecutive turns that are printed one by one if the same was done for all, for the same reason."""


class TurnReport(Struct, frozen=True, gc=False):
    """What was done for one turn of the model, and why.

    `place` is a JSON pointer into the request, `why` the evidence for its record or the reason that none was used;
    `words` says both for people.
    """

    place: str
    treatment: Treatment
    why: Reason
    words: str


class ExchangeReport(Struct, frozen=True, gc=False, kw_only=True):
    """What was done for one call. `print` shows it like `thoughtline explain` does.

    `outcome` is its result in one word, `summary` in a sentence, `counts` are numbers of what was done, `saved` is how
    many turns of its answer were stored. `status` is None if there was no answer.
    """

    at: datetime
    destination: Destination
    session: str | None
    status: int | None
    outcome: ExchangeOutcome
    counts: Outcome
    saved: int
    refusal: Refusal | None = None
    notes: NoteChain | None = None

    @property
    def summary(self) -> str:
        done, about = count_words(self.counts), self.refusal
        match self.outcome:
            case "healed":
                meaning = meaning_of(about) if about is not None else "refused"
                return f"{self.destination.provider} refused it first ({meaning}); corrected, sent again and answered"
            case "refused" | "failed":
                ended = f"answered {self.status}" if self.status is not None else "gave no answer"
                meaning = f" ({meaning_of(about)})" if about is not None else ""
                return f"{self.destination.provider} {ended}{meaning}" + (f"; {done}" if done else "")
            case _:
                return done or ("under way" if self.outcome == "pending" else "passed on")

    @property
    def is_mended(self) -> bool:
        """Whether something was restored, removed or corrected."""
        done = self.counts
        mended = (done.restored, done.inherited, done.blank, done.stripped, done.healed, done.checkpoints)
        return any(mended)

    @property
    def turns(self) -> tuple[TurnReport, ...]:
        """What was done for each turn. Turns without reasoning that need none are omitted."""
        place = FORMATS[self.destination.format].list_place
        notes = sorted(self.notes or (), key=lambda note: note.at)
        return tuple(
            [
                TurnReport(f"{place}/{note.at}", note.treatment, note.why, words_of(note.treatment, note.why))
                for note in notes
            ]
        )

    def __str__(self) -> str:
        to, status = self.destination, "" if self.status is None else f"{self.status} "
        head = f"{self.at.astimezone():%H:%M:%S} {status}{self.outcome} {to.provider}/{to.model}  {self.summary}"
        found = [f"  found     {rule} at {place}" for rule, place in self.counts.findings]
        return "\n".join([head, *_turn_lines(self.turns), *found])


def _turn_lines(turns: Sequence[TurnReport]) -> list[str]:
    """Return a line for each turn, or one for a long run of equal turns."""
    lines: list[str] = []
    for words, alike in groupby(turns, key=lambda turn: turn.words):
        run = list(alike)
        if len(run) > _MAX_ALIKE:
            lines.append(f"  {run[0].place} … {run[-1].place} ({len(run)} turns)  {words}")
        else:
            lines += [f"  {turn.place}  {words}" for turn in run]
    return lines


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def outcome_of(counts: Outcome, status: int | None, *, is_over: bool, is_cut: bool) -> ExchangeOutcome:
    """Return the outcome in one word, as in the gateway."""
    if not is_over:
        return "pending"
    if status is None or status >= 500:
        return "failed"
    if status >= 400:
        return "refused"
    if is_cut:
        return "gone"
    if counts.healed:
        return "healed"
    if counts.blank:
        return "blank"
    return "restored" if counts.restored or counts.inherited or counts.stripped else "ok"
