"""Timing side by side: the contenders take turns, the best round of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]


def best_seconds(contenders: Mapping[str, Work], rounds: int = 7, at_least_seconds: float = 0.15) -> dict[str, float]:
    """Seconds of one call of each. Interleaved, so that a busy moment of the machine hits all of them."""
    repeats = {name: _repeats(work, at_least_seconds) for name, work in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, work in contenders.items():
            best[name] = min(best[name], _time(work, repeats[name]) / repeats[name])
    return best


def _repeats(work: Work, at_least_seconds: float) -> int:
    once = max(_time(work, 1), 1e-7)
    return max(1, int(at_least_seconds / once))


def _time(work: Work, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return time.perf_counter() - start
