"""The printed report on a call has the same words as the gateway's."""

from __future__ import annotations

from typing import Any

import pytest

from thoughtline.library.explaining import ExchangeOutcome, ExchangeReport, moment, outcome_of
from thoughtline.replay.refusals import Evidence, Refusal
from thoughtline.values.destination import Destination
from thoughtline.values.outcome import NoteChain, Outcome, TurnNote

DESTINATION = Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_chat")
MISSING = Refusal("missing", "deepseek", "restore", "reasoning_content", "", Evidence(400, "", ""))


def report(outcome: ExchangeOutcome, *notes: TurnNote, status: int | None = 200, **counts: int) -> ExchangeReport:
    counted: dict[str, Any] = dict(counts)
    told = Outcome(**counted, findings=(("missing", "/messages/1"),) if "missing" in counts else ())
    return ExchangeReport(
        at=moment(0.0),
        destination=DESTINATION,
        session=None,
        status=status,
        outcome=outcome,
        counts=told,
        saved=0,
        refusal=MISSING if outcome in ("healed", "refused") else None,
        notes=NoteChain(None, notes),
    )


@pytest.mark.parametrize(
    ("counts", "status", "is_over", "is_cut", "word"),
    [
        (Outcome(), None, False, False, "pending"),
        (Outcome(), None, True, True, "failed"),
        (Outcome(), 503, True, False, "failed"),
        (Outcome(restored=1), 400, True, False, "refused"),
        (Outcome(restored=1), 200, True, True, "gone"),
        (Outcome(restored=1, healed=1), 200, True, False, "healed"),
        (Outcome(restored=1, blank=1), 200, True, False, "blank"),
        (Outcome(stripped=1), 200, True, False, "restored"),
        (Outcome(inherited=1), 200, True, False, "restored"),
        (Outcome(), 200, True, False, "ok"),
    ],
)
def test_the_outcome(counts: Outcome, status: int | None, is_over: bool, is_cut: bool, word: str) -> None:
    """In one word, the most important one."""
    assert outcome_of(counts, status, is_over=is_over, is_cut=is_cut) == word


def test_summaries() -> None:
    """The counts of what was done; for a refusal its meaning."""
    assert report("ok").summary == "passed on"
    assert report("pending").summary == "under way"
    assert report("blank", blank=2, restored=1).summary == "1 restored, 2 blank"
    assert report("failed", status=None).summary == "deepseek gave no answer"
    meaning = "a turn lacks the reasoning that it must carry; remedy: put back what was lost"
    assert report("refused", status=400, missing=1).summary == f"deepseek answered 400 ({meaning}); 1 missing"
    healed = report("healed", healed=1).summary
    assert healed == f"deepseek refused it first ({meaning}); corrected, sent again and answered"


def test_what_counts_as_mended() -> None:
    """Restored, removed or corrected turns; not one that still lacks its reasoning."""
    for name in ("restored", "inherited", "blank", "stripped", "healed", "checkpoints"):
        assert report("ok", **{name: 1}).is_mended
    assert not report("ok", missing=1).is_mended


def test_turns_are_printed_in_order_and_alike_ones_together() -> None:
    """A turn is named by its place in the request."""
    notes = [TurnNote(at, "restored", "lineage") for at in (9, 1, 3, 5, 7)]
    printed = str(report("restored", *notes, TurnNote(11, "missing", "ambiguous"), restored=5, missing=1))
    lines = printed.splitlines()
    assert lines[0].endswith("200 restored deepseek/deepseek-v4-pro  5 restored, 1 missing")
    assert lines[1:] == [
        "  /messages/1 … /messages/9 (5 turns)  restored: same conversation so far, same system prompt",
        "  /messages/11  missing: several records match and differ, so none was used",
        "  found     missing at /messages/1",
    ]
    assert str(report("failed", status=None)).partition("  ")[0].endswith("failed deepseek/deepseek-v4-pro")
