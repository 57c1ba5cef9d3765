"""Figures for Prometheus: what was done for how many requests, how long it took, how the store is.

Fed by the journal, one line for each request; nothing is counted for each piece of a stream. With
`PROMETHEUS_MULTIPROC_DIR` in the environment all workers of a machine are counted together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from thoughtline.gateway.journal import Line
from thoughtline.gateway.shared_counts import is_alive
from thoughtline.lessons import Lessons
from thoughtline.stores import LayeredStore, Store
from thoughtline.stores.base import StoreHealth
from thoughtline.values.outcome import COUNTED

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OUTCOMES = (*COUNTED, "captured")
_numbers = attrgetter(*OUTCOMES)
OWN_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
UPSTREAM_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

Add = Callable[[float], None]


class Metrics:
    """The figures of one process. Labels come from settings alone, so their number is bounded."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = _counter("requests", "Requests served.", registry, labels=("provider", "format", "status"))
        self._outcomes = _counter(
            "outcomes", "What was done about reasoning.", registry, labels=("provider", "outcome")
        )
        avoided = "Requests answered that would have been refused as their clients sent them."
        self._avoided = _counter("refusals_avoided", avoided, registry, labels=("provider",))
        handoffs = "Conversations of a route that went on with another target."
        self._handoffs = _counter("handoffs", handoffs, registry, labels=("route", "checkpoints"))
        self._added = _counter("checkpoint_chars", "Characters of checkpoints sent.", registry, labels=("route",))
        self._own = Histogram(
            "thoughtline_own_seconds", "Time spent here.", ("format",), buckets=OWN_BUCKETS, registry=registry
        )
        self._upstream = Histogram(
            "thoughtline_upstream_seconds",
            "Time spent waiting for providers, to the end of the response.",
            ("provider",),
            buckets=UPSTREAM_BUCKETS,
            registry=registry,
        )
        self._late = _counter("store_late", "Saves that took longer than the end of their turn was held.", registry)
        self.streams = _gauge("thoughtline_streams_open", "Streams that are being passed on.", registry)
        self.websockets = _gauge("thoughtline_websockets_open", "WebSocket connections that clients hold.", registry)
        self._served: dict[tuple[str, str, int], tuple[Add, Add, Add]] = {}
        self._done: dict[tuple[str, str], Add] = {}
        self._store = _StoreFigures(registry)
        self._lessons = _gauge("thoughtline_corrections", "Corrections of contracts that hold.", registry, "livemax")
        self._seals = _gauge("thoughtline_refused_seals", "Seals that are not sent again.", registry, "livemax")
        build = Gauge("thoughtline_build_info", "Always 1.", ("version",), registry=registry, multiprocess_mode="max")
        build.labels(version("thoughtline")).set(1)

    def count(self, line: Line) -> None:
        """A request is over."""
        key = (line.provider, line.format, line.status // 100)
        served = self._served.get(key)
        if served is None:
            served = self._served[key] = self._adders(*key)
        count, own, upstream = served
        count(1)
        own(line.own_ms / 1000)
        if line.upstream_ms:
            upstream(line.upstream_ms / 1000)
        for outcome, number in zip(OUTCOMES, _numbers(line), strict=True):
            if number:
                add = self._done.get((line.provider, outcome)) or self._outcome(line.provider, outcome)
                add(number)
        if line.avoided:
            self._avoided.labels(line.provider).inc()
        if line.handoff and line.status == 200:
            self._handoffs.labels(line.via, "with" if line.checkpoints else "without").inc()
        if line.late:
            self._late.inc(line.late)
        if line.added_chars:
            self._added.labels(line.via).inc(line.added_chars)

    def observe(self, store: Store, lessons: Lessons) -> None:
        """How things stand: before a page is made, and now and then for the pages of other workers."""
        self._store.observe(store)
        self._lessons.set(len(lessons.corrections))
        self._seals.set(len(lessons.refused))

    def page(self) -> bytes:
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(_Shown(self._registry))
        _forget_dead(Path(folder))
        return generate_latest(_gathered(folder))

    @property
    def totals(self) -> Totals:
        """Of this process alone."""
        return _totals(self._registry)

    def _outcome(self, provider: str, outcome: str) -> Add:
        add = self._done[provider, outcome] = self._outcomes.labels(provider, outcome).inc
        return add

    def _adders(self, provider: str, format: str, status: int) -> tuple[Add, Add, Add]:
        return (
            self._requests.labels(provider, format, f"{status}xx" if status else "none").inc,
            self._own.labels(format).observe,
            self._upstream.labels(provider).observe,
        )


class Totals(NamedTuple):
    """What was done from start to end, for a last line of the log."""

    requests: int
    restored: int
    healed: int
    avoided: int

    def __sub__(self, before: Totals) -> Totals:
        return Totals(*(now - then for now, then in zip(self, before, strict=True)))


def totals_of_workers(folder: str) -> Totals:
    """Of all processes that count in this folder, also of those that are gone."""
    return _totals(_gathered(folder))


def _gathered(folder: str) -> CollectorRegistry:
    gathered = CollectorRegistry()
    MultiProcessCollector(gathered, folder)  # type: ignore[no-untyped-call] # it has none
    return gathered


def _totals(registry: CollectorRegistry) -> Totals:
    samples = [sample for family in registry.collect() for sample in family.samples]

    def total(name: str, **labels: str) -> int:
        fitting = (one for one in samples if one.name == name and labels.items() <= one.labels.items())
        return round(sum(one.value for one in fitting))

    return Totals(
        total("thoughtline_requests_total"),
        total("thoughtline_outcomes_total", outcome="restored"),
        total("thoughtline_outcomes_total", outcome="healed"),
        total("thoughtline_refusals_avoided_total"),
    )


class _Shown(CollectorRegistry):
    """A registry without the time at which each series began: a gauge for every counter that nobody asks for."""

    def __init__(self, inner: CollectorRegistry) -> None:
        super().__init__()
        self._inner = inner

    def collect(self) -> Iterator[Metric]:
        for family in self._inner.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class _StoreFigures:
    """How the store is. Its own totals only ever grow, so what they grew by is added."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._up = _gauge("thoughtline_store_up", "1 while the store works.", registry, "livemin")
        self._waiting = _gauge("thoughtline_store_waiting", "Turns that wait to be written.", registry)
        names = {
            "failures": "Calls of the durable store that failed.",
            "lost": "Turns that could not be written.",
            "hits": "Turns that needed reasoning and got their own back.",
            "misses": "Turns that needed reasoning and did not get their own back.",
        }
        self._totals = {name: _counter(f"store_{name}", about, registry) for name, about in names.items()}
        self._seen = dict.fromkeys(names, 0)

    def observe(self, store: Store) -> None:
        health = store.health if isinstance(store, LayeredStore) else StoreHealth()
        self._up.set(1 if health.is_settled else 0)
        self._waiting.set(health.waiting)
        totals = {
            "failures": health.failures,
            "lost": health.lost,
            "hits": store.counters.hits,
            "misses": store.counters.misses,
        }
        for name, total in totals.items():
            self._grow(name, total)

    def _grow(self, name: str, total: int) -> None:
        """After a reset the total begins again at nothing."""
        seen = self._seen[name] if total >= self._seen[name] else 0
        if total > seen:
            self._totals[name].inc(total - seen)
        self._seen[name] = total


def _forget_dead(folder: Path) -> None:
    """What a worker had open when it died is open no more; what it counted stays."""
    for process in {path.stem.rpartition("_")[2] for path in folder.glob("gauge_live*.db")}:
        if process.isdecimal() and not is_alive(int(process)):
            mark_process_dead(int(process))  # type: ignore[no-untyped-call] # it has none


def _counter(name: str, about: str, registry: CollectorRegistry, *, labels: tuple[str, ...] = ()) -> Counter:
    return Counter(f"thoughtline_{name}", about, labels, registry=registry)


def _gauge(name: str, about: str, registry: CollectorRegistry, gathered: str = "livesum") -> Gauge:
    return Gauge(name, about, registry=registry, multiprocess_mode=gathered)  # type: ignore[arg-type] # a Literal
