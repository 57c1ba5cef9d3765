"""Circuit breakers: a failing target is avoided for a while, then tried with one request.

closed ── failures in a row, or a requested pause ──▶ open ── the pause is over ──▶ half open
   ◀──────────────────────── the probe was answered ─────────────────────────────┘   └─ it failed ─▶ open, longer
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from thoughtline.failover.failures import TargetFailure

State = Literal["closed", "open", "half_open"]

MAX_TARGETS = 4096
MAX_OPENINGS = 32
MAX_FAILURES = 3
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 15.0, 300.0
"""How long a breaker stays open: twice as long after each failed probe."""
PROBE_SECONDS = 120.0


class Breaker(Struct):
    """The breaker of one target. `probe_until`: a probe is in progress, and counts as lost after that time."""

    failures: int = 0
    openings: int = 0
    open_until: float = 0.0
    probe_until: float = 0.0


class Breakers:
    """The breakers of all targets. Late reports come with the time of the event.

    `known` are those of targets with failures. `on_change` is called with a target when its breaker opens, is probed,
    or closes.
    """

    def __init__(self) -> None:
        self.known: dict[str, Breaker] = {}
        self.on_change: Callable[[str], None] = lambda target: None

    def state(self, target: str, now: float) -> State:
        breaker = self.known.get(target)
        if breaker is None or not breaker.openings:
            return "closed"
        return "open" if now < breaker.open_until else "half_open"

    def failures(self, target: str) -> int:
        """How often it failed in a row."""
        return self.get(target).failures

    def admits(self, target: str, now: float) -> bool:
        """Whether to try a target now; for a half-open one, whether no probe is in progress."""
        state = self.state(target, now)
        return state == "closed" or (state == "half_open" and now >= self.known[target].probe_until)

    def attempted(self, target: str, now: float) -> None:
        """A request is sent to the target. If the breaker is half open, this is the probe."""
        if target in self.known and self.state(target, now) == "half_open":
            self.known[target].probe_until = now + PROBE_SECONDS
            self.on_change(target)

    def succeeded(self, target: str) -> None:
        """The target answered, even if only to reject the request."""
        gone = self.known.pop(target, None)
        if gone is not None and gone.openings:
            self.on_change(target)

    def failed(self, target: str, failure: TargetFailure, now: float) -> None:
        breaker = self._known(target)
        breaker.failures += 1
        breaker.probe_until = 0.0
        if breaker.openings or breaker.failures >= MAX_FAILURES or failure.pause_seconds is not None:
            self._open(breaker, failure, now)
            self.on_change(target)

    def get(self, target: str) -> Breaker:
        """The breaker of a target; most targets have none."""
        return self.known.get(target) or Breaker()

    def adopt(self, target: str, other: Breaker) -> None:
        """Adopt the state from another process: a breaker that opened, is probed, or closed there."""
        if not other.openings:
            self.known.pop(target, None)
            return
        breaker = self._known(target)
        breaker.failures, breaker.probe_until = other.failures, other.probe_until
        breaker.openings = max(breaker.openings, min(other.openings, MAX_OPENINGS))
        breaker.open_until = max(breaker.open_until, other.open_until)

    def opens_at(self, target: str) -> float:
        """When an open target may be tried; for choosing among targets that are all open."""
        return self.get(target).open_until

    def _open(self, breaker: Breaker, failure: TargetFailure, now: float) -> None:
        if now < breaker.open_until and failure.pause_seconds is None:
            return  # requests in progress when it opened
        pause = min(FIRST_PAUSE_SECONDS * 2**breaker.openings, LONGEST_PAUSE_SECONDS)
        breaker.openings = min(breaker.openings + 1, MAX_OPENINGS)
        requested = failure.pause_seconds
        breaker.open_until = max(breaker.open_until, now + (pause if requested is None else requested))

    def _known(self, target: str) -> Breaker:
        breaker = self.known.get(target)
        if breaker is None:
            if len(self.known) >= MAX_TARGETS:
                self.known.pop(next(iter(self.known)))
            breaker = self.known[target] = Breaker()
        return breaker
