"""Whose reasoning comes back, over made-up conversations: wrong, lost and restored turns of each kind.

    python -m bench.made_up [CONVERSATIONS]

Every conversation is held once and sent again once, as a client of that kind sends it; 100,000 by default. The exit
status is 1 if the reasoning of another turn came back anywhere. `tests/replay/made_up_conversations.py` says what is
made up.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from typing import get_args

from tests.replay.made_up_conversations import MAKERS, Case, Counts, Ids, Mutation, tally

TOGETHER = 60
"""Conversations that share a store: so many of so few words have twins."""


def run(conversations: int) -> Counts:
    cases = [
        Case(maker, ids, with_sessions, mutation)
        for maker, ids, with_sessions, mutation in product(MAKERS, get_args(Ids), (False, True), get_args(Mutation))
    ]
    rounds = max(1, round(conversations / TOGETHER / len(cases)))
    total = Counts()
    print(f"{'answers':>13} {'ids':>10} {'sessions':>9}  {'client':<24} {'wrong':>6} {'lost':>7} {'restored':>9}")
    for case in cases:
        counts = Counts()
        for seed in range(rounds):
            counts = counts.plus(tally(case, seed, TOGETHER))
        total = total.plus(counts)
        told = "told" if case.with_sessions else "untold"
        print(f"{case.maker:>13} {case.ids:>10} {told:>9}  {case.mutation:<24} ", end="")
        print(f"{counts.wrong:>6} {counts.lost:>7} {counts.restored:>9}", flush=True)
    print(f"{rounds * TOGETHER * len(cases)} conversations: ", end="")
    print(f"{total.wrong} wrong, {total.lost} lost, {total.restored} restored")
    return total


if __name__ == "__main__":
    started = time.monotonic()
    found = run(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if found.wrong else 0)
