"""What a line did for a call, in the words of the gateway's `explain`."""

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
    "ok",  # answered, and nothing had to be done for it
    "restored",  # answered, and turns were restored, filled or stripped before it was sent
    "blank",  # answered, and a turn was sent with the least that is accepted: its reasoning was not found
    "healed",  # refused for its reasoning, corrected, answered
    "refused",  # the provider's 4xx went to the caller
    "failed",  # the provider's 5xx, or no answer at all
    "gone",  # the caller left before the end
]

_MOST_ALIKE = 3
"""Turns in a row that are printed one by one, if the same was done about all for the same reason."""


class TurnReport(Struct, frozen=True, gc=False):
    """What was done about one turn of the model, and why.

    `place` is a JSON pointer into the request, `why` the evidence that its record was found by or the reason that none
    was used; `words` says both to people.
    """

    place: str
    treatment: Treatment
    why: Reason
    words: str


class ExchangeReport(Struct, frozen=True, gc=False, kw_only=True):
    """What was done for one call. `print` shows it as `thoughtline explain` does.

    `outcome` is what became of it in a word, `summary` in a sentence, `counts` what was done in numbers, `saved` how
    many turns of its answer are remembered. `status` is None where there was no answer.
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
        """Whether something was put back, taken out or corrected."""
        done = self.counts
        mended = (done.restored, done.inherited, done.blank, done.stripped, done.healed, done.checkpoints)
        return any(mended)

    @property
    def turns(self) -> tuple[TurnReport, ...]:
        """Turns that have no reasoning and need none are left out."""
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
    """One for each turn; of many alike in a row one for all."""
    lines: list[str] = []
    for words, alike in groupby(turns, key=lambda turn: turn.words):
        run = list(alike)
        if len(run) > _MOST_ALIKE:
            lines.append(f"  {run[0].place} … {run[-1].place} ({len(run)} turns)  {words}")
        else:
            lines += [f"  {turn.place}  {words}" for turn in run]
    return lines


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def outcome_of(counts: Outcome, status: int | None, *, is_over: bool, is_cut: bool) -> ExchangeOutcome:
    """In one word, as the gateway has it."""
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
