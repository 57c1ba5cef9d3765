"""History: what is kept of finished requests, next to the turns and in an engine of the same kind.

    HistoryEntry ─ write ─▶ History ─▶ SqliteHistory | RedisHistory | PostgresHistory      NoHistory for `memory://`
    Where ─ page ──▶ Kept entries, newest first      sums ─▶ Sums by time or by group

A `HistoryEntry` has a `Group` (who asked whom, and what became of it), `Sums`, and packed data that the stores do not
read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from thoughtline.stores.base import Clock
from thoughtline.stores.history.entries import (
    DAY,
    HOUR,
    MINUTE,
    MINUTES_KEPT_SECONDS,
    SUMMED,
    Group,
    History,
    HistoryEntry,
    HistorySettings,
    Kept,
    NoHistory,
    SessionTotals,
    Size,
    Sums,
    Where,
    merged,
    tenant_digest,
)
from thoughtline.stores.settings import StoreSettings

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "MINUTES_KEPT_SECONDS",
    "SUMMED",
    "Group",
    "History",
    "HistoryEntry",
    "HistorySettings",
    "Kept",
    "NoHistory",
    "SessionTotals",
    "Size",
    "Sums",
    "Where",
    "history_at",
    "merged",
    "tenant_digest",
]

_ENGINES = {"sqlite": "Sqlite", "redis": "Redis", "rediss": "Redis", "redis-cluster": "Redis"}
_ENGINES |= {"postgresql": "Postgres", "postgres": "Postgres"}


def history_at(url: str, store: StoreSettings, settings: HistorySettings, clock: Clock) -> History:
    """The history that belongs to the store at an address, not yet open; none if it may have no size."""
    engine = _ENGINES.get(url.partition(":")[0])
    if engine is None or not settings.max_bytes:
        return NoHistory()
    module = import_module(f"thoughtline.stores.history.{engine.lower()}_history")
    make: Any = getattr(module, f"{engine}History")
    made: History = make(url, store, settings, clock)
    return made
