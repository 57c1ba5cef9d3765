"""Counts that processes on a shared store keep together: each counts for itself, and learns of the others' counts
later.

So no request waits for a count. A limit can be exceeded by what the others admit within that moment, and never by more
than one limit per process. A process that can't reach the others takes its share alone: the limit divided by the number
of processes.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from thoughtline.gateway.limits import WINDOW_SECONDS, OwnCounts

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
"""A count from another process: a negative one, which would raise a limit, is invalid."""


class RequestsFact(Struct, frozen=True, array_like=True, tag="asked"):
    """Requests admitted with a key, and how many seconds ago."""

    key: str
    seconds: Annotated[float, Meta(ge=0, le=WINDOW_SECONDS)]
    count: Count


class HeldFact(Struct, frozen=True, array_like=True, tag="held"):
    """Streams of a key that are open now."""

    key: str
    streams: Count


CountFact: TypeAlias = RequestsFact | HeldFact


class Taken:
    """Requests of the last minute, with their times."""

    def __init__(self) -> None:
        self.entries: deque[tuple[float, int]] = deque()
        self._total = 0

    def add(self, at: float, count: int) -> None:
        self.entries.append((at, count))
        self._total += count

    def count(self, now: float) -> int:
        while self.entries and self.entries[0][0] <= now - WINDOW_SECONDS:
            self._total -= self.entries.popleft()[1]
        return self._total


class FleetCounts:
    """One process's view of all counts. `on_change` is called when there is something to report."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._own: dict[str, Taken] = {}
        self._streams = OwnCounts()
        self._others: dict[str, dict[str, Taken]] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._sharers = 1
        self._unsent: Counter[str] = Counter()
        self._changed: set[str] = set()

    def take(self, key: str, per_minute: int, now: float) -> float:
        own = self._own.setdefault(key, Taken())
        taken = [own, *self._others.get(key, {}).values()]
        excess = sum([one.count(now) for one in taken]) + 1 - self._share(per_minute)
        if excess > 0:
            return _seconds_until(taken, excess, now)
        own.add(now, 1)
        self._unsent[key] += 1
        self.on_change()
        return 0.0

    def begin(self, key: str, most: int) -> bool:
        elsewhere = sum(self._held.get(key, {}).values())
        if not self._streams.begin(key, self._share(most) - elsewhere):
            return False
        self._note_streams(key)
        return True

    def end(self, key: str) -> None:
        self._streams.end(key)
        self._note_streams(key)

    def close(self) -> None:
        pass

    def news(self) -> list[CountFact]:
        """Return what the others don't know yet."""
        requests = [RequestsFact(key, 0.0, count) for key, count in self._unsent.items()]
        held = [HeldFact(key, self._streams.held(key)) for key in self._changed]
        self._unsent, self._changed = Counter(), set()
        return [*requests, *held]

    def everything(self, now: float) -> list[CountFact]:
        """Return everything about this process."""
        self.news()
        counts: Counter[tuple[str, int]] = Counter()
        for key, taken in self._own.items():
            taken.count(now)
            for at, count in taken.entries:
                counts[key, int(now - at)] += count
        own = [RequestsFact(key, seconds, count) for (key, seconds), count in sorted(counts.items(), key=_oldest_first)]
        return [*own, *(HeldFact(key, streams) for key, streams in self._streams.held_by_key.items())]

    def receive(self, worker: str, facts: Iterable[CountFact], now: float) -> None:
        for fact in facts:
            if isinstance(fact, RequestsFact):
                workers = self._others.setdefault(fact.key, {})
                workers.setdefault(worker, Taken()).add(now - fact.seconds, fact.count)
            else:
                self._held.setdefault(fact.key, {})[worker] = fact.streams

    def forget(self, worker: str) -> None:
        """Forget a worker that will report everything again."""
        for workers in self._others.values():
            workers.pop(worker, None)
        self.lose(worker)

    def lose(self, worker: str) -> None:
        """Remove a worker that is gone: with its streams, but not the requests that it admitted."""
        for workers in self._held.values():
            workers.pop(worker, None)

    def take_share(self, processes: int) -> None:
        """The others' counts are unknown from now on. `processes` is how many there were, including this one."""
        self._others, self._held = {}, {}
        self._sharers = processes

    def rejoin(self) -> None:
        self._sharers = 1

    def clean(self, now: float) -> None:
        """Drop entries older than a minute."""
        for key, workers in list(self._others.items()):
            self._others[key] = {worker: taken for worker, taken in workers.items() if taken.count(now)}
        self._others = {key: workers for key, workers in self._others.items() if workers}
        self._held = {key: workers for key, workers in self._held.items() if any(workers.values())}
        self._own = {key: taken for key, taken in self._own.items() if taken.count(now)}

    def _share(self, limit: int) -> int:
        return max(1, limit // self._sharers)

    def _note_streams(self, key: str) -> None:
        self._changed.add(key)
        self.on_change()


def _seconds_until(taken: list[Taken], excess: int, now: float) -> float:
    """Return the seconds until `excess` requests are older than a minute."""
    wait = 0.0
    for at, count in heapq.merge(*(one.entries for one in taken)):
        if excess <= 0:
            break
        wait, excess = at + WINDOW_SECONDS - now, excess - count
    return max(wait, 0.001)


def _oldest_first(entry: tuple[tuple[str, int], int]) -> tuple[str, int]:
    (key, seconds), _ = entry
    return key, -seconds
