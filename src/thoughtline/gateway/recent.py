"""The last requests of this process, those under way, and figures over a day: in memory, bounded, gone with it.

A request costs an entry in a dictionary and a few references; whoever asks pays for the rest.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from thoughtline.gateway.asking import Asking
from thoughtline.gateway.journal import Line
from thoughtline.gateway.replicas import Replicas
from thoughtline.gateway.served import KeptBodies, Served
from thoughtline.settings import Settings

MAX_REQUESTS = 1000
MAX_BYTES = 16 * 2**20
"""Of what explains them, about; bodies are not counted among it."""

_FIXED_BYTES = 2048
_NOTE_BYTES = 96

MAX_BODIES = 50
MAX_SEEN = 256
"""Clients and keys whose last use is known."""

STEP_SECONDS = 60
STEPS = 24 * 60
_STORE = {"ok": 0, "slow": 1, "degraded": 2}


class Tells(Protocol):
    """A request under way."""

    def told(self) -> Served:
        """All there is to say of it by now."""


class Recent:
    """Requests `under_way` by their ids, then by the order in which they ended. Those of others are known to `asking`
    and `replicas`."""

    def __init__(self, settings: Settings, worker: str) -> None:
        kept = settings.store
        self.asking = Asking(settings.bus_directory, worker)
        self.replicas = Replicas(worker, settings.store_url, (kept.encryption_key, kept.previous_encryption_key))
        self.under_way: dict[str, Tells] = {}
        self._over: deque[Served] = deque()
        self._bytes = self.ended = 0
        self._bodies: dict[str, KeptBodies] = {}
        self.series = DaySeries()
        self.agents: dict[str, float] = {}
        self.keys: dict[str, float] = {}

    def end(self, served: Served, bodies: KeptBodies | None = None) -> None:
        line, agents = served.line, self.agents
        self.under_way.pop(line.request, None)
        self._over.append(served)
        self.ended += 1
        self._bytes += _size(served)
        while len(self._over) > MAX_REQUESTS or (self._bytes > MAX_BYTES and len(self._over) > 1):
            self._bytes -= _size(self._over.popleft())
        self.series.count(line)
        if served.user_agent in agents:
            agents[served.user_agent] = line.at
        else:
            _see(agents, served.user_agent, line)
        if served.client_key:
            _see(self.keys, served.client_key, line)
        if bodies is not None:
            self._keep(line.request, bodies)

    def _keep(self, id: str, bodies: KeptBodies) -> None:
        self._bodies[id] = bodies
        if len(self._bodies) > MAX_BODIES:
            self._bodies.pop(next(iter(self._bodies)))

    def bodies_of(self, id: str) -> KeptBodies | None:
        return self._bodies.get(id)

    def all(self) -> Iterator[Served]:
        """Those under way, then the others, the last one to end first."""
        for request in list(self.under_way.values()):
            yield request.told()
        yield from reversed(self._over)

    def newest(self, count: int) -> list[Served]:
        """Those that ended last, in their order."""
        return [*itertools.islice(reversed(self._over), count)][::-1]

    def find(self, id: str) -> Served | None:
        """By its id, or the beginning of it: then the last one."""
        return next((served for served in self.all() if served.id.startswith(id)), None) if id else None


def _size(served: Served) -> int:
    """About how many bytes it takes."""
    size = _FIXED_BYTES
    for attempt in served.attempts:
        size += _NOTE_BYTES * len(attempt.notes.own) if attempt.notes is not None else 0
        for one in attempt.refusals:
            size += len(one.words)
    return size


def _see(seen: dict[str, float], name: str, line: Line) -> None:
    if name not in seen and len(seen) >= MAX_SEEN:
        seen.pop(next(iter(seen)))
    seen[name] = line.at


# --- figures of a day, in steps: each is begun anew when its minute of the day comes again ----------------------------


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
