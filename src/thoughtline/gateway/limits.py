"""How often a key may ask, and how many streams it may hold. In this process: each worker counts for itself."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from thoughtline.errors import Declined
from thoughtline.gateway.client_keys import ClientKey

WINDOW_SECONDS = 60.0


class RateLimit:
    """At most so many requests in any minute. Times are of a clock that never goes back."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._taken: deque[float] = deque()

    def take(self, now: float) -> float:
        """0 if a request may go now, and then it counts; else the seconds until one may."""
        while self._taken and self._taken[0] <= now - WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) < self._per_minute:
            self._taken.append(now)
            return 0.0
        return self._taken[0] + WINDOW_SECONDS - now


class KeyLimits:
    """The limits of all keys."""

    def __init__(self) -> None:
        self._rates: dict[str, RateLimit] = {}
        self._streams: dict[str, int] = {}

    def admit(self, key: ClientKey | None, now: float) -> None:
        """Count a request, or refuse it with the time after which it may come again."""
        wait = self.take_request(key, now) if key is not None else 0.0
        if wait:
            raise Declined(
                429,
                "too_many_requests",
                "This key has asked as often as it may in a minute.",
                f"Ask again in {math.ceil(wait)} s.",
                wait,
            )

    @contextmanager
    def stream(self, key: ClientKey | None) -> Iterator[None]:
        """Hold a stream for as long as it lasts, or refuse it."""
        if key is None:
            yield
            return
        if not self.begin_stream(key):
            raise Declined(
                429,
                "too_many_streams",
                f"This key has {key.concurrent_streams} streams open, which is as many as it may.",
                "Wait for one to end.",
                1.0,
            )
        try:
            yield
        finally:
            self.end_stream(key)

    def take_request(self, key: ClientKey, now: float) -> float:
        """0 if the key may ask now, and then it counts; else the seconds until it may."""
        if key.requests_per_minute is None:
            return 0.0
        return self._rates.setdefault(key.id, RateLimit(key.requests_per_minute)).take(now)

    def begin_stream(self, key: ClientKey) -> bool:
        """Whether the key may hold one more stream; if so, `end_stream` gives it back."""
        held = self._streams.get(key.id, 0)
        if key.concurrent_streams is not None and held >= key.concurrent_streams:
            return False
        self._streams[key.id] = held + 1
        return True

    def end_stream(self, key: ClientKey) -> None:
        """A stream that was begun is over."""
        left = self._streams[key.id] - 1
        if left:
            self._streams[key.id] = left
        else:
            del self._streams[key.id]
