"""Figures for Prometheus: requests, what was done for them, durations, and the state of the store.

With `PROMETHEUS_MULTIPROC_DIR` in the environment, all workers of a machine are counted together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from thoughtline.engine.learned import Lessons
from thoughtline.gateway.journal import RequestCounters, counter
from thoughtline.gateway.limits import is_alive
from thoughtline.stores import LayeredStore, Store
from thoughtline.stores.base import StoreHealth

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The figures of one process. `count` receives the lines of its journal."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = RequestCounters(registry)
        self.count = self._requests.count
        self.streams = _gauge("thoughtline_streams_open", "Streams that are being passed on.", registry)
        self.websockets = _gauge("thoughtline_websockets_open", "WebSocket connections that clients hold.", registry)
        about = "Requests under way whose clients have left."
        self._abandoned = _gauge("thoughtline_requests_abandoned", about, registry)
        self._lost_lines = counter("log_lines_lost", "Lines that the log had no room for.", registry)
        self._lost_lines_seen = 0
        self._store = _StoreFigures(registry)
        self._lessons = _gauge("thoughtline_corrections", "Corrections of contracts that hold.", registry, "livemax")
        self._seals = _gauge("thoughtline_refused_seals", "Seals that are not sent again.", registry, "livemax")
        build = Gauge("thoughtline_build_info", "Always 1.", ("version",), registry=registry, multiprocess_mode="max")
        build.labels(version("thoughtline")).set(1)

    def observe(self, store: Store, lessons: Lessons, *, abandoned: int, lost_lines: int) -> None:
        """Update the figures: before a page is made, and periodically for the pages of other workers."""
        self._requests.add_tokens()
        self._abandoned.set(abandoned)
        self._lost_lines.inc(lost_lines - self._lost_lines_seen)
        self._lost_lines_seen = lost_lines
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
        """The totals of this process only."""
        return _totals(self._registry)


class Totals(NamedTuple):
    """Totals of a run, for the last line of the log."""

    requests: int
    restored: int
    healed: int
    avoided: int
    observed: int = 0
    preventable: int = 0

    def __sub__(self, before: Totals) -> Totals:
        return Totals(*(now - then for now, then in zip(self, before, strict=True)))


def totals_of_workers(folder: str) -> Totals:
    """Return the totals of all processes that count in this folder, including those that have ended."""
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
        avoided=total("thoughtline_refusals_avoided_total"),
        observed=total("thoughtline_observed_total"),
        preventable=total("thoughtline_refusals_preventable_total"),
    )


class _Shown(CollectorRegistry):
    """A registry without the start time of each series: an extra gauge per counter that is not needed."""

    def __init__(self, inner: CollectorRegistry) -> None:
        super().__init__()
        self._inner = inner

    def collect(self) -> Iterator[Metric]:
        for family in self._inner.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class _StoreFigures:
    """Figures of the store. Its own totals only grow, so the increase is added."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._up = _gauge("thoughtline_store_up", "1 while the store works.", registry, "livemin")
        self._waiting = _gauge("thoughtline_store_waiting", "Turns that wait to be written.", registry)
        names = {
            "failures": "Calls of the durable store that failed.",
            "lost": "Turns that could not be written.",
            "hits": "Turns that needed reasoning and got their own back.",
            "misses": "Turns that needed reasoning and did not get their own back.",
        }
        self._totals = {name: counter(f"store_{name}", about, registry) for name, about in names.items()}
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
        """Add the increase. After a reset the total starts again at zero."""
        seen = self._seen[name] if total >= self._seen[name] else 0
        if total > seen:
            self._totals[name].inc(total - seen)
        self._seen[name] = total


def _forget_dead(folder: Path) -> None:
    """Clear the gauges of dead workers; their counts stay."""
    for process in {path.stem.rpartition("_")[2] for path in folder.glob("gauge_live*.db")}:
        if process.isdecimal() and not is_alive(int(process)):
            mark_process_dead(int(process))  # type: ignore[no-untyped-call] # it has none


def _gauge(name: str, about: str, registry: CollectorRegistry, gathered: str = "livesum") -> Gauge:
    return Gauge(name, about, registry=registry, multiprocess_mode=gathered)  # type: ignore[arg-type] # a Literal
