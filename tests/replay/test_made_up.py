"""The two kinds of errors, counted over generated conversations (`made_up_conversations.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from tests.replay.made_up_conversations import MAKERS, Case, Counts, Ids, Mutation, tally

LOSES_NOTHING = ("nothing", "text trimmed", "system messages added")
"""Habits that leave every turn its history."""

TWINS = 0.05
"""The share of turns with an indistinguishable twin: with so few words there are some."""

ALL_BUT_FEW = {"ids renamed": 0.98, "results cleared": 0.95, "calls merged": 0.95}
"""The minimum share that is restored with random ids: all but what may belong to another turn, too."""

CASES = [
    Case(maker, ids, with_sessions, mutation)
    for maker in MAKERS
    for ids in get_args(Ids)
    for with_sessions in (True, False)
    for mutation in get_args(Mutation)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_wrong_and_lost(case: Case, record_property: Callable[[str, object], None]) -> None:
    """Never another turn's reasoning; and everything distinguishable is restored while the history is unchanged."""
    counts = Counts()
    for seed in range(2):
        counts = counts.plus(tally(case, seed, conversations=45))
    record_property("counts", str(counts))
    assert counts.wrong == 0
    if case.mutation in LOSES_NOTHING:
        assert counts.lost <= TWINS * (counts.lost + counts.restored)
    if case.maker == "kimi":
        assert counts.restored > 0
        if case.ids != "counted":
            share = counts.restored / (counts.restored + counts.lost)
            assert share >= ALL_BUT_FEW.get(case.mutation, 0)
