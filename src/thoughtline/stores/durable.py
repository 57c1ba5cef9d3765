"""What every durable store does alike. An engine adds how it connects, and the few operations at the end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from thoughtline.stores.background import Cleaner
from thoughtline.stores.base import (
    MAX_PAGE,
    STALE_SECONDS,
    Clock,
    Counters,
    Entry,
    Filter,
    Found,
    Generation,
    Note,
    Page,
    Saved,
    SessionSummary,
    Stats,
    checked_limit,
    period_seconds,
)
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit, Row, column, columns, key_digest, rows_of, unpack_found, unpack_or_count
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.records import Key, Record

MAX_COUNTED = 1000
"""Tenants of which it is known how much has changed for them. Beyond, all are asked for again."""

CLEANING_SECONDS = 600.0
"""How long others wait for one that cleans. One that was killed meanwhile has left nothing but some work."""

PageRow: TypeAlias = tuple[str, bytes, float, bytes]
"""A record in a page: the cursor that asks for those after it, its identity, the end of its life, its packed bytes."""


class DurableStore(ABC):
    """Records as rows, keys as digests, cleaning in the background. An engine gets filters as its columns hold them."""

    STALE_SECONDS = STALE_SECONDS

    def __init__(self, settings: StoreSettings, clock: Clock, packer: Packer) -> None:
        self.counters = Counters()
        self._settings = settings
        self._clock = clock
        self._packer = packer
        self._cleaner = Cleaner(self.clean, settings, in_turn=self.clean_in_turn)
        self._cleaning = asyncio.Lock()
        self._counted: dict[str, tuple[float, int]] = {}
        self._counted_seconds = min(self.STALE_SECONDS, settings.trust_seconds)
        self._period_seconds = period_seconds(settings.ttl_seconds)

    async def save(self, records: Sequence[Record]) -> Saved:
        rows, cleaner = rows_of(records, self._packer), self._cleaner
        if not rows:
            return Saved.DURABLE
        saved = await self._save(rows, self._clock())
        for row in rows:
            cleaner.written += row.size
        if cleaner.written > cleaner.room:
            cleaner.hurry()
        return saved

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        digests = {key_digest(tenant, key): key for key in keys}
        if not digests:
            return {}
        hits = await self._find(tenant, digests, self._clock())
        return unpack_found(tenant, digests, hits, self._packer, self.counters)

    async def generation(self, tenant: str) -> Generation:
        now = self._clock()
        asked_at, changes = self._counted.get(tenant, (0.0, 0))
        if not 0.0 <= now - asked_at < self._counted_seconds:
            changes = await self._changes(column(tenant))
            if len(self._counted) >= MAX_COUNTED:
                self._counted.clear()
            self._counted[tenant] = (now, changes)
        return changes, int(now / self._period_seconds)

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        digests, now = {key_digest(tenant, key): key for key in keys}, self._clock()
        hits = await self._find(tenant, digests, 0.0) if digests else []  # as if no time had passed: nothing is renewed
        return frozenset(digests[one] for hit in hits if hit.expires_at <= now for one in hit.digests)

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        limit = checked_limit(limit)
        rows = await self._page(columns(where), cursor, limit + 1)
        read = [(unpack_or_count(row[3], row[1], self._packer, self.counters), row[2]) for row in rows[:limit]]
        entries = tuple(Entry(record, end) for record, end in read if record is not None)
        return Page(entries, rows[limit - 1][0] if len(rows) > limit else None)

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        return await self._sessions(None if tenant is None else column(tenant), checked_limit(limit))

    async def delete(self, where: Filter) -> int:
        try:
            return await self._delete(columns(where), self._clock())
        finally:
            self._counted.clear()

    async def stats(self) -> Stats:
        return self.counters.into(await self._stats())

    async def clean(self) -> int:
        async with self._cleaning:
            self._counted.clear()
            return await self._clean(self._clock())

    async def clean_in_turn(self) -> int:
        """In the background: what one process has cleaned, others that share the store need not look at again."""
        if not await self._take_turn(self._clock(), CLEANING_SECONDS, if_free=True):
            return 0
        try:
            return await self.clean()
        finally:
            await self._take_turn(self._clock(), self._settings.clean_seconds / 2, if_free=False)

    async def _take_turn(self, now: float, seconds: float, *, if_free: bool) -> bool:
        """Nobody else cleans by turns for so long. Whether it was free, where only that will do."""
        return True

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def put_note(self, note: Note) -> None: ...

    @abstractmethod
    async def notes(self, namespace: str) -> tuple[Note, ...]: ...

    @abstractmethod
    async def delete_notes(self, namespace: str, key: str | None = None) -> int: ...

    @abstractmethod
    async def _save(self, rows: list[Row], now: float) -> Saved:
        """Write the rows that no deletion bars."""

    @abstractmethod
    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        """The newest `MAX_PER_KEY` live records of each digest."""

    @abstractmethod
    async def _changes(self, tenant: str) -> int:
        """How often a record of this tenant went, or a lineage got another one: counted in the same transaction."""

    @abstractmethod
    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        """Live records after a cursor, newest first."""

    @abstractmethod
    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]: ...

    @abstractmethod
    async def _delete(self, where: Filter, now: float) -> int:
        """Remember the deletion, then take out what it means."""

    @abstractmethod
    async def _stats(self) -> Stats:
        """What the store holds."""

    @abstractmethod
    async def _clean(self, now: float) -> int: ...
