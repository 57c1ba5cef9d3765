"""What the processes on a shared store count together: each counts for itself, and hears a moment later what the others
have counted.

So no request waits for a count. A limit can be passed by what the others let in within that moment, and never by more
than one limit for each process. A process that can't hear the others takes its share alone: the limit divided by how
many they were.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from thoughtline.gateway.limits import WINDOW_SECONDS, OwnCounts

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
"""What another process may say that it counted: no number below zero lifts a limit."""


class RequestsFact(Struct, frozen=True, array_like=True, tag="asked"):
    """So many requests were let in with a key, so many seconds ago."""

    key: str
    seconds: Annotated[float, Meta(ge=0, le=WINDOW_SECONDS)]
    count: Count


class HeldFact(Struct, frozen=True, array_like=True, tag="held"):
    """So many streams of a key are open now."""

    key: str
    streams: Count


CountFact: TypeAlias = RequestsFact | HeldFact


class Taken:
    """Requests of the last minute, and when they came."""

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
    """One process's view of the counts of all. `on_change` is called when there is something to tell."""

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
        """What the others don't know yet."""
        requests = [RequestsFact(key, 0.0, count) for key, count in self._unsent.items()]
        held = [HeldFact(key, self._streams.held(key)) for key in self._changed]
        self._unsent, self._changed = Counter(), set()
        return [*requests, *held]

    def everything(self, now: float) -> list[CountFact]:
        """What there is to know of this process."""
        self.news()
        counts: Counter[tuple[str, int]] = Counter()
        for key, taken in self._own.items():
            taken.count(now)
            for at, count in taken.entries:
                counts[key, int(now - at)] += count
        own = [RequestsFact(key, seconds, count) for (key, seconds), count in sorted(counts.items(), key=_oldest_first)]
        return [*own, *(HeldFact(key, streams) for key, streams in self._streams.held_by_key.items())]

    def hear(self, worker: str, facts: Iterable[CountFact], now: float) -> None:
        for fact in facts:
            if isinstance(fact, RequestsFact):
                workers = self._others.setdefault(fact.key, {})
                workers.setdefault(worker, Taken()).add(now - fact.seconds, fact.count)
            else:
                self._held.setdefault(fact.key, {})[worker] = fact.streams

    def forget(self, worker: str) -> None:
        """It says all of it anew."""
        for workers in self._others.values():
            workers.pop(worker, None)
        self.lose(worker)

    def lose(self, worker: str) -> None:
        """It is gone: with its streams, but not with the requests that it let in."""
        for workers in self._held.values():
            workers.pop(worker, None)

    def hear_nobody(self, processes: int) -> None:
        """What the others count is not known from now on. They were so many, this one among them."""
        self._others, self._held = {}, {}
        self._sharers = processes

    def hear_all(self) -> None:
        self._sharers = 1

    def clean(self, now: float) -> None:
        """Let go of what is older than a minute."""
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
    """Until so many requests are older than a minute."""
    wait = 0.0
    for at, count in heapq.merge(*(one.entries for one in taken)):
        if excess <= 0:
            break
        wait, excess = at + WINDOW_SECONDS - now, excess - count
    return max(wait, 0.001)


def _oldest_first(entry: tuple[tuple[str, int], int]) -> tuple[str, int]:
    (key, seconds), _ = entry
    return key, -seconds
