"""How often a key may ask, and how many streams it may hold.

One process counts in memory. Workers of one start count together, in a file of the directory that they share
(`shared_counts.py`); processes on a shared store by what they tell each other (`fleet_counts.py`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from thoughtline.gateway.client_keys import ClientKey
from thoughtline.values.errors import Declined

WINDOW_SECONDS = 60.0


class LimitCounts(Protocol):
    """Who has asked, and who holds what. Times are of a clock that never goes back, the same for all who count."""

    def take(self, key: str, per_minute: int, now: float) -> float:
        """0 if a request may go now, and then it counts; else the seconds until one may."""
        ...

    def begin(self, key: str, most: int) -> bool:
        """Whether there is room for one more stream; if so, `end` gives it back."""
        ...

    def end(self, key: str) -> None: ...

    def close(self) -> None: ...


class OwnCounts:
    """What one process counts."""

    def __init__(self) -> None:
        self._rates: dict[str, RateLimit] = {}
        self._streams: dict[str, int] = {}

    def take(self, key: str, per_minute: int, now: float) -> float:
        return self._rates.setdefault(key, RateLimit(per_minute)).take(now)

    def begin(self, key: str, most: int) -> bool:
        if self.held(key) >= most:
            return False
        self._streams[key] = self.held(key) + 1
        return True

    def end(self, key: str) -> None:
        left = self._streams.pop(key) - 1
        if left:
            self._streams[key] = left

    def held(self, key: str) -> int:
        return self._streams.get(key, 0)

    @property
    def held_by_key(self) -> Mapping[str, int]:
        return self._streams

    def close(self) -> None:
        pass


class RateLimit:
    """At most so many requests in any minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._taken: deque[float] = deque()

    def take(self, now: float) -> float:
        while self._taken and self._taken[0] <= now - WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) < self._per_minute:
            self._taken.append(now)
            return 0.0
        return self._taken[0] + WINDOW_SECONDS - now


class KeyLimits:
    """The limits of all keys."""

    def __init__(self, counts: LimitCounts | None = None) -> None:
        self.counts: LimitCounts = counts or OwnCounts()

    def admit(self, key: ClientKey | None, now: float) -> None:
        """Count a request, or refuse it with the time after which it may come again."""
        if key is None or key.requests_per_minute is None:
            return
        wait = self.counts.take(key.id, key.requests_per_minute, now)
        if wait:
            raise Declined(
                429,
                "too_many_requests",
                "This key has reached its limit of requests per minute.",
                f"Try again in {math.ceil(wait)} s.",
                wait,
            )

    def begin_stream(self, key: ClientKey | None) -> bool:
        """Whether a stream is held from now on, which `end_stream` gives back. Raises where there is no room for it."""
        if key is None or key.concurrent_streams is None:
            return False
        if not self.counts.begin(key.id, key.concurrent_streams):
            raise Declined(
                429,
                "too_many_streams",
                f"This key has {key.concurrent_streams} streams open, which is its limit.",
                "Wait for one to end.",
                1.0,
            )
        return True

    def end_stream(self, key: ClientKey) -> None:
        self.counts.end(key.id)
