"""Figures of a day in fixed steps: a ring of sums, each step begun anew when its minute of the day comes again."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.journal import Line

STEP_SECONDS = 60
STEPS = 24 * 60
_STORE = {"ok": 0, "slow": 1, "degraded": 2}


class StepSums(Struct, gc=False):
    """Of one step. `own_ms` and `upstream_ms` are sums; `store` is the worst there was."""

    at: int
    requests: int = 0
    avoided: int = 0
    restored: int = 0
    missing: int = 0
    healed: int = 0
    refused: int = 0
    errors: int = 0
    own_ms: float = 0.0
    upstream_ms: float = 0.0
    store: int = 0

    def add(self, other: StepSums) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.store = max(self.store, other.store)


_SUMMED = tuple(name for name in StepSums.__struct_fields__ if name not in ("at", "store"))


class DaySeries:
    """The steps of the last 24 hours in which something happened."""

    def __init__(self) -> None:
        self._steps: list[StepSums | None] = [None] * STEPS

    def count(self, line: Line) -> None:
        """A request is over."""
        number = int(line.at) // STEP_SECONDS
        step = self._steps[number % STEPS]
        if step is None or step.at != number * STEP_SECONDS:
            step = self._steps[number % STEPS] = StepSums(number * STEP_SECONDS)
        step.requests += 1
        step.avoided += line.avoided
        step.restored += line.restored
        step.missing += line.missing
        step.healed += line.healed
        if line.status >= 500 or (line.code and line.code != "client_gone"):
            step.errors += 1
        elif line.status >= 400:
            step.refused += 1
        step.own_ms += line.own_ms
        step.upstream_ms += line.upstream_ms
        if line.store != "ok":
            step.store = max(step.store, _STORE[line.store])

    def since(self, at: float) -> list[StepSums]:
        """The steps that began then or later, in no order."""
        return [step for step in self._steps if step is not None and step.at >= at]
